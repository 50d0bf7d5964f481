"""A text that is being generated: the sampling settings, and the buttons that write tokens and take
them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import predictions
from explorer.layout import current_recording
from explorer.panels import generation
from explorer.state import cache, jobs, models, url_state
from models import chat
from models.results import Sampling

TEMPERATURES = tuple(f"{tenth / 10:g}" for tenth in range(21))
TOP_KS = ("1", "2", "3", "5", "10", "20", "50", "100", "200", "500", "0")  # 0 is all, as in top-p 1
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
    settings = generation.settings_text(sampling) or "temperature 1"
    return settings if sampling.temperature == 0 else f"{settings}, seed {seed}"


def _take_seed(changed: Callable[[], None] | None) -> None:
    """The seed typed."""
    st.session_state.seed = str(st.session_state["seed field"])
    if changed:
        changed()


def catch_up(draft: jobs.Draft, n_vocab: int) -> None:
    """Read the tokens of the address until the draft has them, with a bar where it takes a while.
    Any choice interrupts it; it continues from where it was."""
    ids_of_link = url_state.whole_numbers("said", n_vocab)
    todo = left = draft.step_towards(ids_of_link)
    bar = st.empty()
    while left:
        if todo > MANY:
            bar.progress(1 - left / todo, f"Reading the generated tokens: {left} left")
        left = draft.step_towards(ids_of_link)
    bar.empty()
    write(word.id for word in draft.tokens)


def write(ids: Iterable[int]) -> None:
    """Put these tokens into the address as the generated ones."""
    st.session_state.said = ".".join(map(str, ids))


def buttons(model: str, text: str, draft: jobs.Draft) -> None:
    """Buttons that write tokens and take them back, and the menu of the sampling settings."""
    playing, over, fresh = st.session_state.playing, draft.ended or draft.full, not draft.tokens
    name, icon = ("Pause", "pause") if playing else ("Play", "play_arrow")
    every: tuple[tuple[str, str, str, bool, Callable[[str, str], Any], str], ...] = (
        ("Step", "write one", "skip_next", over, step, "Write one token."),
        (name, "write on", icon, over, play, "Write token after token, until you press Pause."),
        ("Back", "take back", "undo", fresh, back, "Take the last token back."),
        ("Start over", "write anew", "restart_alt", fresh, start_over, "Take every token back."),
        (
            "Add to my text",
            "adopt",
            "playlist_add",
            fresh,
            adopt,
            "The generated tokens become part of your text, so that every tab shows them.",
        ),
    )
    bar = st.container(horizontal=True, gap="small", vertical_alignment="center")
    with bar:
        for label, key, sign, off, act, about in every:
            st.button(
                label,
                key=key,
                icon=f":material/{sign}:",
                disabled=off,
                on_click=act,
                args=(model, text),
                help=about,
            )
    sampling_menu(bar)


def step(model: str, text: str) -> bool:
    """Write the token that is drawn next; False where the text is over."""
    draft = jobs.draft(model, text)
    ids = url_state.whole_numbers("said", cache.record(model, text).model.n_vocab)
    if draft.step_towards(ids):
        return True  # the page is still reading the tokens before
    if draft.ended or draft.full:
        return False
    sampling, seed = settings()
    of = predictions.distribution(draft.writing.logits, sampling)
    drawn = predictions.draw(of, seed, len(draft.writing.ids))
    write([*(word.id for word in draft.tokens), drawn.id])
    return True


def play(model: str, text: str) -> None:
    """Write on, or pause: the whole page runs again, with or without a clock."""
    st.session_state.play = not st.session_state.playing
    st.session_state["run whole page"] = True


def stop() -> None:
    """Pause where the model writes on."""
    if st.session_state.playing:
        st.session_state["run whole page"] = True


def back(model: str, text: str) -> None:
    """Take the last token back."""
    stop()
    write([word.id for word in jobs.draft(model, text).tokens][:-1])


def start_over(model: str, text: str) -> None:
    """Take every generated token back."""
    stop()
    st.session_state.said = ""


def adopt(model: str, text: str) -> None:
    """Make the generated tokens a part of the text, of a chat the assistant's message."""
    draft = jobs.draft(model, text)
    ids, n_prompt = draft.writing.ids, draft.n_prompt
    if chat.n_messages(cache.record(model, text)):
        continued = chat.with_answer(text, models.decode(model, ids[n_prompt:]))
    else:
        whole, prompt = models.decode(model, ids), models.decode(model, ids[:n_prompt])
        continued = text + whole[len(prompt) :] if whole.startswith(prompt) else whole
    current_recording.take_text(continued)
    st.session_state["run whole page"] = True
