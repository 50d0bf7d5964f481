"""The logit lens and a logit's parts: the last row is the model's answer, the parts make the logit,
and the page shows just that."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from bounds import DOUBLE, DOUBLE_LONG, PASSED, STORED, SUMMED, TINY, TOTAL
from conftest import HOSTILE, on_page, read_once
from driver import MARKS, Visitor
from streamlit.testing.v1 import AppTest

from explorer.analysis import heads as naming
from explorer.analysis import lens as reading
from explorer.analysis.csv import meant, to_csv
from explorer.components import wire
from explorer.memory import models, passes, shelf
from models import edits, library, own
from models.examples import DEFAULT_TEXT
from models.own import Handle, handle_of
from models.prediction import Lens
from models.readouts import readout
from models.recording import Recording
from models.transformer import EncoderDecoder

ROOT = Path(__file__).resolve().parent.parent
TEXT = "the cat sat on the mat"
KINDS = ["small_handle", "small_decoder", "small_translator"]
HEAD_OF = {"small_handle": "self", "small_decoder": "self", "small_translator": "cross"}
SHIPPED = ["encoder", "decoder", "translator"]


@pytest.fixture(params=KINDS)
def handle(request: pytest.FixtureRequest) -> Handle:
    return request.getfixturevalue(request.param)


def every_edit(handle: Handle) -> dict[str, tuple[edits.Edit, ...]]:
    attention = "cross" if isinstance(handle.model, EncoderDecoder) else "self"
    made = {
        "plain": (),
        "no head": (edits.ZeroHead(1, 2, attention),),
        "no last head": (edits.ZeroHead(2, 0, attention),),
        "no norm": (edits.WithoutNorm(),),
        "no norm in one layer": (edits.WithoutNorm(1),),
        "no residual": (edits.WithoutResidual(),),
        "no residual in one layer": (edits.WithoutResidual(1),),
        "no positions": (edits.WithoutPositions(),),
        "all at once": (
            edits.ZeroHead(0, 1, attention),
            edits.WithoutNorm(2),
            edits.WithoutResidual(1),
            edits.WithoutPositions(),
        ),
    }
    return made | ({"hidden": (edits.HideToken(2),)} if handle.tokenizer.mask is not None else {})


EDITS = [
    "plain",
    "no head",
    "no last head",
    "no norm",
    "no norm in one layer",
    "no residual",
    "no residual in one layer",
    "no positions",
    "all at once",
]


@torch.inference_mode()
def full_pass(handle: Handle, recording: Recording) -> torch.Tensor:
    """Logits (token, id) of a bare pass of the model, with no tape and no recording in between."""
    model, stream = handle.model, reading.read_stream(recording)
    ids = torch.tensor(stream.ids)[None]
    if isinstance(model, EncoderDecoder):
        memory = model.encode(
            torch.tensor(recording.stream("encoder").ids)[None], edits=recording.edits
        )
        return model.logits(model.decode(ids, memory, edits=recording.edits)[0])
    return model.logits(model(ids, edits=recording.edits)[0])


def lens_of(handle: Handle, recording: Recording, top: int = 10) -> Lens:
    return library.lens(handle, recording, reading.read_stream(recording).name, top)


# ---- the lens ----------------------------------------------------------------


@pytest.mark.parametrize("name", EDITS)
def test_the_last_row_is_the_models_answer(handle: Handle, name: str) -> None:
    recording = own.record(handle, TEXT, every_edit(handle)[name])
    found, logits = lens_of(handle, recording), full_pass(handle, recording)
    logprobs, ids = logits.double().log_softmax(-1).topk(10)
    assert np.array_equal(found.top_ids[-1], ids.numpy())
    np.testing.assert_allclose(found.top_logprobs[-1], logprobs.numpy(), atol=SUMMED)
    assert np.array_equal(found.final_id, logits.argmax(-1).numpy())
    assert not found.rank[-1].any() and not found.kl[-1].any()


def test_every_row_is_recomputed_from_the_state_alone(handle: Handle) -> None:
    recording = own.record(handle, TEXT)
    stream, found = reading.read_stream(recording), lens_of(handle, recording)
    e, b = (
        parameter.detach().double().numpy()
        for parameter in (handle.model.embedding.token.weight, handle.model.readout_bias)
    )

    def distribution(site: str) -> np.ndarray:
        logits = stream.at(site).astype(np.float64) @ e.T + b
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    final = distribution(stream.sites[-1])
    for at, site in enumerate(found.sites):
        here = distribution(site)
        for token in range(len(stream.tokens)):
            cell = reading.cell(found, at, token)
            answer = int(final[token].argmax())
            assert cell.final_id == answer
            assert cell.rank == int((here[token] > here[token, answer]).sum())
            assert cell.probability == pytest.approx(here[token, answer], rel=TOTAL)
            assert cell.kl == pytest.approx(
                float((final[token] * np.log(final[token] / here[token])).sum()), abs=PASSED
            )
            np.testing.assert_allclose(
                cell.probabilities, np.sort(here[token])[::-1][:10], rtol=TOTAL
            )
            np.testing.assert_allclose(here[token, cell.ids], cell.probabilities, rtol=TOTAL)
            assert cell.probabilities.sum() + cell.others == pytest.approx(1, abs=DOUBLE)


def test_there_is_a_row_for_every_state_in_the_order_the_token_passes_them(handle: Handle) -> None:
    found = lens_of(handle, own.record(handle, TEXT))
    per_layer = (
        ["attention", "cross", "FFN"]
        if isinstance(handle.model, EncoderDecoder)
        else ["attention", "FFN"]
    )
    expected = [
        "embedding",
        "+ position",
        *(f"L{layer} {place}" for layer in range(3) for place in per_layer),
    ]
    assert [reading.site_name(site) for site in found.sites] == expected
    bare = lens_of(
        handle, own.record(handle, TEXT, (edits.WithoutNorm(1), edits.WithoutPositions()))
    )
    assert [reading.site_name(site) for site in bare.sites] == [
        name for name in expected if name != "+ position"
    ]
    assert reading.site_words("1.attn.sum") == "After the attention of layer 1"
    assert [reading.site_name(site) for site in ("embed.normed", "final.normed")] == [
        "input norm",
        "last norm",
    ]
    with pytest.raises(ValueError, match="is no state of a stream"):
        reading.site_name("0.attn.wrote")


def test_what_would_be_right_is_the_next_token_or_the_hidden_one(
    small_handle: Handle, small_decoder: Handle, small_translator: Handle
) -> None:
    for handle in (small_decoder, small_translator):
        recording = own.record(handle, TEXT)
        ids = reading.read_stream(recording).ids
        assert reading.asks_next(recording)
        assert reading.truth(recording, recording).tolist() == [*ids[1:], -1]
        assert reading.asked_token(recording) == len(ids) - 1
    plain, hidden = (
        own.record(small_handle, TEXT),
        own.record(small_handle, TEXT, (edits.HideToken(2),)),
    )
    assert not reading.asks_next(plain) and reading.truth(plain, plain).tolist() == [-1] * len(
        plain.streams[0].ids
    )
    right = reading.truth(hidden, plain)
    assert right[2] == plain.streams[0].ids[2] and (np.delete(right, 2) == -1).all()
    assert (
        reading.asked_token(plain) == 1 and reading.asked_token(own.record(small_handle, "")) == 0
    )
    with pytest.raises(ValueError, match="with nothing hidden"):
        reading.truth(plain, own.record(small_handle, "the cat"))


def test_the_file_holds_every_cell(small_decoder: Handle) -> None:
    recording = own.record(small_decoder, 'the cat <b>, "sat"')
    found, stream = lens_of(small_decoder, recording), recording.streams[0]
    ids = reading.vocabulary(found, found.final_id, 10)
    labels = dict(zip(ids.tolist(), library.labels(small_decoder, ids)))
    made = to_csv(reading.file_table(found, stream.tokens, labels), ("one\nline", "two"))
    rows = list(csv.DictReader(io.StringIO(made)))
    assert rows[0]["about"] == "one line | two"
    assert len(rows) == len(found.sites) * len(stream.tokens)
    for row, (site, token) in zip(rows, np.ndindex(found.rank.shape)):
        assert (row["site"], int(row["token"]), meant(row["token text"])) == (
            found.sites[site],
            token,
            stream.tokens[token],
        )
        assert int(row["rank of final answer"]) == found.rank[site, token] + 1
        assert float(row["KL to final (nats)"]) == found.kl[site, token]
        assert float(row["probability of final answer"]) == np.exp(found.logprob[site, token])
        for rank in range(10):
            assert meant(row[f"word {rank + 1}"]) == labels[found.top_ids[site, token, rank]]
            assert float(row[f"probability {rank + 1}"]) == np.exp(
                found.top_logprobs[site, token, rank]
            )


# ---- a logit's parts ---------------------------------------------------------


@pytest.mark.parametrize("name", [*EDITS, "hidden"])
def test_the_parts_add_up_to_the_logit_of_the_bare_pass(handle: Handle, name: str) -> None:
    if name not in every_edit(handle):
        pytest.skip("this model hides no words")
    recording = own.record(handle, TEXT, every_edit(handle)[name])
    stream, logits = reading.read_stream(recording), full_pass(handle, recording)
    for token in (0, 2, len(stream.tokens) - 1):
        for word, against in ((5, None), (int(logits[token].argmax()), None), (7, 31)):
            taken = library.attribute(handle, recording, stream.name, token, word, against)
            expected = float(
                logits[token, word] - (0 if against is None else logits[token, against])
            )
            assert taken.logit == pytest.approx(expected, abs=PASSED)
            assert reading.total(taken) == pytest.approx(expected, abs=PASSED)
            assert sum(group.value for group in reading.groups(taken)) == pytest.approx(
                reading.total(taken), abs=DOUBLE_LONG
            )


def test_a_head_that_is_off_has_no_part(handle: Handle) -> None:
    removed = every_edit(handle)["no last head"]
    name = reading.read_stream(own.record(handle, TEXT)).name

    def heads(edits_on: tuple[edits.Edit, ...]) -> set[str]:
        parts = library.attribute(handle, own.record(handle, TEXT, edits_on), name, 2, 9).parts
        return {reading.part_key(part) for part in parts if part.kind == "head"}

    assert heads(()) - heads(removed) == {f"{removed[0].attention}.2.0"}


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("model", SHIPPED)
def test_the_parts_of_a_shipped_model_add_up_too(model: str) -> None:
    handle = models.handle(model)
    recording = library.record(handle, DEFAULT_TEXT)
    stream, logits = reading.read_stream(recording), full_pass(handle, recording)
    for token in range(0, len(stream.tokens), 4):
        word, against = logits[token].topk(2).indices.tolist()
        for other in (None, against):
            taken = library.attribute(handle, recording, stream.name, token, word, other)
            expected = float(logits[token, word] - (0 if other is None else logits[token, other]))
            assert reading.total(taken) == pytest.approx(expected, abs=PASSED)


@pytest.mark.parametrize("kind", KINDS)
def test_without_norm_and_ffn_taking_a_head_away_takes_its_part_from_the_logit(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """A planted case: in a last layer that only adds, what a head put in is just what goes when it
    goes."""
    whole = request.getfixturevalue(kind)
    model = type(whole.model)(whole.model.config)
    model.load_state_dict(whole.model.state_dict())
    last = (model.decoder if isinstance(model, EncoderDecoder) else model.layers)[-1]
    with torch.no_grad():
        last.feed_forward.w_2.weight.zero_()
        last.feed_forward.w_2.bias.zero_()
    handle = handle_of(model.eval(), whole.tokenizer, "planted", "random", "fp32")
    target = "the dog ran" if isinstance(model, EncoderDecoder) else None
    bare = (edits.WithoutNorm(2),)
    before = own.record(handle, TEXT, bare, target)
    stream, attention = reading.read_stream(before), HEAD_OF[kind]
    taken = library.attribute(handle, before, stream.name, 2, 9)
    parts = {(part.attention, part.layer, part.head): part.value for part in taken.parts}
    for head in range(handle.card.n_head):
        after = own.record(handle, TEXT, (*bare, edits.ZeroHead(2, head, attention)), target)
        lost = full_pass(handle, before)[2, 9] - full_pass(handle, after)[2, 9]
        assert parts[attention, 2, head] == pytest.approx(float(lost), abs=PASSED)
        place = "cross" if attention == "cross" else "attn"
        written = (
            stream.at(f"2.{place}.sum")[2] - reading.read_stream(after).at(f"2.{place}.sum")[2]
        )
        e = handle.model.embedding.token.weight.detach().numpy()
        assert parts[attention, 2, head] == pytest.approx(float(written @ e[9]), abs=PASSED)


def test_a_part_is_followed_through_each_norm_with_its_sigma_held(small_handle: Handle) -> None:
    """The embedding's part, followed by hand: centred, divided by the sigma that each sum had,
    times the gain."""
    recording = own.record(small_handle, TEXT)
    stream, token, word = recording.streams[0], 3, 11
    vector = stream.at("embed")[token].astype(np.float64)
    for layer, module in enumerate(small_handle.model.layers):
        for place, norm in (
            ("attn", module.attention_out.norm),
            ("ffn", module.feed_forward_out.norm),
        ):
            sigma = np.sqrt(
                stream.at(f"{layer}.{place}.sum")[token].astype(np.float64).var() + norm.eps
            )
            vector = (vector - vector.mean()) / sigma * norm.weight.detach().double().numpy()
    taken = readout.attribute(small_handle, recording, "encoder", token, word)
    e = small_handle.model.embedding.token.weight.detach().double().numpy()
    assert next(part.value for part in taken.parts if part.kind == "embedding") == pytest.approx(
        vector @ e[word], abs=SUMMED
    )


def test_groups_keep_the_order_of_the_network_and_every_part_once(small_translator: Handle) -> None:
    recording = own.record(small_translator, TEXT)
    taken = library.attribute(small_translator, recording, "decoder", 1, 5)
    names = [group.name for group in reading.groups(taken)]
    assert names == [
        "embedding",
        "position",
        *(f"L{layer} {what}" for layer in range(3) for what in ("heads", "cross-heads", "FFN")),
        "biases",
    ]
    together = [part for group in reading.groups(taken) for part in group.parts]
    assert sorted(together, key=repr) == sorted(taken.parts, key=repr)
    strength = [abs(part.value) for part in reading.largest(taken)]
    assert strength == sorted(strength, reverse=True) and len(
        set(map(reading.part_name, taken.parts))
    ) == len(taken.parts)
    assert {reading.part_key(part) for part in taken.parts if part.kind == "head"} >= {
        "cross.2.3",
        "decoder-self.0.0",
    }
    rows = list(csv.reader(io.StringIO(to_csv(reading.parts_file(taken)))))
    assert rows[1][0] == reading.part_name(reading.largest(taken)[0])
    assert (
        float(rows[-2][-1]) == reading.total(taken)
        and float(rows[-1][-1]) == taken.logit
        and len(rows) == len(taken.parts) + 3
    )


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    """The page, opened at an address."""
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=60)
    for name, value in asked.items():
        app.query_params[name] = value
    app.switch_page(str(ROOT / "pages" / "predictions.py"))
    return clean(app.run())


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


def sent(app: AppTest, name: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the component of that name was sent."""
    return next(
        wire.decode(each.proto.bytes)
        for each in on_page(app)
        if each.proto.component_name == f"headlight.{name}"
    )


def bars_of(app: AppTest, about: str) -> dict:
    told = [
        wire.decode(each.proto.bytes)[0]
        for each in on_page(app)
        if each.proto.component_name == "headlight.bars"
    ]
    return next(header for header in told if header["about"].startswith(about))


def check_table(app: AppTest, recording: Recording) -> None:
    """The table holds the lens of this recording, cell by cell."""
    found = lens_of(models.handle(recording.model.name), recording)
    header, blocks = sent(app, "lens")
    tokens = reading.read_stream(recording).tokens
    assert tuple(header["tokens"]) == tokens and len(header["sites"]) == len(found.sites)
    shape = (len(found.sites), len(tokens))
    labels = np.array(header["labels"], dtype=object)[
        blocks["words"].reshape(*shape, header["top"])
    ]
    expected = models.labels(recording.model.name, found.top_ids[..., : header["top"]].ravel())
    assert labels.ravel().tolist() == expected
    np.testing.assert_allclose(
        blocks["logp"].reshape(*shape, -1), found.top_logprobs[..., : header["top"]], atol=STORED
    )
    assert np.array_equal(blocks["rank"].reshape(shape), found.rank)
    np.testing.assert_allclose(blocks["kl"].reshape(shape), found.kl, rtol=STORED, atol=TINY)
    np.testing.assert_allclose(blocks["answer"].reshape(shape), found.logprob, rtol=STORED)


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_read_at_every_site_of_a_decoder(text: str) -> None:
    app = opened(model="decoder", text=text)
    recording = passes.record("decoder", text)
    check_table(app, recording)
    assert (
        sent(app, "lens")[0]["right"][-1] == -1
        and sent(app, "lens_way")[0]["at"] == len(recording.streams[0].tokens) - 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["empty", "script", "bidi override", "special tokens"])
@pytest.mark.parametrize("model", ["encoder", "translator"])
def test_hostile_texts_are_read_by_the_other_models(model: str, name: str) -> None:
    app = opened(model=model, text=HOSTILE[name], hidden="none")
    check_table(app, passes.record(model, HOSTILE[name]))


@pytest.mark.slow
def test_words_typed_for_the_decoder_are_what_is_read_and_are_named() -> None:
    app = opened(model="translator", text="The dog is big.", target="Le chien")
    check_table(app, passes.record("translator", "The dog is big.", (), "Le chien"))
    assert any("reads your own words, “Le chien”" in each.value for each in app.info)
    clean(app.button(key="drop target").click().run())
    check_table(app, passes.record("translator", "The dog is big."))
    assert not any("your own words" in each.value for each in app.info)
    app = opened(model="translator", target="la rue " * 300)
    assert any("Your own words are" in each.value for each in app.warning)


def test_a_lens_weighs_what_its_arrays_weigh() -> None:
    recording = passes.record("decoder", "Plants eat animals, and animals eat plants")
    found = passes.lens(recording, "decoder")
    weights = [weight for key, (value, weight) in shelf._shelf.held.items() if value is found]
    arrays = (
        found.top_ids,
        found.top_logprobs,
        found.final_id,
        found.rank,
        found.logprob,
        found.kl,
    )
    assert 0 <= weights[0] - sum(each.nbytes for each in arrays) < 5_000  # labels and the like


@pytest.mark.slow
def test_a_model_that_says_no_words_is_told_and_another_shown() -> None:
    app = opened(model="minilm", text="Apples fall.")
    assert any(
        "minilm has no readout" in each.value and "this page shows **encoder**" in each.value
        for each in app.caption
    )
    assert app.session_state["model"] == "encoder" and bars_of(app, "What fits")["rows"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, state, parts",
    [
        ("induction-no-norm", "This model has no LayerNorm", "there is no LayerNorm on the way"),
        (
            "induction-no-residual",
            "a LayerNorm follows every sub-layer",
            "only what the last sub-layer wrote",
        ),
        (
            "induction-no-positions",
            "a LayerNorm follows every sub-layer",
            "the sum of what was written",
        ),
        ("grammar", "This model is pre-LN", "sent through 1 LayerNorm."),
    ],
)
def test_every_arrangement_is_read_and_said_as_it_is(
    model: str, state: str, parts: str, gpt2_on_pages: Handle
) -> None:
    app = opened(model=model, text="b a c d b")
    recording = passes.record(model, "b a c d b")
    check_table(app, recording)
    said = " ".join(each.value for each in app.markdown)
    assert state in said and parts in said
    found = passes.lens(recording, "decoder")
    taken = passes.attribution(
        recording, "decoder", len(recording.streams[0].tokens) - 1, int(found.final_id[-1])
    )
    assert reading.total(taken) == pytest.approx(taken.logit, abs=TOTAL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family, name", [("llama", "grammar"), ("bert", "grammar-masked"), ("bart", "reverse")]
)
def test_a_model_in_its_own_code_shows_what_it_has_on_every_page(
    family: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tiny

    from models.pretrained.handle import load

    monkeypatch.setitem(models._handles, name, load(str(tiny.build(family, tmp_path)), name=name))
    asked = {
        "predictions": [{}],
        "translation": [{}],
        "embeddings": [{}, {"sums": "Sums"}],
        "residual": [{"flow": flow} for flow in ("Writes", "LayerNorm", "Heads", "Gradient")],
        "positions": [
            {"ask": ask} for ask in ("Waves", "Distance", "Shift", "Sentence", "Order", "Adding")
        ],
    }
    said = ""
    for page, choices in asked.items():
        for choice in choices:
            app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=60)
            for key, value in {"model": name, "text": "the cat sat", **choice}.items():
                app.query_params[key] = value
            app.switch_page(str(ROOT / "pages" / f"{page}.py"))
            said += " ".join(each.value for each in (*clean(app.run()).markdown, *app.info))
    assert "in its own code" in said
    assert "cannot be taken apart into a sum" not in said and "parts add up to" in said
    assert ("of these changes (of their squares)" in said) == (family == "bert")
    assert "It is taken once, as the model is" in said and "Nothing can be written" not in said
    assert ("turns queries and keys by their positions" in said) == (family == "llama")


@pytest.mark.slow
def test_a_held_cell_opens_with_words_that_add_up_to_one() -> None:
    app = opened(model="decoder", text="Plants eat animals", site="1.attn.normed", token="2")
    recording = passes.record("decoder", "Plants eat animals")
    found = passes.lens(recording, "decoder")
    cell = reading.cell(found, found.sites.index("1.attn.normed"), 2)
    listed = bars_of(app, "The likeliest words of this cell")["rows"]
    assert [row["label"] for row in listed[:-1]] == models.labels("decoder", cell.ids)
    assert sum(row["value"] for row in listed) == pytest.approx(1) and len(listed) == 11
    way = sent(app, "lens_way")[0]
    assert (way["site"], way["at"]) == (found.sites.index("1.attn.normed"), 2)
    assert [one["rank"] for one in way["way"]] == found.rank[:, 2].tolist()
    assert any(f"**{cell.kl:.3f} nats**" in told.value for told in app.markdown)
    assert app.query_params["site"] in (
        "1.attn.normed",
        ["1.attn.normed"],
    )  # what was asked stays in the address


@pytest.mark.slow
def test_choosing_a_cell_sends_nothing_of_the_table_and_leaves_hidden_what_is() -> None:
    app = opened(text="The red fox saw a small bird")
    before = next(
        each.proto.bytes for each in on_page(app) if each.proto.component_name == "headlight.lens"
    )
    hidden = sent(app, "lens")[0]["tokens"].index("[MASK]")
    assert sent(app, "lens_way")[0]["at"] == hidden
    app.session_state["site"], app.session_state["token"], app.session_state["hidden"] = (
        "0.ffn.normed",
        "2",
        str(hidden),
    )
    clean(app.run())
    after = next(
        each.proto.bytes for each in on_page(app) if each.proto.component_name == "headlight.lens"
    )
    assert before == after and sent(app, "lens_way")[0]["at"] == 2


@pytest.mark.slow
def test_a_long_text_stays_light() -> None:
    text = ("the cat saw a dog near the old house and " * 60).strip()
    app = opened(model="decoder", text=text)
    proto = next(
        each.proto for each in on_page(app) if each.proto.component_name == "headlight.lens"
    )
    assert len(sent(app, "lens")[0]["tokens"]) == 512 and len(proto.bytes) < 400_000


def test_a_decoders_head_is_called_in_the_words_of_the_attention_page() -> None:
    """A broad head of a decoder looks at the tokens so far, as the Attention page has it."""
    text = "She opened the door and looked at the old"
    recording = library.record(read_once("decoder"), text)
    attention = recording.attention[0]
    meanings = naming.meanings(recording, attention)
    heads = naming.describe(recording, attention)
    broad = next(head for head in heads if head.name == "broad")
    app = opened(model="decoder", text=text, part=f"self.{broad.layer}.{broad.head}")
    said = next(each.value for each in app.markdown if "is called **broad**" in each.value)
    assert meanings["broad"].rstrip(".") in said and "so far" in said


@pytest.mark.slow
def test_the_bars_are_the_parts_of_the_word_asked_for() -> None:
    handle, text = models.handle("decoder"), "The cat sat on the"
    recording = passes.record("decoder", text)
    word, against = (models.first_token("decoder", typed)[0] for typed in ("mat", "floor"))
    app = opened(model="decoder", text=text, word=str(word), against=str(against), part="self.3.1")
    taken = library.attribute(
        handle, recording, "decoder", len(recording.streams[0].tokens) - 1, word, against
    )
    listed = bars_of(app, "Parts of the logit")
    values = {reading.part_name(part): part.value for part in taken.parts}
    rest = next(row for row in listed["rows"] if row["tone"] == "rest")
    named = [row for row in listed["rows"] if row is not rest]
    assert all(row["value"] == pytest.approx(values[row["label"]]) for row in named)
    assert sum(row["value"] for row in listed["rows"]) == pytest.approx(taken.logit, abs=PASSED)
    assert listed["chosen"] == "self.3.1" and "self.3.1" in [row["key"] for row in named]
    summed = sent(app, "lens_sum")[0]
    assert (
        sum(group["value"] for group in summed["groups"])
        == pytest.approx(summed["total"])
        == pytest.approx(taken.logit, abs=PASSED)
    )
    told = " ".join(each.value for each in app.markdown)
    assert (
        f"{taken.logit:+.5f}".replace("-", "−") in told
        and "less that of **floor**" in told
        and "**Layer 3, head 1** is called" in told
    )
    (link,) = app.get("page_link")
    assert (
        "layer=3" in link.proto.query_string
        and "head=1" in link.proto.query_string
        and "model=decoder" in link.proto.query_string
    )


@pytest.mark.slow
def test_without_a_choice_the_word_is_the_models_own_and_a_word_is_not_compared_with_itself() -> (
    None
):
    app = opened(model="decoder", text="The cat sat on the")
    found = passes.lens(passes.record("decoder", "The cat sat on the"), "decoder")
    best = models.labels("decoder", [found.final_id[-1]])[0]
    assert (
        app.selectbox(key="word field").options[0].endswith(best)
        and app.selectbox(key="against field").options[0] == "nothing"
    )
    assert len(app.selectbox(key="word field").options) == 11
    same = opened(model="decoder", text="The cat sat on the", against=str(found.final_id[-1]))
    assert any("compared with itself" in told.value for told in same.info)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"token": "999", "site": "9.ffn.normed"},
        {"site": "<b>", "lens": "?", "word": "-1", "against": "9" * 4},
        {"part": "self.9.9", "word": "99999"},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    app = opened(model="decoder", text="The cat", **asked)
    assert (
        sent(app, "lens")[0]["measure"] == "Top word"
        and sent(app, "lens_way")[0]["site"] == len(sent(app, "lens")[0]["sites"]) - 1
    )


@pytest.mark.slow
def test_the_same_words_split_otherwise_are_another_cause() -> None:
    """What is kept beside a recording is not handed to one of the same text whose tokens are
    others."""
    recording = passes.record("decoder", "the cat")
    stream = recording.streams[0]
    import dataclasses

    other = dataclasses.replace(
        recording, streams=(dataclasses.replace(stream, ids=np.array([*stream.ids[:-1], 5])),)
    )
    assert shelf.name_of(recording) != shelf.name_of(other)


# ---- journeys ----------------------------------------------------------------


def journey(test):
    for mark in MARKS:
        test = mark(test)
    return test


SIXTY = (
    "When the old farmer came back from the market he saw that his dog had opened the gate and "
    "that all the sheep were gone, so he called his son and together they walked along the river "
    "until it was dark, and only then did they hear a bell far away behind the second hill."
)


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    visitor.page.goto(f"{visitor.server}/predictions?{urlencode({'model': 'decoder', **asked})}")
    visitor.page.wait_for_selector(".lens.way[data-token]")
    visitor.page.wait_for_selector(".lens .say[aria-selected=true]")
    at_rest(visitor)
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = [error for error in visitor.errors if "404" not in error]
    return visitor


def at_rest(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")


def cell_at(visitor: Visitor, site: int, token: int):
    return visitor.page.locator(
        f".lens .row[aria-rowindex='{site + 2}'] .say[aria-colindex='{token + 2}']"
    )


def held(visitor: Visitor) -> str:
    return visitor.page.locator(".lens .say[aria-selected=true]").get_attribute("aria-label")


@journey
def test_a_cell_is_read_by_pointing_and_held_by_a_click_and_the_link_opens_it_again(
    visitor: Visitor, browser, server: str
) -> None:
    text = "The cat sat on the old mat"
    visited(visitor, text=text)
    recording = passes.record("decoder", text)
    found, tokens = passes.lens(recording, "decoder"), recording.streams[0].tokens
    shown = visitor.page.locator(".lens .row.last .say b").all_inner_texts()
    assert shown == models.labels(
        "decoder", full_pass(models.handle("decoder"), recording).argmax(-1).tolist()
    ), "the last row is what the model says"
    cell_at(visitor, 4, 3).hover()
    says = visitor.page.locator(".lens .says").inner_text()
    cell = reading.cell(found, 4, 3)
    best = models.labels("decoder", cell.ids[:1])[0]
    assert says.startswith(f"After the attention of layer 1, at {tokens[3]} (token 3): {best}")
    assert (
        f"rank {cell.rank + 1:,}, " in says
        and f"{cell.probabilities[0]:.4f}" in says
        and f"{cell.kl:.2f} nats" in says
    )
    cell_at(visitor, 4, 3).click()
    visitor.page.wait_for_url("**site=1.attn.normed**")
    visitor.page.wait_for_url("**token=3**")
    at_rest(visitor)
    visitor.page.wait_for_selector(".lens.way tr.on button[data-at='4']")
    assert held(visitor).startswith(f"After the attention of layer 1, token 3, {tokens[3]}")
    other = visited(Visitor(browser, server), text=text, site="1.attn.normed", token="3")
    assert held(other) == held(visitor)
    assert (
        other.page.locator(".lens.way tr.on").inner_text()
        == visitor.page.locator(".lens.way tr.on").inner_text()
    )
    assert (
        other.page.locator(".lens .says")
        .inner_text()
        .startswith(f"After the attention of layer 1, at {tokens[3]} (token 3): {best}")
    )
    other.context.close()


@journey
def test_arrow_keys_read_the_table_and_enter_holds_a_cell(visitor: Visitor) -> None:
    text = "The cat sat on the old mat"
    visited(visitor, text=text)
    last_site, last = (
        len(sent_sites(text)) - 1,
        len(passes.record("decoder", text).streams[0].tokens) - 1,
    )
    visitor.page.locator(".lens .say[tabindex='0']").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft"):
        visitor.page.keyboard.press(key)
    assert f"(token {last - 1})" in visitor.page.locator(".lens .says").inner_text()
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url(f"**token={last - 1}**")
    visitor.page.wait_for_selector(f".lens.way tr.on button[data-at='{last_site - 2}']")
    at_rest(visitor)
    focused = visitor.page.evaluate(
        "() => { let a = document.activeElement; while (a?.shadowRoot) a = "
        "a.shadowRoot.activeElement; return a?.getAttribute('aria-label') }"
    )
    assert focused == held(visitor), "the table keeps the focus"
    visitor.page.keyboard.press("Home")
    assert "(token 0)" in visitor.page.locator(".lens .says").inner_text()
    assert visitor.page.locator(".lens .say[tabindex='0']").count() == 1


def sent_sites(text: str) -> tuple[str, ...]:
    return passes.lens(passes.record("decoder", text), "decoder").sites


@journey
@pytest.mark.parametrize("width", [1440, 390])
def test_sixty_tokens_scroll_inside_and_the_page_does_not(browser, server: str, width: int) -> None:
    visitor = visited(
        Visitor(browser, server, viewport={"width": width, "height": 900}), text=SIXTY, token="40"
    )
    page = visitor.page
    assert len(passes.record("decoder", SIXTY).streams[0].tokens) >= 55
    assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    scroll = page.locator(".lens .scroll")
    assert scroll.evaluate("e => e.scrollWidth > 2 * e.clientWidth")
    assert (
        page.locator(".lens .say b").first.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
        >= 14
    )

    def in_sight(selector: str) -> bool:
        return scroll.evaluate(
            """(e, selector) => {
            const [side, one] = [".name", selector].map(
              (each) => e.querySelector(each).getBoundingClientRect());
            const { right } = e.getBoundingClientRect();
            return one.left >= side.right - 1 && one.right <= right + 1; }""",
            selector,
        )

    assert in_sight(".say[aria-selected=true]") and in_sight(".head.on"), (
        "the column that is held is in sight"
    )
    page.locator(".lens .say[tabindex='0']").focus()
    for _ in range(14):
        page.keyboard.press("ArrowRight")
    assert in_sight(".say:focus"), "the keys bring their column into sight"
    left = page.locator(".lens .row .name").first.bounding_box()["x"]
    assert abs(left - scroll.bounding_box()["x"]) < 3, "the heads of the rows stay"
    assert not visitor.errors
    visitor.context.close()


@journey
def test_a_word_is_typed_and_a_head_is_named_and_opened_on_the_attention_page(
    visitor: Visitor,
) -> None:
    text = "The cat sat on the"
    visited(visitor, text=text)
    page = visitor.page
    field = page.get_by_role("combobox", name="The word")
    field.click()
    field.fill("mat and more")
    page.keyboard.press("Enter")
    word, n = models.first_token("decoder", "mat and more")
    page.wait_for_url(f"**word={word}**")
    page.wait_for_selector(
        f"text=is {n} tokens to this model; the first, {models.labels('decoder', [word])[0]}, "
        "is taken"
    )
    at_rest(visitor)
    bar = page.locator(".bars button.row[data-key^='self.']").first
    key = bar.get_attribute("data-key")
    bar.click()
    page.wait_for_url(f"**part={key}**")
    _, layer, head = key.split(".")
    page.wait_for_selector(f"text=Layer {layer}, head {head} is called")
    page.get_by_role("link", name="Open it on the Attention page").click()
    page.wait_for_selector(".head[data-token]")
    page.wait_for_selector(f"h2:has-text('Layer {layer}, head {head}')")
    assert page.locator("textarea").first.input_value() == text
    pusher = page.locator(".way button", has_text="pushed by")
    layer, head = re.search(r"L(\d+) H(\d+)", pusher.inner_text()).groups()
    pusher.click()
    page.wait_for_url(f"**/predictions?**part=self.{layer}.{head}**")
    page.wait_for_selector(f"text=Layer {layer}, head {head} is called")


@journey
@pytest.mark.parametrize("name", ["script", "bold", "bidi override", "empty", "emoji", "control"])
def test_hostile_text_stands_in_the_table_as_it_is(name: str, visitor: Visitor) -> None:
    visited(visitor, text=HOSTILE[name])
    assert visitor.page.title() == "Predict · Headlight"
    tokens = passes.record("decoder", HOSTILE[name]).streams[0].tokens
    shown = visitor.page.locator(".lens .head .reads").all_inner_texts()
    assert shown and all(label in tokens for label in shown)


@journey
def test_looking_at_a_word_does_not_hide_it_and_the_numbers_leave_as_files(
    visitor: Visitor,
) -> None:
    text = "The red fox saw a small bird"
    visited(visitor, model="encoder", text=text)
    page = visitor.page
    before = page.locator(".lens .row.last .say b").all_inner_texts()
    hidden = page.locator(".lens .head .reads").all_inner_texts().index("[MASK]")
    cell_at(visitor, 5, 2).click()
    page.wait_for_url("**token=2**")
    page.wait_for_selector(".lens.way h4:has-text('(token 2)')")
    at_rest(visitor)
    assert (
        page.locator(".lens .head .reads").all_inner_texts().index("[MASK]") == hidden
        and f"hidden={hidden}" in page.url
    )
    assert page.locator(".lens .row.last .say b").all_inner_texts() == before

    def download(what: str) -> list[list[str]]:
        lines = visitor.export(f"{what} as CSV").read_text("utf-8").splitlines()
        return [row for row in csv.reader(lines) if not row[0].startswith("#")]

    recording = passes.record("encoder", text, (edits.HideToken(hidden),))
    found = passes.lens(recording, "encoder")
    rows = download("Every number of the lens")
    assert len(rows) == 1 + found.rank.size and float(rows[1][6]) == found.kl[0, 0]
    taken = library.attribute(
        models.handle("encoder"), recording, "encoder", 2, int(found.final_id[2])
    )
    rows = download(f"All {len(taken.parts)} parts")
    assert (
        float(rows[-2][-2]) == pytest.approx(taken.logit, abs=PASSED)
        and len(rows) == len(taken.parts) + 3
    )
