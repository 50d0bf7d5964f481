"""The logit lens and a logit's parts: the last row is the model's answer, the parts add up."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest
import torch
from lens_oracle import full_pass, lens_of
from ordinary_sentences import SENTENCES
from table_files import commented
from tolerances import DOUBLE, DOUBLE_LONG, PASSED, SUMMED, TOTAL

from explorer.analysis import logit_lens, opening
from explorer.figures.csv import to_csv, unescape_cell
from explorer.panels import attribution, interventions
from models.contract import edits
from models.example_texts import DEFAULT_TEXT
from models.network import own_model
from models.network.own_model import OwnModel, from_network
from models.network.transformer import EncoderDecoder
from models.readouts.logit_lens import BIAS, attribute, trace_parts, word_direction
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.version import VERSION

TEXT = "the cat sat on the mat"


KINDS = ["small_model", "small_decoder", "small_translator"]


SHIPPED = ["encoder", "decoder", "translator"]


# ---- the lens ----------------------------------------------------------------


def edited(model: OwnModel) -> dict[str, tuple[edits.Edit, ...]]:
    """Edits under which a lens and the parts of a logit must still be the model's own."""
    attention = "cross" if isinstance(model.network, EncoderDecoder) else "self"
    one_layer = (edits.WithoutNorm(2), edits.WithoutResidual(1), edits.WithoutPositions())
    made = {
        "plain": (),
        "no last head": (edits.ZeroHead(2, 0, attention),),
        "no norm": (edits.WithoutNorm(),),
        "no residual": (edits.WithoutResidual(),),
        "several": (edits.ZeroHead(0, 1, attention), *one_layer),
    }
    return made | ({"hidden": (edits.HideToken(2),)} if model.tokenizer.mask is not None else {})


EDITS = ["plain", "no last head", "no norm", "no residual", "several", "hidden"]


@pytest.mark.parametrize("name", EDITS)
def test_the_last_row_and_all_parts_are_the_models_answer(model: OwnModel, name: str) -> None:
    if name not in edited(model):
        pytest.skip("this model hides no words")
    recording = own_model.record(model, TEXT, edited(model)[name])
    found, logits = lens_of(model, recording), full_pass(model, recording)
    logprobs, ids = logits.double().log_softmax(-1).topk(10)
    assert np.array_equal(found.top_ids[-1], ids.numpy())
    np.testing.assert_allclose(found.top_logprobs[-1], logprobs.numpy(), atol=SUMMED)
    assert np.array_equal(found.final_id, logits.argmax(-1).numpy())
    assert not found.rank[-1].any() and not found.kl[-1].any()
    stream = logit_lens.read_stream(recording)
    for token in (0, len(stream.tokens) - 1):
        for word, against in ((int(logits[token].argmax()), None), (7, 31)):
            taken = model.attribute(recording, stream.name, token, word, against)
            expected = logits[token, word] - (0 if against is None else logits[token, against])
            assert taken.logit == pytest.approx(float(expected), abs=PASSED)
            total = logit_lens.parts_sum(taken)
            assert total == pytest.approx(float(expected), abs=PASSED)
            grouped = sum(group.value for group in logit_lens.groups(taken))
            assert grouped == pytest.approx(total, abs=DOUBLE_LONG)


def test_every_row_is_recomputed_from_the_state_alone(model: OwnModel) -> None:
    recording = own_model.record(model, TEXT)
    stream, found = logit_lens.read_stream(recording), lens_of(model, recording)
    parameters = (model.network.embedding.token.weight, model.network.readout_bias)
    e, b = (parameter.detach().double().numpy() for parameter in parameters)

    def distribution(site: str) -> np.ndarray:
        logits = stream.at(site).astype(np.float64) @ e.T + b
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    final = distribution(stream.sites[-1])
    for at, site in enumerate(found.sites):
        for token, (here, last) in enumerate(zip(distribution(site), final)):
            cell, answer = logit_lens.cell(found, at, token), int(last.argmax())
            assert cell.final_id == answer
            assert cell.rank == int((here > here[answer]).sum())
            assert cell.probability == pytest.approx(here[answer], rel=TOTAL)
            assert cell.kl == pytest.approx((last * np.log(last / here)).sum(), abs=PASSED)
            np.testing.assert_allclose(cell.probabilities, np.sort(here)[::-1][:10], rtol=TOTAL)
            np.testing.assert_allclose(here[cell.ids], cell.probabilities, rtol=TOTAL)
            assert cell.probabilities.sum() + cell.others == pytest.approx(1, abs=DOUBLE)


@pytest.mark.slow
def test_the_rank_of_a_word_is_how_many_are_likelier_and_leaders_are_ranked_too() -> None:
    recording = Run("decoder", DEFAULT_TEXT).recording()
    model, asked = loaded(recording), (5, 7)
    whole = model.lens(recording, "decoder", model.card.n_vocab)
    found = model.lens(recording, "decoder", 1, 3, ids=asked)
    assert found.ids[:2] == asked and {*found.ids[2:]} == {*whole.top_ids[:, 3, 0]} - {*asked}
    for site, order in enumerate(whole.top_ids[:, 3]):
        assert [int(order[rank]) for rank in found.ranks[site]] == list(found.ids)
    with pytest.raises(ValueError, match="one token"):
        model.lens(recording, "decoder", ids=asked)


def test_there_is_a_row_for_every_state_in_its_order(model: OwnModel) -> None:
    two = isinstance(model.network, EncoderDecoder)
    per_layer = ["attention", "cross", "FFN"] if two else ["attention", "FFN"]
    expected = [f"L{layer} {place}" for layer in range(3) for place in per_layer]
    for on, begin in (
        ((), ["embedding", "+ position"]),
        ((edits.WithoutNorm(1), edits.WithoutPositions()), ["embedding"]),
    ):
        found = lens_of(model, own_model.record(model, TEXT, on))
        assert [*map(logit_lens.site_name, found.sites)] == begin + expected
    assert logit_lens.site_words("1.attn.sum") == "After the attention of layer 1"
    norms = [*map(logit_lens.site_name, ("embed.normed", "final.normed"))]
    assert norms == ["input norm", "last norm"]
    with pytest.raises(ValueError, match="is no state of a stream"):
        logit_lens.site_name("0.attn.wrote")


def test_what_would_be_right_is_the_next_token_or_the_hidden_one(
    small_model: OwnModel, small_decoder: OwnModel, small_translator: OwnModel
) -> None:
    for model in (small_decoder, small_translator):
        recording = own_model.record(model, TEXT)
        ids = logit_lens.read_stream(recording).ids
        assert logit_lens.predicts_next(recording)
        assert logit_lens.target_ids(recording, recording).tolist() == [*ids[1:], -1]
        assert opening.predicted(recording) == len(ids) - 1
    plain = own_model.record(small_model, TEXT)
    hidden = own_model.record(small_model, TEXT, (edits.HideToken(2),))
    ids, right = plain.streams[0].ids, logit_lens.target_ids(hidden, plain)
    assert not logit_lens.predicts_next(plain)
    assert logit_lens.target_ids(plain, plain).tolist() == [-1] * len(ids)
    assert right[2] == ids[2] and (np.delete(right, 2) == -1).all()
    assert opening.predicted(plain) == 1
    assert opening.predicted(own_model.record(small_model, "")) == 0
    with pytest.raises(ValueError, match="with nothing hidden"):
        logit_lens.target_ids(plain, own_model.record(small_model, "the cat"))


def test_the_file_holds_every_cell(small_decoder: OwnModel) -> None:
    recording = own_model.record(small_decoder, 'the cat <b>, "sat"')
    found, stream = lens_of(small_decoder, recording), recording.streams[0]
    ids = logit_lens.vocabulary(found, found.final_id, 10)
    labels = dict(zip(ids.tolist(), small_decoder.labels(ids)))
    made = to_csv(logit_lens.file_table(found, stream.tokens, labels), ("one\nline", "two"))
    about, rows = commented(made)
    assert about == ["one line", "two", f"Headlight {VERSION}"]
    assert len(rows) == len(found.sites) * len(stream.tokens)
    for row, at in zip(rows, np.ndindex(found.rank.shape)):
        site, token = at
        assert (row["site"], int(row["token"])) == (found.sites[site], token)
        assert unescape_cell(row["token text"]) == stream.tokens[token]
        assert int(row["rank of final answer"]) == found.rank[at] + 1
        assert float(row["KL to final (nats)"]) == found.kl[at]
        assert float(row["probability of final answer"]) == np.exp(found.logprob[at])
        for rank, (id, logprob) in enumerate(zip(found.top_ids[at], found.top_logprobs[at]), 1):
            assert unescape_cell(row[f"word {rank}"]) == labels[id]
            assert float(row[f"probability {rank}"]) == np.exp(logprob)


# ---- a logit's parts ---------------------------------------------------------


def test_a_head_that_is_off_has_no_part(model: OwnModel) -> None:
    removed = edited(model)["no last head"]
    name = logit_lens.read_stream(own_model.record(model, TEXT)).name

    def heads(edits_on: tuple[edits.Edit, ...]) -> set[str]:
        parts = model.attribute(own_model.record(model, TEXT, edits_on), name, 2, 9).parts
        return {logit_lens.part_key(part) for part in parts if part.kind == "head"}

    assert heads(()) - heads(removed) == {f"{removed[0].attention}.2.0"}


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("model", SHIPPED)
def test_the_parts_of_a_shipped_model_add_up_too(model: str) -> None:
    loaded_model = loaded(model)
    recording = loaded_model.record(DEFAULT_TEXT)
    stream, logits = logit_lens.read_stream(recording), full_pass(loaded_model, recording)
    for token in range(0, len(stream.tokens), 4):
        word, against = logits[token].topk(2).indices.tolist()
        for other in (None, against):
            taken = loaded_model.attribute(recording, stream.name, token, word, other)
            expected = float(logits[token, word] - (0 if other is None else logits[token, other]))
            assert logit_lens.parts_sum(taken) == pytest.approx(expected, abs=PASSED)


@pytest.mark.parametrize("kind", KINDS)
def test_without_norm_and_ffn_taking_a_head_away_takes_its_part_from_the_logit(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """A planted case: in a last layer that only adds, what a head put in is just what goes when it
    goes."""
    whole = request.getfixturevalue(kind)
    network = type(whole.network)(whole.network.config)
    network.load_state_dict(whole.network.state_dict())
    two = isinstance(network, EncoderDecoder)
    last = (network.decoder if two else network.layers)[-1].feed_forward.w_2
    with torch.no_grad():
        last.weight.zero_()
        last.bias.zero_()
    model = from_network(network.eval(), whole.tokenizer, "planted", "random", "fp32")
    attention, target = ("cross", "the dog ran") if two else ("self", None)
    bare = (edits.WithoutNorm(2),)
    before = own_model.record(model, TEXT, bare, target)
    taken = model.attribute(before, logit_lens.read_stream(before).name, 2, 9)
    parts = {(part.attention, part.layer, part.head): part.value for part in taken.parts}
    for head in range(model.card.n_head):
        after = own_model.record(model, TEXT, (*bare, edits.ZeroHead(2, head, attention)), target)
        lost = full_pass(model, before)[2, 9] - full_pass(model, after)[2, 9]
        assert parts[attention, 2, head] == pytest.approx(float(lost), abs=PASSED)


def test_a_part_is_followed_through_each_norm_with_its_sigma_held(small_model: OwnModel) -> None:
    """The embedding's part, followed by hand: centred, divided by the sigma that each sum had,
    times the gain."""
    recording = own_model.record(small_model, TEXT)
    stream, token, word = recording.streams[0], 3, 11
    vector = stream.at("embed")[token].astype(np.float64)
    for layer, module in enumerate(small_model.network.layers):
        for place, part in (("attn", module.attention_out), ("ffn", module.feed_forward_out)):
            total = stream.at(f"{layer}.{place}.sum")[token].astype(np.float64)
            sigma = np.sqrt(total.var() + part.norm.eps)
            vector = (vector - vector.mean()) / sigma * part.norm.weight.detach().double().numpy()
    taken = attribute(small_model, recording, "encoder", token, word)
    e = small_model.network.embedding.token.weight.detach().double().numpy()
    (value,) = (part.value for part in taken.parts if part.kind == "embedding")
    assert value == pytest.approx(vector @ e[word], abs=SUMMED)


@pytest.mark.parametrize("name", EDITS[:-1])
@torch.inference_mode()
def test_the_direction_back_meets_the_vectors_forward(model: OwnModel, name: str) -> None:
    recording = own_model.record(model, TEXT, edited(model)[name])
    stream, token, word = logit_lens.read_stream(recording).name, 2, 9
    parts = model.attribute(recording, stream, token, word).parts
    direction, offset = word_direction(model, word)
    traced = trace_parts(model, recording, stream, token)
    wanted = {key: float(vector @ direction) for key, vector in traced.items()}
    wanted[BIAS] = wanted.get(BIAS, 0.0) + float(offset)
    keys = [(part.kind, part.layer, part.head, part.attention) for part in parts]
    assert keys == list(wanted)
    assert [part.value for part in parts] == pytest.approx(list(wanted.values()), abs=SUMMED)


def test_groups_keep_the_networks_order_and_every_part_once(small_translator: OwnModel) -> None:
    recording = own_model.record(small_translator, TEXT)
    taken = small_translator.attribute(recording, "decoder", 1, 5)
    groups = logit_lens.groups(taken)
    parts = [f"L{layer} {what}" for layer in range(3) for what in ("heads", "cross-heads", "FFN")]
    assert [group.name for group in groups] == ["embedding", "position", *parts, "biases"]
    together = [part for group in groups for part in group.parts]
    assert sorted(together, key=repr) == sorted(taken.parts, key=repr)
    largest = logit_lens.largest_parts(taken)
    strength = [abs(part.value) for part in largest]
    assert strength == sorted(strength, reverse=True)
    assert len(set(map(logit_lens.part_name, taken.parts))) == len(taken.parts)
    keys = {logit_lens.part_key(part) for part in taken.parts if part.kind == "head"}
    assert keys >= {"cross.2.3", "decoder-self.0.0"}
    rows = list(csv.reader(io.StringIO(to_csv(logit_lens.parts_file(taken)))))
    assert rows[1][0] == logit_lens.part_name(largest[0])
    assert float(rows[-2][-1]) == logit_lens.parts_sum(taken)
    assert float(rows[-1][-1]) == taken.logit and len(rows) == len(taken.parts) + 3


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("model", ["encoder", "decoder"])
@pytest.mark.parametrize("text", SENTENCES)
def test_the_headline_is_of_the_bar_that_speaks_most_for_what_leads(text: str, model: str) -> None:
    """What is said to push most is the longest bar of a head or an FFN on the side of the word that
    leads, and is told toward that word; the head that helps pushes toward it too."""
    run = Run(model, text)
    token = None
    if model == "encoder":
        on = interventions.pair(run)
        run, token = run.under(on.hidden), on.at.token
    on_logit = attribution.logit_parts(run, token)
    panel = attribution.logit(run, token)
    rows = panel.figures[0].rows
    *of_text, biases = [row for row in rows if "smaller" not in row.label]
    assert biases.label == "any text (biases)"
    sizes = [abs(row.values[0]) for row in of_text]
    assert sizes[: attribution.N_PARTS] == sorted(sizes[: attribution.N_PARTS], reverse=True)
    pushing = [row for row in of_text if row.values[0] * on_logit.attribution.logit > 0]
    of_layers = [row for row in pushing if row.label[0] == "L"]
    told = re.match(
        r"(Of what depends on the text, )?(.+?)(, which reads “.+”,)? pushes most: "
        r"toward “(.+?)”, away from “(.+?)”\.( (.+?), which reads “(.+?)”, helps\.)?",
        panel.finding,
    )
    if told is None:
        assert panel.finding.startswith("Many small parts")
        summed = sum(each.value for each in on_logit.attribution.parts if each.kind != "bias")
        assert ("only by" in panel.finding) == (summed * on_logit.attribution.logit <= 0)
        return
    (selected,) = [row for row in of_text if row.selected]
    assert selected == max(of_layers, key=lambda row: abs(row.values[0]))
    assert label_of(told[2]) == selected.label.partition(": ")[0]
    assert bool(told[1]) == (abs(biases.values[0]) > abs(selected.values[0]))
    pair = on_logit.word, on_logit.against
    assert (told[4], told[5]) == (pair if selected.values[0] > 0 else pair[::-1])
    if told[6]:
        assert not told[3] and told[8] in text
        parts = {logit_lens.part_name(each): each for each in on_logit.attribution.parts}
        assert parts[label_of(told[7])].value * on_logit.attribution.logit > 0


def label_of(name: str) -> str:
    """A part of a sentence as the label of its bar: "head 7 of layer 1", "the FFN of layer 3"."""
    layer = re.search(r"of layer (\d+)", name)
    short = re.sub(r"^[Tt]he | of layer .*", "", name)
    short = re.sub(r"^[Hh]ead (\d)", r"H\1", short)
    return f"L{layer[1]} {short}" if layer else name[4:]


def test_of_the_first_sentence_one_head_reads_the_word_that_decides() -> None:
    on = interventions.pair(Run("encoder", "The waiter brought the soup but it was cold."))
    finding = attribution.logit(Run("encoder", on.plain.text).under(on.hidden), on.at.token).finding
    assert finding.startswith(
        "Head 7 of layer 1, which reads “cold”, pushes most: toward “it”, away from “he”."
    )
