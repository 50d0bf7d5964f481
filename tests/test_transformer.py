"""The transformer against torch's own layers with copied weights, and against the laws of the
paper."""

from __future__ import annotations

from math import sqrt

import pytest
import torch
from tolerances import STORED, SUMMED
from torch import nn

from models.contract.edits import WithoutPositions
from models.network.attention import MultiHeadAttention, causal_mask
from models.network.config import Config
from models.network.embedding import sinusoids
from models.network.transformer import Decoder, Encoder, EncoderDecoder, Layer

CONFIG = Config(n_vocab=50, d_model=24, n_layer=2, n_head=4, d_ff=40, n_positions=32)
BATCH, QUERIES, KEYS = 3, 5, 8


def torch_attention(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    oracle = nn.MultiheadAttention(CONFIG.d_model, CONFIG.n_head, batch_first=True)
    with torch.no_grad():
        oracle.in_proj_weight.copy_(torch.cat([ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]))
        oracle.in_proj_bias.copy_(torch.cat([ours.w_q.bias, ours.w_k.bias, ours.w_v.bias]))
        oracle.out_proj.weight.copy_(ours.w_o.weight)
        oracle.out_proj.bias.copy_(ours.w_o.bias)
    return oracle


def seeded(module: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def test_attention_equals_torch_with_other_keys_than_queries() -> None:
    """What it writes and its weights, under a mask and with padded keys."""
    ours = seeded(MultiHeadAttention(CONFIG, "0.attn", 0))
    oracle = torch_attention(ours).eval()
    x_query, x_key = torch.randn(BATCH, QUERIES, 24), torch.randn(BATCH, KEYS, 24)
    mask = torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(2)
    present = padding(6, 3, 8, longest=KEYS)
    seen = {}
    allowed = mask[None, None] & present[:, None, None]
    wrote = ours(x_query, x_key, allowed, lambda name, x: seen.setdefault(name, x))
    masks = {"attn_mask": ~mask, "key_padding_mask": ~present}
    expected, weights = oracle(x_query, x_key, x_key, **masks, average_attn_weights=False)
    torch.testing.assert_close(wrote, expected, atol=SUMMED, rtol=0)
    torch.testing.assert_close(seen["0.attn.pattern"], weights, atol=SUMMED, rtol=0)
    assert (seen["0.attn.pattern"].masked_select(~allowed) == 0).all()


def test_sinusoids_are_the_formula_of_the_paper() -> None:
    table = sinusoids(40, 24)
    for position, dimension in ((0, 0), (0, 1), (7, 4), (39, 22), (39, 23)):
        angle = torch.tensor(position / 10000 ** (2 * (dimension // 2) / 24), dtype=torch.float64)
        expected = angle.sin() if dimension % 2 == 0 else angle.cos()
        assert table[position, dimension].item() == pytest.approx(expected.item(), abs=STORED)


def test_without_positions_a_permuted_text_gives_permuted_vectors_and_with_them_not() -> None:
    model = seeded(Encoder(CONFIG))
    ids, order = torch.tensor([[4, 9, 17, 23, 30]]), [3, 0, 4, 1, 2]
    bare = (WithoutPositions(),)
    torch.testing.assert_close(
        model(ids, edits=bare)[:, order], model(ids[:, order], edits=bare), atol=SUMMED, rtol=0
    )
    assert (model(ids)[:, order] - model(ids[:, order])).abs().max() > 0.1


def test_padding_changes_nothing_for_the_words_that_are_there() -> None:
    model = seeded(Encoder(CONFIG))
    short = torch.tensor([[4, 9, 17]])
    ids = torch.tensor([[4, 9, 17, 0, 0], [1, 2, 3, 4, 5]])
    present = torch.tensor([[True, True, True, False, False], [True] * 5])
    torch.testing.assert_close(
        model(ids, allowed=present[:, None, None])[:1, :3], model(short), atol=SUMMED, rtol=0
    )


def test_sizes_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="d_model 10 is not a multiple of n_head 4"):
        Config(n_vocab=5, d_model=10, n_layer=1, n_head=4, d_ff=8, n_positions=4)


def copied(ours: Layer, oracle: nn.Module) -> nn.Module:
    """torch's layer with our layer's weights."""
    norms = [ours.attention_out.norm, ours.feed_forward_out.norm]
    oracle.self_attn = torch_attention(ours.attention)
    if hasattr(ours, "cross"):
        norms.insert(1, ours.cross_out.norm)
        oracle.multihead_attn = torch_attention(ours.cross)
    theirs = [oracle.linear1, oracle.linear2]
    theirs += [getattr(oracle, f"norm{at}") for at in range(1, len(norms) + 1)]
    with torch.no_grad():
        for their, mine in zip(theirs, (ours.feed_forward.w_1, ours.feed_forward.w_2, *norms)):
            their.weight.copy_(mine.weight)
            their.bias.copy_(mine.bias)
    return oracle.train()  # dropout is 0; the training path is the plain formula


SOURCE, TARGET = 8, 5


def padding(*lengths: int, longest: int) -> torch.Tensor:
    """(batch, token) bool: True for the real tokens of texts of these lengths."""
    return torch.arange(longest)[None] < torch.tensor(lengths)[:, None]


def test_encoder_decoder_equals_torch() -> None:
    """Embeddings, positions, and every layer of both stacks, with padding on both sides."""
    ours = seeded(EncoderDecoder(CONFIG))
    oracle = nn.Transformer(24, 4, 2, 2, 40, dropout=0.0, batch_first=True)
    oracle.encoder.norm = oracle.decoder.norm = None  # the paper has none after the last layer
    for stack, theirs in ((ours.encoder, oracle.encoder), (ours.decoder, oracle.decoder)):
        for mine, their in zip(stack, theirs.layers):
            copied(mine, their)
    there, here = padding(6, 8, 2, longest=SOURCE), padding(5, 3, 4, longest=TARGET)
    source, target = torch.randint(0, 50, (BATCH, SOURCE)), torch.randint(0, 50, (BATCH, TARGET))

    def embedded(ids: torch.Tensor) -> torch.Tensor:
        return ours.embedding.token.weight[ids] * sqrt(24) + sinusoids(ids.shape[1], 24)

    expected = oracle.train()(
        embedded(source),
        embedded(target),
        tgt_mask=~causal_mask(0, TARGET),
        src_key_padding_mask=~there,
        tgt_key_padding_mask=~here,
        memory_key_padding_mask=~there,
    )
    got = ours.decode(target, ours.encode(source, there[:, None, None]), there[:, None, None])
    torch.testing.assert_close(got[here], expected[here], atol=SUMMED, rtol=0)


def test_a_later_token_changes_no_earlier_output_exactly() -> None:
    ids = torch.randint(0, 50, (1, 12))
    other = ids.clone()
    other[0, 7:] = (other[0, 7:] + 11) % 50
    decoder, both = seeded(Decoder(CONFIG)), seeded(EncoderDecoder(CONFIG))
    memory = both.encode(torch.randint(0, 50, (1, SOURCE)))
    for run in (decoder, lambda target: both.decode(target, memory)):
        assert torch.equal(run(ids)[:, :7], run(other)[:, :7])
        assert not torch.equal(run(ids)[:, 7:], run(other)[:, 7:])


def test_one_embedding_serves_source_target_and_readout() -> None:
    model = EncoderDecoder(CONFIG)
    assert sum(parameter.shape == (50, 24) for parameter in model.parameters()) == 1
