"""A translation token by token, and what its decoder attends to in the source."""

from __future__ import annotations

import time
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import translation
from explorer.layout import current_recording, output
from explorer.panels import translation as translation_panels
from explorer.state import event_log, url_state
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from explorer.views.predictions import SEEDS, sampling_menu, sampling_settings
from models import drafts, model_names
from models.caching import loaded
from models.recording import Recording
from models.results import Beam, SeededSampling
from models.run import Run

WORDS = sentences("translation", "tab")

# ---- search --------------------------------------------------------------------------

DRAWN = "Drawn"
WAYS = ("1", "2", "3", "4", "5", DRAWN)
NAMES = {"1": "Greedy", DRAWN: "Sample"} | {n: f"{n} beams" for n in WAYS[1:-1]}
PATIENCE = 0.4  # seconds of silence before the translation in the making is shown
BREATH = 0.1  # seconds between two looks at it
# What a model writes; "output" for the others.
LANGUAGE = {"translator": "French", "translator-small": "French"}


def search_controls(bar: DeltaGenerator, model: str, text: str) -> str | None:
    """Show the controls of the search, and the field for one's own translation: returns what stands
    in it, None where it is empty."""
    url_state.one_of("beams", WAYS)
    typed = st.session_state.target
    bar.selectbox(
        "Search",
        WAYS,
        key="beams",
        format_func=NAMES.__getitem__,
        persist_state="session",
        on_change=forget_beam,
        disabled=bool(typed.strip()),
        width=170,
        help=(WORDS("decoding")),
    )
    language = LANGUAGE.get(model, "output")
    bar.text_input(
        f"Your own {language}",
        key="target",
        live="300ms",
        persist_state="session",
        on_change=forget_step,
        placeholder="Empty: the model’s translation",
        width=320,
        help=WORDS("own_target"),
    )
    if typed.strip():
        bar.button("Back to the model’s translation", on_click=drop_own)
        if not url_state.fits_address(typed):
            st.info(WORDS("fits_no_link"))
        return str(typed)
    if st.session_state.beams == DRAWN:
        sampling_menu(bar, forget_beam)
        bar.button("Sample again", on_click=draw_another)
    bar.button("Edit this translation", on_click=take_own, args=(model, text))
    return None


def language_controls(model: str) -> None:
    """Show the languages of a multilingual translator; a choice is a part of its name."""
    offered = loaded(model).capabilities
    if not offered.languages:
        return
    bar = st.container(horizontal=True)
    for label, now in (("From", offered.source), ("To", offered.target)):
        codes = offered.languages if now else (WORDS("any_language"), *offered.languages)
        bar.selectbox(
            label,
            codes,
            index=codes.index(now) if now else 0,
            key=f"{label} {model}",
            on_change=take_language,
            args=(model, label, (offered.source, offered.target)),
            width=170,
            help=WORDS("languages"),
        )


def take_language(model: str, label: str, languages: tuple[str, str]) -> None:
    """Translate from or into the language that was just chosen."""
    chosen = st.session_state[f"{label} {model}"]
    source, target = languages
    pair = (chosen, target) if label == "From" else (source, chosen)
    st.session_state.model = model_names.in_languages(model, pair)
    forget_beam()
    url_state.forget_head()


def draw_another() -> None:
    """The next seed."""
    _, seed = sampling_settings()
    st.session_state.seed = str((seed + 1) % SEEDS)
    forget_beam()


def seek(model: str, text: str) -> None:
    """The search for the translation, with what it has so far shown while it runs, and a button
    that ends it there.

    It runs outside the fragment: a button inside one would not be heard before the run is over.
    """
    search, name = requested_search(model, text)
    room, began, looked = st.empty(), time.monotonic(), 0.0
    while not is_done(search, name):
        search.resume()
        now = time.monotonic()
        if now - began < PATIENCE or now - looked < BREATH:
            continue
        if not looked:
            with room.container(border=True):
                words = st.empty()
                st.button("Stop", key="stop", on_click=stop_search, args=(name,))
        looked = now
        best = search.steps[-1][0]
        so_far = literal(loaded(model).tokenizer.text(best.ids))
        words.markdown(f"Translating … **{len(best.ids)}** tokens so far: {so_far}")
    room.empty()


def searched(model: str, text: str) -> drafts.Search:
    """The search as it is shown. One that is not done after a moment is left to `seek`."""
    search, name = requested_search(model, text)
    began = time.monotonic()
    while not is_done(search, name):
        if time.monotonic() - began > PATIENCE:
            st.rerun()
        search.resume()
    if not search.finished:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(WORDS("stopped", n=len(search.steps)))
            st.button("Continue", key="go on", on_click=stop_search, args=(None,))
    return search


def requested_search(model: str, text: str) -> tuple[drafts.Search, tuple[str, str, str]]:
    """The search that the reader asked for, and its name."""
    way = how()
    return drafts.search(model, text, way), (model, text, repr(way))


def how() -> int | SeededSampling:
    """Search method: the number of beams, or the sampling of each token."""
    way = url_state.one_of("beams", WAYS)
    return SeededSampling(*sampling_settings()) if way == DRAWN else int(way)


def is_done(search: drafts.Search, name: tuple[str, str, str]) -> bool:
    """True for a search that came to its end, or that the reader stopped."""
    return search.finished or (bool(search.steps) and st.session_state.get("stopped") == name)


def chosen_place(beams: tuple[Beam, ...]) -> int:
    """The hypothesis on screen, from 0. The address counts from 1, as the list does."""
    return max(0, (url_state.whole_number("beam", len(beams) + 1) or 1) - 1)


def forget_step() -> None:
    """Another output has other steps."""
    st.session_state.step = ""


def forget_beam() -> None:
    """Another search has other hypotheses."""
    st.session_state.beam = ""
    forget_step()


def take_own(model: str, text: str) -> None:
    """The model's translation that is on screen into the field."""
    search, name = requested_search(model, text)
    while not is_done(search, name):  # it may have been let go since it was shown
        search.resume()
    beams = search.steps[-1]
    st.session_state.target = loaded(model).tokenizer.text(beams[chosen_place(beams)].ids)
    forget_step()


def drop_own() -> None:
    """Back to the model's own words."""
    st.session_state.target = ""
    forget_step()


def stop_search(name: tuple[str, str, str] | None) -> None:
    """End this search where it is; None: go on with it."""
    st.session_state.stopped = name


def translate() -> None:
    """The tab Translate: a model that translates, and the search for its output."""
    current_recording.show_fallback()
    model, text = st.session_state.model, st.session_state.text
    language_controls(model)
    seek(model, text)
    translate_fragment(model, text)


@event_log.fragment
def translate_fragment(model: str, text: str) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    bar = st.container(horizontal=True, vertical_alignment="bottom")
    typed = search_controls(bar, model, text)
    search_steps = searched(model, text)
    beams = search_steps.steps[-1]
    place = chosen_place(beams)
    beam = beams[place]
    target = typed if typed is not None else beam.ids[: len(beam.ids) - beam.done]
    run = current_recording.current_run(model, target=target)
    recording = run.recording()
    ended = beam.done if typed is None else not recording.target_dropped
    view, form = view_menu(bar, recording)
    n = len(recording.streams[1].tokens) - 1 + (ended and loaded(model).has_end())
    # Of one's own words the last that was typed.
    newest = max(1, n - ended) if typed is not None else None
    step = url_state.whole_number("step", n + 1) or newest
    make = partial(translation_panels.alignment, run, step, view, form, ended)
    output.show_panel(make, "alignment")
    if copied := translation_panels.copied(run):
        st.caption(copied)
    if typed is None and len(beams) > 1:
        most = None if search_steps.finished else len(search_steps.steps)
        source = Run(model, text)
        make = partial(
            translation_panels.hypotheses, source, int(st.session_state.beams), place + 1, most
        )
        output.show_panel(make, "hypotheses", forget_step)
    with st.expander("Probability of the translation", expanded=typed is not None):
        make = partial(translation_panels.probability, run, ended)
        output.show_panel(make, "probability")
    output.offer_recording(run)
    url_state.write()


def view_menu(bar: DeltaGenerator, recording: Recording) -> tuple[str, str]:
    """The menu of heads and pictures: the view of the attention, and what it is drawn as."""
    layers, heads = translation.cross_attention(recording).pattern.shape[:2]
    names = translation.view_names(layers, heads)
    view = url_state.one_of("cross", names)
    form = url_state.one_of("cross_as", translation_panels.FORMS)
    with bar.popover("View"):
        st.selectbox(
            "Cross-attention",
            (translation.MEAN_OF_ALL, *names[:-1]),
            key="cross",
            format_func=lambda name: translation.view_title(name, layers, heads),
            persist_state="session",
        )
        st.segmented_control(
            "Picture",
            translation_panels.FORMS,
            key="cross_as",
            required=True,
            persist_state="session",
        )
    return view, form
