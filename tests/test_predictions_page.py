"""The Predictions page, what fills a gap and what comes next: every probability is the bare
model's, and all of them add up to 1."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Callable
from math import exp, isclose, log
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from bounds import DOUBLE, DOUBLE_LONG, PASSED, SUMMED, THREE_DECIMALS
from conftest import HOSTILE, on_page, read_once, typed
from driver import MARKS, Visitor
from streamlit.testing.v1 import AppTest

from explorer.analysis import predictions as numbers
from explorer.analysis.csv import to_csv
from explorer.analysis.numbers import power_of_e
from explorer.components import bars, strip, wire
from explorer.memory import choices, drafts, models
from explorer.sentences.escape import literal
from models import library, own
from models.prediction import Sampling, probabilities

ROOT = Path(__file__).resolve().parent.parent
PROMPT = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)
WAYS = {
    "plain": Sampling(),
    "greedy": Sampling(0),
    "cold": Sampling(0.2),
    "hot": Sampling(2),
    "top-k": Sampling(1, 3),
    "top-p": Sampling(1, 0, 0.6),
    "all three": Sampling(0.7, 50, 0.9),
}
slow = pytest.mark.slow
OPENS = Sampling(*(float(choices.default(name)) for name in ("temperature", "top_k", "top_p")))


# ---- the arithmetic ----------------------------------------------------------


def random_scores(n: int = 500) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 3, n).astype(np.float32)


@pytest.mark.parametrize("way", WAYS)
def test_words_and_all_others_add_up_to_one(way: str) -> None:
    of = numbers.distribution(random_scores(), WAYS[way])
    words = numbers.top(of, [int(of.order[200])])
    others = numbers.rest(of, words)
    assert (
        len(words) == numbers.MOST_ROWS + 1
        and words[-1].rank == 200
        and others.n == 500 - len(words)
    )
    assert (
        sum(word.own for word in words) + others.own
        == pytest.approx(1, abs=DOUBLE)
        == others.all_own
    )
    assert (
        sum(word.drawn for word in words) + others.drawn
        == pytest.approx(1, abs=DOUBLE)
        == others.all_drawn
    )
    assert others.n_kept + sum(word.kept for word in words) == of.kept.sum()
    np.testing.assert_allclose(of.drawn, probabilities(of.logits, WAYS[way]), atol=DOUBLE)


def test_a_vocabulary_shorter_than_the_list_is_shown_whole() -> None:
    of = numbers.distribution(random_scores(4))
    words = numbers.top(of)
    assert [word.rank for word in words] == [0, 1, 2, 3] and numbers.rest(of, words).n == 0


@pytest.mark.parametrize("way", [way for way in WAYS if way != "greedy"])
def test_the_formula_by_hand_gives_what_is_drawn_from(way: str) -> None:
    of = numbers.distribution(random_scores(), WAYS[way])
    for word in numbers.top(of):
        steps, z = numbers.steps(of, word.id), of.logits.astype(float) / WAYS[way].temperature
        assert steps.tempered == pytest.approx(exp(z[word.id]) / np.exp(z).sum())
        assert exp(steps.divided - steps.log_total) == pytest.approx(steps.tempered)
        if word.kept:
            assert (
                steps.tempered / steps.held == pytest.approx(steps.drawn, rel=PASSED)
                and steps.drawn == word.drawn
            )
    with pytest.raises(ValueError, match="temperature 0"):
        numbers.steps(numbers.distribution(random_scores(), Sampling(0)), 0)


def test_entropy_counts_equally_likely_words() -> None:
    assert numbers.entropy(np.full(8, 1 / 8)) == pytest.approx(log(8))
    assert numbers.bits(log(8)) == pytest.approx(3) and numbers.as_many(log(8)) == pytest.approx(8)
    assert numbers.entropy(np.array([1.0, 0, 0])) == 0


@pytest.mark.parametrize("exponent", [-20.0, -0.5, 0.0, 2.3, log(1000), 12.7, 900.0])
def test_powers_of_e_also_where_a_float_ends(exponent: float) -> None:
    digits, _, n = power_of_e(exponent).partition(" × 10")
    tens = int(n.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))) if n else 0
    # Four figures: half a unit of the last is at most 5e-4 of the number.
    assert log(float(digits.replace(",", ""))) + tens * log(10) == pytest.approx(
        exponent, abs=THREE_DECIMALS
    )


@pytest.mark.parametrize("way", WAYS)
def test_draws_are_fair_and_come_again_with_the_seed(way: str) -> None:
    of = numbers.distribution(random_scores(40), WAYS[way])
    drawn = [numbers.draw(of, 7, place) for place in range(3000)]
    share = np.bincount([one.id for one in drawn], minlength=40) / 3000
    assert (np.abs(share - of.drawn) <= 4 * np.sqrt(of.drawn * (1 - of.drawn) / 3000) + 1e-9).all()
    assert drawn[:50] == [numbers.draw(of, 7, place) for place in range(50)]
    for one in drawn[:200]:
        assert of.kept[one.id]
        if one.number is not None:
            assert one.start <= one.number < one.end and isclose(
                one.end - one.start, of.drawn[one.id], abs_tol=1e-12
            )
    if way != "greedy":
        assert [one.id for one in drawn[:50]] != [
            numbers.draw(of, 8, place).id for place in range(50)
        ]


def test_the_word_to_begin_with_is_a_whole_word() -> None:
    handle = models.handle("encoder")

    def first(text: str) -> str | None:
        stream = library.record(handle, text).streams[0]
        place = numbers.word_to_hide(stream)
        return None if place is None else stream.tokens[place]

    assert first("I love to eat pizza") == "pizza" and first("It was too tired!!!") == "tired"
    assert first("") is None and set(first("...")) == {"."}, (
        "of a text without a word, its last token"
    )


def test_labels_join_into_running_text() -> None:
    assert numbers.joined(("‧ice", "s", "dev", "‧ice")) == "ice s device"


def test_tones_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="no tone is called 'loud'"):
        bars.Bar("a", 1.0, (), tone="loud")
    with pytest.raises(ValueError, match="no tone is called 'loud'"):
        strip.Token("a", tone="loud")


def test_signed_bars_have_room_on_both_sides_of_zero() -> None:
    rows = [bars.Bar("up", 3.0, ("+3",), "a"), bars.Bar("down", -1.5, ("-1.5",), "b")]
    header, _ = wire.decode(bars.payload(rows, ("logit",), about="", token="t", signed=True))
    assert (header["low"], header["high"]) == (-1.5, 3.0)
    header, _ = wire.decode(bars.payload([], ("logit",), about="", token="t", signed=True))
    assert (header["low"], header["high"]) == (0, 0)


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


def sent(app: AppTest, name: str, at: int = 0) -> dict:
    """What the component of that name was sent, the one at that place of the page."""
    protos = [element.proto for element in on_page(app)]
    return wire.decode(
        [proto.bytes for proto in protos if proto.component_name == f"headlight.{name}"][at]
    )[0]


def asked_of(app: AppTest) -> dict[str, str]:
    return {
        name: values[0] if isinstance(values, list) else values
        for name, values in app.query_params.items()
    }


def said(app: AppTest) -> list[int]:
    return [int(id) for id in app.session_state["said"].split(".") if id]


def press(app: AppTest, key: str) -> AppTest:
    return clean(app.button(key=key).click().run())


@torch.inference_mode()
def full_pass(model: str, ids: list[int]) -> np.ndarray:
    """Logits (token, id) of one pass of the bare model, outside everything the page uses."""
    bare = models.handle(model).model
    return bare.logits(bare(torch.tensor([ids]))[0]).double().numpy()


def softmaxed(z: np.ndarray) -> np.ndarray:
    return torch.tensor(z).softmax(-1).numpy()


def masked(text: str, places: list[int]) -> list[int]:
    handle = models.handle("encoder")
    ids = list(own.frame(handle, own.clean(text))[0].ids)
    for place in places:
        ids[place] = handle.tokenizer.mask
    return ids


def check_fillers(app: AppTest, text: str, hidden: list[int], place: int) -> None:
    """The bars are the softmax of a full pass, the word of the text is among them with its rank,
    and all add up to 1."""
    shown = sent(app, "bars")
    p = softmaxed(full_pass("encoder", masked(text, hidden))[place])
    there = own.frame(models.handle("encoder"), own.clean(text))[0].ids[place]
    words, others = shown["rows"][:-1], shown["rows"][-1]
    assert sum(row["value"] for row in shown["rows"]) == pytest.approx(1, abs=DOUBLE_LONG)
    np.testing.assert_allclose(
        [row["value"] for row in words], p[[int(row["key"]) for row in words]], atol=SUMMED
    )
    np.testing.assert_allclose(
        [row["value"] for row in words[: numbers.MOST_ROWS]],
        -np.sort(-p)[: numbers.MOST_ROWS],
        atol=SUMMED,
    )
    (own_word,) = [row for row in words if row["mark"]]
    assert (
        int(own_word["key"]) == there
        and abs(int(own_word["numbers"][0].replace(",", "")) - 1 - (p > p[there]).sum()) <= 2
    )
    assert (
        others["tone"] == "rest" and others["label"] == f"all {len(p) - len(words):,} other words"
    )


def prompt_ids(text: str) -> list[int]:
    return list(own.frame(models.handle("decoder"), own.clean(text))[0].ids)


def check_choices(app: AppTest, ids: list[int], sampling: Sampling = OPENS) -> None:
    """Both numbers of each bar against a full pass, and their sums."""
    rows = sent(app, "bars")["rows"]
    z = full_pass("decoder", ids)[-1]
    p, drawn = softmaxed(z), probabilities(z.astype(np.float32), sampling)
    words = [row for row in rows if row["tone"] != "rest"]
    at = [int(row["key"]) for row in words]
    np.testing.assert_allclose([row["behind"] for row in words], p[at], atol=SUMMED)
    np.testing.assert_allclose([row["value"] for row in words], drawn[at], atol=PASSED)
    assert (
        sum(row["behind"] for row in rows)
        == pytest.approx(1, abs=DOUBLE_LONG)
        == sum(row["value"] for row in rows)
    )
    assert [row["tone"] == "cut" for row in words] == [drawn[id] == 0 for id in at]


@slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_has_a_gap_to_fill(text: str) -> None:
    app = opened(text=text)
    if not text:
        assert any("There is no text yet" in told.value for told in app.info)
        return
    header = sent(app, "strip")
    (place,) = [at for at, token in enumerate(header["tokens"]) if token["tone"] == "hidden"]
    assert header["chosen"] == place
    check_fillers(app, text, [place], place)


@slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_goes_on(text: str) -> None:
    app = opened(text=text, model="decoder")
    if text == HOSTILE["10,000 characters"]:
        assert any(
            "Nothing can be written here: the text has" in told.value and "reads 512" in told.value
            for told in app.info
        )
        rows = sent(app, "bars")["rows"]
        p = softmaxed(full_pass("decoder", prompt_ids(text))[-1])
        np.testing.assert_allclose(
            [row["behind"] for row in rows[:-1]], -np.sort(-p)[: len(rows) - 1], atol=SUMMED
        )
        assert not any(row["key"] for row in rows), "what cannot be written cannot be chosen"
        return
    check_choices(app, prompt_ids(text))
    press(app, "write one")
    check_choices(app, prompt_ids(text) + said(app))
    assert [token["tone"] for token in sent(app, "strip")["tokens"]].count("said") == 1


@slow
def test_a_click_hides_and_shows_and_several_words_can_be_hidden() -> None:
    text = "The red fox saw a small bird near the river."
    app = opened(text=text, hidden="2.6", token="6")
    assert [token["label"] for token in sent(app, "strip")["tokens"]][1:8] == [
        "The",
        "[MASK]",
        "fox",
        "saw",
        "a",
        "[MASK]",
        "bird",
    ]
    check_fillers(app, text, [2, 6], 6)
    app.session_state["token"] = "2"
    check_fillers(clean(app.run()), text, [2, 6], 2)
    press(app, "show all")
    assert asked_of(app)["hidden"] == "none" and all(
        token["tone"] != "hidden" for token in sent(app, "strip")["tokens"]
    )
    check_fillers(app, text, [], 2)
    assert any("The model sees it, so this is no guess" in told.value for told in app.markdown)


@slow
def test_a_gap_says_how_unsure_the_model_is_and_shows_its_formula() -> None:
    text = "I love to eat pizza"
    app = opened(text=text, token="2")
    z = full_pass("encoder", masked(text, [2]))[2]
    p = softmaxed(z)
    nats = -(p * np.log(p)).sum()
    told = " ".join(each.value for each in app.markdown)
    found = re.search(
        r"([\d.]+) nats = ([\d.]+) bits, as unsure as among ([\d.,]+) equally likely", told
    )
    # Printed in two figures at least.
    assert [float(each.replace(",", "")) for each in found.groups()] == pytest.approx(
        [nats, nats / log(2), exp(nats)], rel=0.02
    )
    found = re.search(r"z = ([\d.]+)\. .* so p = .* = \*\*([\d.]+)\*\*", told)
    assert [float(each) for each in found.groups()] == pytest.approx([z.max(), p.max()], abs=PASSED)


@slow
@pytest.mark.parametrize("way", [way for way in WAYS])
def test_temperature_top_k_and_top_p_reshape_what_is_drawn_from(way: str) -> None:
    sampling = WAYS[way]
    app = opened(text=PROMPT, model="decoder")
    for key, value in (
        ("temperature", sampling.temperature),
        ("top_k", sampling.top_k),
        ("top_p", sampling.top_p),
    ):
        app.select_slider(key=key).set_value(f"{value:g}")
    clean(app.run())
    check_choices(app, prompt_ids(PROMPT), sampling)
    n_kept = (
        probabilities(full_pass("decoder", prompt_ids(PROMPT))[-1].astype(np.float32), sampling) > 0
    ).sum()
    told = next(each.value for each in app.caption if each.value.startswith("Kept: "))
    assert abs(int(re.search(r"Kept: ([\d,]+)", told).group(1).replace(",", "")) - n_kept) <= 1
    assert "model 1.0000, drawn from 1.0000" in told


@slow
def test_greedy_steps_are_those_of_full_passes_and_back_takes_them_back() -> None:
    app = opened(text=PROMPT, model="decoder", temperature="0")
    ids = prompt_ids(PROMPT)
    goes_on = next(each.value for each in app.markdown if "it goes on" in each.value)
    for n in range(5):
        z = full_pass("decoder", ids)[-1]
        press(app, "write one")
        assert said(app)[-1] == z.argmax()
        written = [token for token in sent(app, "strip")["tokens"] if token["tone"] == "said"]
        assert len(written) == n + 1 and written[-1]["under"].endswith("· #1")
        assert float(
            re.search(r"probability ([\d.]+)", written[-1]["spoken"]).group(1)
        ) == pytest.approx(softmaxed(z).max(), abs=PASSED)
        ids.append(int(z.argmax()))
        check_choices(app, ids, Sampling(0))
    wrote = models.spelled("decoder", ids).removeprefix(PROMPT).strip()
    assert f"**{literal(wrote)}" in goes_on, "what it was said to write"
    press(app, "take back")
    press(app, "take back")
    assert said(app) == ids[-5:-2]
    check_choices(app, ids[:-2], Sampling(0))
    press(app, "write anew")
    assert not said(app) and app.button(key="take back").disabled
    check_choices(app, prompt_ids(PROMPT), Sampling(0))


@slow
def test_the_same_seed_writes_the_same_words_and_a_slider_loses_none() -> None:
    def written(seed: str) -> list[int]:
        app = opened(text=PROMPT, model="decoder", seed=seed)
        for _ in range(4):
            press(app, "write one")
        return said(app)

    first = written("3")
    assert written("3") == first and any(written(seed) != first for seed in ("4", "5", "6"))
    app = opened(text=PROMPT, model="decoder", seed="3")
    press(app, "write one")
    app.select_slider(key="temperature").set_value("1").run()
    assert said(clean(app)) == first[:1]
    app.select_slider(key="temperature").set_value(f"{OPENS.temperature:g}").run()
    for _ in range(3):
        press(app, "write one")
    assert said(app) == first, "step by step the same, whatever was looked at in between"
    press(app, "take back")
    press(app, "write one")
    assert said(app) == first
    assert app.number_input(key="seed field").value == 3


@slow
def test_a_token_chosen_by_hand_is_written_and_reading_goes_on_from_it() -> None:
    app = opened(text=PROMPT, model="decoder", temperature="0")
    chosen = int(sent(app, "bars")["rows"][4]["key"])
    again = opened(**asked_of(app), said=str(chosen))
    written = [token for token in sent(again, "strip")["tokens"] if token["tone"] == "said"]
    assert len(written) == 1 and written[0]["under"].endswith("· #5")
    check_choices(again, [*prompt_ids(PROMPT), chosen], Sampling(0))
    press(again, "write one")
    assert said(again) == [chosen, full_pass("decoder", [*prompt_ids(PROMPT), chosen])[-1].argmax()]


@slow
def test_the_newest_tokens_rows_and_the_cache_are_those_of_a_full_pass() -> None:
    app = opened(text=PROMPT, model="decoder", temperature="0", layer="1", head="2")
    for _ in range(3):
        press(app, "write one")
    proto = next(
        element.proto
        for element in on_page(app)
        if element.proto.component_name == "headlight.looks"
    )
    header, blocks = wire.decode(proto.bytes)
    handle = models.handle("decoder")
    whole = models.spelled("decoder", [*prompt_ids(PROMPT), *said(app)])
    recording = library.record(handle, whole)
    assert recording.streams[0].ids.tolist() == prompt_ids(PROMPT) + said(app), (
        "this continuation is read as it was written"
    )
    pattern = recording.attention[0].pattern[:, :, -1]
    shown = blocks["weights"].reshape(-1, pattern.shape[-1])
    np.testing.assert_allclose(shown[1:], pattern.reshape(-1, pattern.shape[-1]), atol=SUMMED)
    np.testing.assert_allclose(shown[0], pattern.mean((0, 1)), atol=SUMMED)
    assert header["chosen"] == "1.2" and header["tones"].count("said") == 3
    card, n = handle.card, len(recording.streams[0].ids)
    told = " ".join(each.value for each in app.markdown)
    assert f"2 × {card.n_head} heads × {n} tokens × {card.d_head} numbers" in told
    assert f"**{2 * card.n_layer * card.n_head * n * card.d_head * 4:,} bytes**" in told
    assert (
        f"would have read all **{n}** again. All 3 steps read 3 tokens instead of "
        f"{n + n - 1 + n - 2}."
    ) in told


@slow
def test_writing_ends_at_the_end_sign_and_at_the_models_length() -> None:
    eos = models.handle("decoder").tokenizer.eos
    app = opened(text=PROMPT, model="decoder", said=f"40.{eos}.50")
    assert (
        said(app) == [40, eos]
        and app.button(key="write one").disabled
        and app.button(key="write on").disabled
    )
    assert "the text has ended" in sent(app, "strip")["says"]
    press(app, "take back")
    assert not app.button(key="write one").disabled
    text = "the cat " * 254  # and a space
    n = len(prompt_ids(text))
    app = opened(text=text, model="decoder", temperature="0", said="100")
    assert n == 510
    press(app, "write one")
    assert (
        "all that this model reads" in sent(app, "strip")["says"]
        and app.button(key="write one").disabled
    )
    check_choices_without_keys(app, prompt_ids(text) + said(app))
    press(app, "take back")
    assert not app.button(key="write one").disabled


def check_choices_without_keys(app: AppTest, ids: list[int]) -> None:
    assert len(ids) == 512
    rows = sent(app, "bars")["rows"]
    assert not any(row["key"] for row in rows)
    p = softmaxed(full_pass("decoder", ids)[-1])
    np.testing.assert_allclose(
        [row["behind"] for row in rows[:-1]], -np.sort(-p)[: len(rows) - 1], atol=SUMMED
    )


@slow
def test_what_was_written_becomes_the_text_and_another_text_forgets_it() -> None:
    app = opened(text=PROMPT, model="decoder", temperature="0")
    for _ in range(2):
        press(app, "write one")
    ids = prompt_ids(PROMPT) + said(app)
    press(app, "adopt")
    text = app.session_state["text"]
    assert text.startswith(PROMPT) and prompt_ids(text) == ids and not said(app)
    check_choices(app, ids, Sampling(0))
    press(app, "write one")
    typed(app, "Ram pushed Hari")
    assert not said(clean(app)) and "said" not in app.query_params


@slow
def test_a_link_opens_the_same_and_one_that_makes_no_sense_still_opens() -> None:
    app = opened(text=PROMPT, model="decoder")
    app.select_slider(key="temperature").set_value("0.7").run()
    app.number_input(key="seed field").set_value(11).run()
    for _ in range(3):
        press(app, "write one")
    asked = asked_of(app)
    assert asked == {
        "text": PROMPT,
        "model": "decoder",
        "temperature": "0.7",
        "seed": "11",
        "said": app.session_state["said"],
    }
    again = opened(**asked)
    for name in ("bars", "strip", "looks"):
        assert sent(again, name) == sent(app, name)
    for wrong in (
        {"said": "1.x.3"},
        {"said": "99999999"},
        {"said": "."},
        {"temperature": "-1", "top_p": "0", "top_k": "x", "seed": "-3"},
    ):
        app = opened(text=PROMPT, model="decoder", **wrong)
        assert not set(app.query_params) - {"text", "model"}
    for wrong in ({"hidden": "0"}, {"hidden": "999.3"}, {"hidden": "a"}, {"token": "0"}):
        check_strip_has_one_gap(opened(text=PROMPT, **wrong))


def check_strip_has_one_gap(app: AppTest) -> None:
    assert [token["tone"] for token in sent(app, "strip")["tokens"]].count("hidden") == 1


@slow
def test_a_space_at_the_end_is_told() -> None:
    assert any(
        "ends with a space" in told.value
        for told in opened(text="The cat ", model="decoder").caption
    )
    assert not any(
        "ends with a space" in told.value
        for told in opened(text="The cat", model="decoder").caption
    )


@slow
@slow
def test_a_text_is_written_by_one_step_at_a_time_whoever_asks() -> None:
    draft = drafts.Draft("grammar", "the cat")
    ids = tuple(range(20, 60))

    def hurry() -> None:
        while draft.towards(ids):
            pass

    runs = [threading.Thread(target=hurry) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    plain = drafts.Draft("grammar", "the cat")
    while plain.towards(ids):
        pass
    assert (
        [word.id for word in draft.said] == list(ids)
        and draft.said == plain.said
        and draft.writing.ids == plain.writing.ids
    )
    np.testing.assert_allclose(draft.writing.logits, plain.writing.logits, atol=PASSED)


@slow
def test_a_small_gpt2_writes_and_says_where_it_ended(gpt2_on_pages: own.Handle) -> None:
    app = opened(model="grammar", text="the cat sat", said=f"20.{gpt2_on_pages.tokenizer.eos}")
    assert "<|endoftext|>" in said_about(app)
    assert opened(model="grammar", text="")


def said_about(app: AppTest) -> str:
    """What stands under the text in the making."""
    return next(
        wire.decode(each.proto.bytes)[0]["says"]
        for each in on_page(app)
        if each.proto.component_name == "headlight.strip"
    )


@pytest.mark.parametrize("model", ["grammar", "grammar-masked", "induction"])
def test_the_small_models_are_shown_too(model: str) -> None:
    app = opened(model=model)
    assert sum(row["value"] for row in sent(app, "bars")["rows"]) == pytest.approx(
        1, abs=DOUBLE_LONG
    )


@slow
def test_the_whole_vocabulary_as_a_table_and_as_a_file() -> None:
    of = numbers.distribution(
        full_pass("decoder", prompt_ids(PROMPT))[-1].astype(np.float32), Sampling(0.8, 5)
    )
    table = numbers.columns(of, models.labels("decoder", range(len(of.order))))
    rows = list(csv.DictReader(io.StringIO(to_csv(table, ("About\nthis", "Text: a")))))
    assert rows[0]["about"] == "About this | Text: a"
    assert len(rows) == len(of.order) and [int(row["rank"]) for row in rows] == list(
        range(1, len(rows) + 1)
    )
    assert (
        sum(float(row["probability"]) for row in rows)
        == pytest.approx(1, abs=DOUBLE_LONG)
        == sum(float(row["drawn from"]) for row in rows)
    )
    assert rows[0]["token"] == models.labels("decoder", [int(rows[0]["id"])])[0]


# ---- journeys in a browser ---------------------------------------------------


def journey(test: Callable) -> Callable:
    for mark in MARKS:
        test = mark(test)
    return test


# The sentence itself; a neuron has a strip of its own further down.
STRIP = ":is(.st-key-sentence, .st-key-draft-text) .strip"


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    visitor.page.goto(f"{visitor.server}/predictions?{urlencode(asked)}")
    visitor.page.wait_for_selector(".bars[data-token]")
    at_rest(visitor)
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = [error for error in visitor.errors if "404" not in error]
    return visitor


def at_rest(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")


def hidden(visitor: Visitor) -> list[str]:
    return visitor.page.locator(f"{STRIP} .hidden .under").all_inner_texts()


def written(visitor: Visitor) -> list[str]:
    return visitor.page.locator(f"{STRIP} .said .label").all_inner_texts()


def wait_until_hidden(visitor: Visitor, words: list[str]) -> None:
    for word in words:
        visitor.page.wait_for_selector(f"{STRIP} .hidden .under:text-is('{word}')")
    visitor.page.locator(f"{STRIP} .hidden").nth(len(words)).wait_for(state="detached")
    at_rest(visitor)
    assert sorted(hidden(visitor)) == sorted(words)


def focused(visitor: Visitor, attribute: str) -> str | None:
    return visitor.page.evaluate(
        "name => { let a = document.activeElement; while (a?.shadowRoot) a = "
        "a.shadowRoot.activeElement; return a?.getAttribute(name) }",
        attribute,
    )


def press_button(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("button", name=name, exact=False).first.click()


@journey
def test_mask_by_clicking_and_by_keyboard_and_the_link_opens_the_same(
    visitor: Visitor, browser: object, server: str
) -> None:
    page = visited(visitor, text="The red fox saw a small bird near the river.").page
    assert hidden(visitor) == ["river"]
    page.locator(f"{STRIP} .token", has_text="fox").click()
    wait_until_hidden(visitor, ["fox"])
    page.locator(f"{STRIP} .token", has_text="small").click()
    wait_until_hidden(visitor, ["fox", "small"])
    page.locator(f"{STRIP} .token", has_text="fox").click()
    page.wait_for_selector(f"{STRIP} .says:has-text('“fox”')")
    assert sorted(hidden(visitor)) == ["fox", "small"], (
        "the first click on a hidden word looks at it"
    )
    page.locator(f"{STRIP} .token", has_text="fox").click()
    wait_until_hidden(visitor, ["small"])
    assert "which the model sees" in page.locator(f"{STRIP} .says").inner_text()
    page.locator(f"{STRIP} .token", has_text="fox").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    wait_until_hidden(visitor, ["small", "bird"])
    assert focused(visitor, "data-at") == "7", "the focus stays where it was"
    page.wait_for_url("**hidden=6.7**")
    labels = page.locator(".bars").first.inner_text()
    other = visited(
        Visitor(browser, server),
        **dict(pair.split("=") for pair in page.url.split("?")[1].replace("+", " ").split("&")),
    )
    assert (
        sorted(hidden(other)) == ["bird", "small"]
        and other.page.locator(".bars").first.inner_text() == labels
    )
    other.context.close()


@journey
def test_step_play_pause_and_back(visitor: Visitor) -> None:
    page = visited(visitor, text=PROMPT, model="decoder", seed="1").page
    press_button(visitor, "Step")
    page.wait_for_selector(f"{STRIP} .said")
    press_button(visitor, "Play")
    page.locator(f"{STRIP} .said").nth(2).wait_for()
    press_button(visitor, "Pause")
    page.get_by_role("button", name="Play").first.wait_for()
    at_rest(visitor)
    so_far = written(visitor)
    page.wait_for_timeout(1500)
    assert written(visitor) == so_far, "after Pause nothing more is written"
    press_button(visitor, "Back")
    page.locator(f"{STRIP} .said").nth(len(so_far) - 1).wait_for(state="detached")
    assert written(visitor) == so_far[:-1]
    page.wait_for_function(
        "n => (new URL(location).searchParams.get('said') || "
        "'').split('.').filter(Boolean).length === n",
        arg=len(so_far) - 1,
    )
    ids = [int(id) for id in re.search(r"said=([\d.]+)", page.url).group(1).split(".")]
    assert models.labels("decoder", ids) == so_far[:-1]


@journey
def test_a_slider_changes_the_bars_and_a_bar_writes_its_token(visitor: Visitor) -> None:
    page = visited(visitor, text=PROMPT, model="decoder").page
    block = page.locator(".bars").first

    def drawn() -> list[str]:
        return block.locator(".row:not(.heads) .number:last-child").all_inner_texts()

    before, picture = drawn(), block.get_attribute("data-token")
    page.get_by_role("slider").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url("**temperature=0.2**")
    page.wait_for_function(
        "old => [...document.querySelectorAll('*')].every(e => "
        "e.shadowRoot?.querySelector('.bars')?.dataset.token !== old)",
        arg=picture,
    )
    assert float(drawn()[0]) > float(before[0])
    row = block.locator("button.row").nth(2)
    label = row.locator(".label").inner_text()
    block.locator("button.row").first.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(f"{STRIP} .said")
    assert written(visitor) == [label]
    at_rest(visitor)
    page.wait_for_url("**said=**")


@journey
@pytest.mark.parametrize("name", ["script", "bold", "right to left", "emoji", "bidi override"])
def test_hostile_text_is_drawn_as_it_is_and_nothing_runs(name: str, visitor: Visitor) -> None:
    page = visited(visitor, text=HOSTILE[name], model="decoder").page
    labels = library.record(read_once("decoder"), HOSTILE[name]).streams[0].tokens
    assert tuple(page.locator(f"{STRIP} .label").all_inner_texts()) == labels
    press_button(visitor, "Step")
    page.wait_for_selector(f"{STRIP} .said")
    assert page.title() == "Predict · Headlight"


@journey
def test_a_phone_shows_it_without_sideways_scrolling(browser: object, server: str) -> None:
    phone = Visitor(
        browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    for asked in ({}, {"model": "decoder"}):
        page = visited(phone, **asked).page
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
        for box in (page.locator(".bars .row").nth(at).bounding_box() for at in (1, 5)):
            assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert not phone.errors
    phone.context.close()
