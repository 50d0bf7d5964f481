"""A text in the making: what is drawn next, and the buttons that write it and take it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import predictions
from explorer.layout import current_recording
from explorer.state import cache, jobs, models, url_state
from models import chat
from models.results import Sampling

TEMPERATURES = tuple(f"{tenth / 10:g}" for tenth in range(21))
TOP_KS = ("0", "1", "2", "3", "5", "10", "20", "50", "100", "200", "500")
TOP_PS = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99", "1")
SEEDS = 100_000
MANY = 12  # tokens to be read again one by one, from which on a bar shows how far it has come


def settings() -> tuple[Sampling, int]:
    """Sampling settings of the next token, from the address or the sliders, and the seed."""
    temperature, top_k, top_p = (
        url_state.one_of(name, options)
        for name, options in (("temperature", TEMPERATURES), ("top_k", TOP_KS), ("top_p", TOP_PS))
    )
    seed = url_state.whole_number("seed", SEEDS)
    if seed is None:
        st.session_state.seed = url_state.default("seed")
    return Sampling(float(temperature), int(top_k), float(top_p)), seed or 0


TEMPERATURE = (
    "Every logit is divided by it. Below 1 the likely tokens get likelier, above 1 the unlikely "
    "ones do. 0 takes the likeliest token, always."
)
TOP_P = "The likeliest tokens are kept until together they reach p; the others are cut."
SEED = "Where the random numbers start. The same seed and text give the same tokens."


def sampling_menu(bar: DeltaGenerator, changed: Callable[[], None] | None = None) -> None:
    """The menu with temperature, top-k, top-p and seed, named after what it holds; `changed` is
    called after each choice."""
    sampling, seed = settings()
    st.session_state["seed field"] = seed
    few = "Only the k likeliest tokens are kept."
    every: tuple[tuple[str, tuple[str, ...], str, dict[str, str], str], ...] = (
        ("Temperature", TEMPERATURES, "temperature", {"0": "0 (greedy)"}, TEMPERATURE),
        ("Top-k", TOP_KS, "top_k", {"0": "all"}, few),
        ("Top-p", TOP_PS, "top_p", {"1": "all"}, TOP_P),
    )
    with bar.popover(f"Sampling: {sampling_text(sampling, seed)}"):
        for label, options, key, named, about in every:
            st.select_slider(
                label,
                options,
                key=key,
                persist_state="session",
                format_func=lambda value, named=named: named.get(value, value),
                help=about,
                on_change=changed,
            )
        st.number_input(
            "Seed",
            0,
            SEEDS - 1,
            key="seed field",
            on_change=_take_seed,
            args=(changed,),
            help=SEED,
        )


def sampling_text(sampling: Sampling, seed: int) -> str:
    """The settings in few words."""
    if sampling.temperature == 0:
        return "greedy"
    cuts = [f"top-k {sampling.top_k}"] if sampling.top_k else []
    cuts += [f"top-p {sampling.top_p:g}"] if sampling.top_p < 1 else []
    return ", ".join([f"temperature {sampling.temperature:g}", *cuts, f"seed {seed}"])


def _take_seed(changed: Callable[[], None] | None) -> None:
    """The seed typed."""
    st.session_state.seed = str(st.session_state["seed field"])
    if changed:
        changed()


def catch_up(draft: jobs.Draft, n_vocab: int) -> None:
    """Read what was said until the draft is that, with a bar where it takes a while. Any choice
    ends it; it goes on from where it was."""
    said = url_state.whole_numbers("said", n_vocab)
    todo = left = draft.step_towards(said)
    bar = st.empty()
    while left:
        if todo > MANY:
            bar.progress(1 - left / todo, f"Reading what was written, token by token: {left} left")
        left = draft.step_towards(said)
    bar.empty()
    say(word.id for word in draft.tokens)


def say(ids: Iterable[int]) -> None:
    """These tokens are what was written."""
    st.session_state.said = ".".join(map(str, ids))


def buttons(model: str, text: str, draft: jobs.Draft) -> None:
    """Step, play, back."""
    state, over, fresh = st.session_state, draft.ended or draft.full, not draft.tokens
    name, icon = ("Pause", "pause") if state.playing else ("Play", "play_arrow")
    going_on = "Write token after token, until you stop it."
    every = (
        ("Step", "write one", "skip_next", over, step, "Write one token."),
        (name, "write on", icon, over, play, going_on),
        ("Back", "take back", "undo", fresh, back, "Take the last token back."),
        ("Start over", "write anew", "restart_alt", fresh, start_over, "Take everything back."),
        (
            "Add to my text",
            "adopt",
            "playlist_add",
            fresh,
            adopt,
            "What was written becomes part of your text, so that every page shows it.",
        ),
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, key, sign, off, does, says in every:
            st.button(
                label,
                key=key,
                icon=f":material/{sign}:",
                disabled=off,
                on_click=does,
                args=(model, text),
                help=says,
            )
    if state.pop("adopted", False):
        st.rerun()


def step(model: str, text: str) -> None:
    """Write the token that is drawn next."""
    draft = jobs.draft(model, text)
    said = url_state.whole_numbers("said", cache.record(model, text).model.n_vocab)
    if draft.step_towards(said) or draft.ended or draft.full:
        return  # the page is still reading what was said before
    sampling, seed = settings()
    of = predictions.distribution(draft.writing.logits, sampling)
    drawn = predictions.draw(of, seed, len(draft.writing.ids))
    say([*(word.id for word in draft.tokens), drawn.id])


def tick(model: str, text: str) -> None:
    """The browser asks for the next token: only one that it does not have yet is written."""
    asked = int(st.session_state["draft text"]["tick"])
    if st.session_state.playing and asked == len(jobs.draft(model, text).writing.ids):
        step(model, text)


def play(model: str, text: str) -> None:
    """Write by itself, or stop."""
    st.session_state.playing = not st.session_state.playing


def back(model: str, text: str) -> None:
    """Take the last token back."""
    st.session_state.playing = False
    say([word.id for word in jobs.draft(model, text).tokens][:-1])


def start_over(model: str, text: str) -> None:
    """Take all that was written back."""
    st.session_state.playing = False
    st.session_state.said = ""


def adopt(model: str, text: str) -> None:
    """Make what was written a part of the text. The page has to run as a whole then: `buttons` sees
    to it."""
    draft = jobs.draft(model, text)
    ids, n_prompt = draft.writing.ids, draft.n_prompt
    if chat.n_messages(cache.record(model, text)):
        continued = chat.with_answer(text, models.decode(model, ids[n_prompt:]))
    else:
        whole, prompt = models.decode(model, ids), models.decode(model, ids[:n_prompt])
        continued = text + whole[len(prompt) :] if whole.startswith(prompt) else whole
    current_recording.take_text(continued)
    st.session_state.playing, st.session_state.adopted = False, True


def choose(model: str, text: str) -> None:
    """Write the token of the bar that was clicked."""
    draft = jobs.draft(model, text)
    if not (draft.ended or draft.full):
        say([*(word.id for word in draft.tokens), int(st.session_state.choices["row"])])
