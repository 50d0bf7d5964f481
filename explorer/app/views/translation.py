"""A translation token by token, and what its decoder attends to in the source."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app.layout import current_recording, output, tab
from explorer.app.state import url_state
from explorer.app.state.visit import visit
from explorer.app.views.predictions import sampling_menu, sampling_settings
from explorer.figures.formatting import plural
from explorer.panels import translation as translation_panels
from explorer.panels.generation import SEEDS
from explorer.screens.screen import Screen
from explorer.screens.subjects import DRAWN, SUBJECTS, WAYS
from explorer.wording import model_descriptions
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models import model_names
from models.contract.results import Beam, SeededSampling
from models.own import drafts
from models.runtime.caching import loaded
from models.runtime.run import Run

WORDS = sentences("translation", "tab")

# ---- search --------------------------------------------------------------------------

PATIENCE = 0.4  # seconds of silence before the translation in the making is shown
BREATH = 0.1  # seconds between two looks at it


def search_controls(bar: DeltaGenerator, model: str, text: str) -> str | None:
    """Show the controls of the search, and the field for one's own translation: returns what stands
    in it, None where it is empty."""
    typed = st.session_state.target
    bar.selectbox(
        "Search",
        tuple(WAYS),
        key="beams",
        format_func=WAYS.__getitem__,
        persist_state="session",
        on_change=forget_beam,
        disabled=bool(typed.strip()),
        width=170,
        help=(WORDS("decoding")),
    )
    language = model_descriptions.LANGUAGE.get(model, "output")
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
        sampling_menu(bar, Run(model, text))
        bar.button("Sample again", on_click=draw_another, args=(model, text))
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
    visit.model = model_names.in_languages(model, pair)
    forget_beam()
    url_state.forget_head()


def draw_another(model: str, text: str) -> None:
    """The next seed."""
    _, seed = sampling_settings(Run(model, text))
    st.session_state.seed = str((seed + 1) % len(SEEDS))
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
            st.info(WORDS("stopped", tokens=plural(len(search.steps), "token")))
            st.button("Continue", key="go on", on_click=stop_search, args=(None,))
    return search


def requested_search(model: str, text: str) -> tuple[drafts.Search, tuple[str, str, str]]:
    """The search that the reader asked for, and its name."""
    way = how(Run(model, text))
    return drafts.search(model, text, way), (model, text, repr(way))


def how(run: Run) -> int | SeededSampling:
    """Search method: the number of beams, or the sampling of each token."""
    way = url_state.values(SUBJECTS["output"], run)["beams"]
    return SeededSampling(*sampling_settings(run)) if way == DRAWN else int(way)


def is_done(search: drafts.Search, name: tuple[str, str, str]) -> bool:
    """True for a search that came to its end, or that the reader stopped."""
    return search.finished or (bool(search.steps) and visit.stopped_search == name)


def chosen_place(run: Run, beams: tuple[Beam, ...]) -> int:
    """The hypothesis on screen, from 0. The address counts from 1, as the list does."""
    beam = url_state.values(translation_panels.hypotheses, run, {"n_beams": len(beams)})["beam"]
    return (beam or 1) - 1


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
    st.session_state.target = loaded(model).tokenizer.text(
        beams[chosen_place(Run(model, text), beams)].ids
    )
    forget_step()


def drop_own() -> None:
    """Back to the model's own words."""
    st.session_state.target = ""
    forget_step()


def stop_search(name: tuple[str, str, str] | None) -> None:
    """End this search where it is; None: go on with it."""
    visit.stopped_search = name


def read_translation() -> Run:
    """The text on screen with the best translation of the search, which runs to its end first."""
    model, text = visit.model, visit.text
    notes = st.container()
    language_controls(model)
    seek(model, text)
    best = requested_search(model, text)[0].steps[-1][0]
    run = Run(model, text, target=best.ids[: len(best.ids) - best.done])
    current_recording.note_language(run.recording(), notes)
    return run


def translation(run: Run, bar: DeltaGenerator) -> tuple[Run, Mapping[str, Any]]:
    """The run with the output that is on screen: what the reader typed, or a hypothesis of the
    search. Of a search with several, how many there are and the one on screen, counted from 1, and
    after which step it was stopped."""
    typed = search_controls(bar, run.model, run.text)
    search = searched(run.model, run.text)
    hypotheses = search.steps[-1]
    place = chosen_place(Run(run.model, run.text), hypotheses)
    beam = hypotheses[place]
    target = typed if typed is not None else beam.ids[: len(beam.ids) - beam.done]
    run = current_recording.current_run(run.model, target=target, headline=True)
    if typed is not None:
        return run, {"ended": not run.recording().target_dropped}
    if len(hypotheses) == 1:
        return run, {"ended": beam.done, "n_beams": 1}
    most = None if search.finished else len(search.steps)
    n_beams = how(run)
    return run, {"ended": beam.done, "n_beams": n_beams, "beam": place + 1, "most": most}


def output_details(shown: Screen) -> None:
    """Notes on whether the output copies the source, the other hypotheses, and the probability."""
    run, chosen = shown.run, shown.chosen
    if copied := translation_panels.copied(run):
        st.caption(copied)
    if chosen.get("n_beams", 1) > 1:
        plain = Run(run.model, run.text)
        tab.show(translation_panels.hypotheses, plain, chosen, forget_step)
    is_own = "n_beams" not in chosen
    with (
        output.links("of tab"),
        st.expander("Probability of the translation", expanded=is_own),
    ):
        tab.parts(shown, shown.tab.below)
    output.offer_recording(run)


tab.view("translate", tab.Hand(read=read_translation, made=translation, below=output_details))
