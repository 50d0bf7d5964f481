"""A larger model that begins as a smaller one."""

from __future__ import annotations

from dataclasses import replace
from math import log10
from pathlib import Path

import pytest
import torch
from tolerances import SUMMED

from models import own_model
from models.config import Config
from models.embedding import sinusoids
from models.own_model import OwnModel
from models.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer
from models.training import net2net
from models.transformer import Decoder, EncoderDecoder

TEXTS = ["the cat sat on the mat", "a dog ran to the house"] * 4
SMALL = Config(n_vocab=300, d_model=32, n_layer=2, n_head=4, d_ff=64, n_positions=32)
IDS = torch.tensor([[1, 40, 41, 280, 5, 281]])


def handle(kind: type[Decoder] | type[EncoderDecoder], n_vocab: int = 300) -> OwnModel:
    torch.manual_seed(0)
    model = kind(replace(SMALL, n_vocab=n_vocab))
    for weight in model.parameters():  # gains and biases too, which begin at one and zero
        torch.nn.init.normal_(weight, mean=0.5 if weight.dim() == 1 else 0, std=0.2)
    words = Tokenizer.train(TEXTS, n_vocab, CAUSAL_LM_SPECIALS)
    return own_model.handle_of(model.eval(), words, "small", "random")


@torch.inference_mode()
def logits(model: Decoder | EncoderDecoder) -> torch.Tensor:
    if isinstance(model, Decoder):
        return model.logits(model(IDS))
    return model.logits(model.decode(IDS, model.encode(IDS.flip(1))))


@pytest.mark.parametrize("kind", [Decoder, EncoderDecoder])
def test_layers_that_come_on_top_say_nothing_at_first(
    kind: type[Decoder] | type[EncoderDecoder],
) -> None:
    begun = handle(kind)
    deeper = kind(replace(SMALL, n_layer=4)).eval()
    net2net.grow(begun, deeper, begun.tokenizer)
    n = len(begun.tokenizer)  # the model has room for a few words more than there are
    before, after = logits(begun.model)[..., :n], logits(deeper)[..., :n]
    torch.testing.assert_close(after, before, atol=SUMMED, rtol=0)


def test_a_wider_stream_holds_the_narrow_one_and_what_reads_it() -> None:
    begun = handle(Decoder)
    wider = Decoder(replace(SMALL, d_model=48, n_head=6, d_ff=96)).eval()
    net2net.grow(begun, wider, begun.tokenizer)
    dims = net2net.dimension_map(SMALL, wider.config)
    assert len(set(dims.tolist())) == 32
    small, large = begun.model.layers[1], wider.layers[1]
    for name in ("w_q", "w_k", "w_v"):
        old, new = (getattr(each.attention, name).weight for each in (small, large))
        assert torch.equal(new[:32][:, dims], old)
    assert torch.equal(large.attention.w_o.weight[dims, :32], small.attention.w_o.weight)
    assert not large.attention.w_o.weight[:, 32:].any()  # new heads and units write nothing
    assert not large.feed_forward.w_2.weight[:, 64:].any()
    old, new = (model.embedding.words(model.embedding.token(IDS)) for model in (begun.model, wider))
    torch.testing.assert_close(new[..., dims], old, atol=SUMMED, rtol=0)


def test_a_pair_of_dimensions_goes_where_it_turns_as_fast() -> None:
    small, large = Config(9, 192, 1, 6, 8, 64), Config(9, 256, 1, 8, 8, 64)
    dims = net2net.dimension_map(small, large)
    narrow, wide = sinusoids(2, 192)[1, 1::2].acos(), sinusoids(2, 256)[1, dims][1::2].acos()
    fast = narrow > 0.01  # slower ones cannot be told in 32 bits
    furthest = (narrow / wide)[fast].log10().abs().max().item()
    assert furthest <= log10(10000) / 256 + 1e-3  # half of the way to the next pair


def test_a_new_word_begins_as_the_mean_of_its_pieces() -> None:
    begun = handle(Decoder, n_vocab=270)
    words = Tokenizer.train(TEXTS, 300, CAUSAL_LM_SPECIALS)
    larger = Decoder(SMALL)
    net2net.grow(begun, larger, words)
    known, rows = begun.tokenizer.bpe.get_vocab(), begun.model.embedding.token.weight
    new = [word for word in words.bpe.get_vocab() if word not in known]
    assert new
    for word in new:
        ids = net2net.longest_pieces(word, known)
        assert "".join(begun.tokenizer.bpe.id_to_token(each) for each in ids) == word
        row = larger.embedding.token.weight[words.bpe.token_to_id(word)]
        torch.testing.assert_close(row, rows[ids].mean(0), atol=SUMMED, rtol=0)


def test_heads_of_another_width_are_not_grown() -> None:
    with pytest.raises(ValueError, match="same width"):
        begun = handle(Decoder)
        net2net.grow(begun, Decoder(replace(SMALL, n_head=2)), begun.tokenizer)


def test_what_goes_on_is_shipped_as_the_mean_of_both(tmp_path: Path) -> None:
    first, last = ({"w": torch.full((2,), value), "b": torch.zeros(1)} for value in (1.0, 2.0))
    torch.save(first, tmp_path / "at-0.pt")
    found = net2net.mean_weights(last, tmp_path / "at-0.pt")
    assert found["w"].tolist() == [1.5, 1.5] and found["b"].tolist() == [0]
