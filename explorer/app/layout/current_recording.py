"""The text, model and recording on screen, and the messages about them on every page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial, wraps
from itertools import takewhile

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import coreference
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.questions import is_question
from explorer.analysis.word_classes import unread_language
from explorer.analysis.words import described
from explorer.app.state import event_log, jobs, url_state
from explorer.app.state.models import SMOLLM2, is_chat_model, server_models, typed_special
from explorer.app.state.url_state import fits_address, forget_token
from explorer.app.state.visit import visit
from explorer.figures.formatting import CHARACTER_PART, plural
from explorer.panels.choice import declared
from explorer.panels.spec import hybrid
from explorer.screens.subjects import under_edits
from explorer.wording.markdown_escape import literal, well_formed
from explorer.wording.model_descriptions import examples, origin, scores, taught
from explorer.wording.templates import sentences
from models import model_names
from models.contract.recording import CONTINUES, NotEncoded, Recording
from models.example_texts import EXAMPLES
from models.own import model_card
from models.runtime.caching import loaded
from models.runtime.run import Run, run_of
from models.tokens import chat

NOTES = sentences("frame", "text")
RECORDED = sentences("frame", "recorded")

SHORT = 400  # characters
EXAMPLE_CUT = 44  # letters of a text on a button
N_EXAMPLES = 3  # that a text too short to show anything is offered


def card_lines(model: str) -> str:
    """A model's card in a few lines of Markdown."""
    card = model_card.facts(model)
    size = card["config"]
    _, _, step = model.partition("@")
    of_heads = taught(card, int(step) if step.isdecimal() else None)
    about = origin(model), scores(model, card.get("scores", {})), of_heads, *card["limits"]
    return (
        f"**{literal(model_names.title(model))}**: {card['summary']} {size['n_layer']} layers of "
        f"{size['n_head']} heads, {card['n_parameters']:,} parameters. "
        + (card["headline"] if "@" not in model else "")  # measured of the last weights
        + "\n\n"
        + "\n".join(f"- {line}" for line in about if line)
    )


def show_fallback() -> None:
    """Say which model the page shows in the place of the chosen one, and why; or that it shows an
    example, with the way back."""
    message, alternatives = url_state.fallback_message()
    if message:
        st.caption(message, help=alternatives)
    if text := url_state.replaced_text():
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(NOTES("example"), width="content")
            short = text if len(text) <= EXAMPLE_CUT else f"{text[: EXAMPLE_CUT - 1].rstrip()}…"
            label = NOTES("take_back", text=literal(short))
            act = url_state.take_back_text
            st.button(label, key="take text back", type="tertiary", on_click=act)


def tab(
    read: Callable[[], Run | None],
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make a tab of a function that draws what is below the sentence bar from a run and from the
    choices that its signature declares, as a panel's does.

    In a run of the whole page `read` gives the run, or says why there is none: None. A press below
    the bar draws alone. It takes names and not the recording, which Streamlit would keep for every
    visitor for as long as the visit lasts. Then the choices are written into the address.
    """

    def decorate(draw: Callable[..., None]) -> Callable[[], None]:
        if choices := declared(draw):
            url_state.declare(draw.__name__, *choices)

        @wraps(draw)
        def draw_and_write(run: Run) -> None:
            if model_names.is_borrowed(run.model):
                measure_pronoun_heads(run.recording())
            draw(run, **url_state.values(draw, run))
            url_state.write()

        fragment = event_log.fragment(draw_and_write)

        @wraps(draw)
        def show() -> None:
            show_fallback()
            if (run := read()) is not None:
                fragment(run)

        return show

    return decorate


def measure_pronoun_heads(recording: Recording) -> None:
    """Measure in the background, once, which heads of an opened model that has learned find a
    pronoun's noun."""
    card = recording.model
    if model_names.is_recorded(card.name):
        return  # it reads no other text
    if coreference.is_measured(card.fingerprint) or not model_names.is_borrowed(card.name):
        return
    if RecordingFacts(recording).is_learned():
        texts = tuple(coreference.sentences())
        reading = jobs.corpus_job(card.name, texts, "pronouns", coreference.measure_sentence)
        if reading.finished:
            coreference.remember(card.fingerprint, coreference.coreference_heads(reading.latest))
        reading.resume()


def current_run(
    model: str | None = None,
    target: str | tuple[int, ...] | None = None,
    headline: bool = False,
) -> Run:
    """The recording on screen, with a message where the text did not fit or is empty. headline:
    true for a page that says above its picture that a text is in a language that the model has not
    read.

    A page keeps this and not the Recording: Streamlit keeps a page's own variables for every
    visitor, for as long as the visit lasts."""
    run = run_on_screen(target, model)
    try:
        recording = run.recording()
    except NotEncoded as error:
        st.warning(literal(str(error)))
        st.stop()
    visit.n_tokens = len(recording.streams[0].tokens)  # for the log
    url_state.follow_words(recording)
    measure_pronoun_heads(recording)
    # Always there, so that what follows keeps its place on the page, and with it its state.
    notes = st.container()
    n_characters = len(visit.text)
    if n_characters > len(recording.text):
        notes.warning(NOTES("cut", n_read=len(recording.text), n=n_characters))
    if recording.dropped:
        n = recording.model.n_positions
        notes.warning(
            NOTES(
                "too_long_cut" if n_characters > len(recording.text) else "too_long",
                n=recording.dropped + n,
                model=literal(model_names.title(recording.model.name)),
                most=n,
                dropped=recording.dropped,
            )
        )
    if recording.target_dropped:
        n = recording.model.n_positions
        notes.warning(
            NOTES(
                "target_too_long",
                n=recording.target_dropped + n - 1,
                model=literal(model_names.title(recording.model.name)),
                most=n,
                dropped=recording.target_dropped,
            )
        )
    note_origin(recording, notes)
    n_tokens = int((~recording.streams[0].special).sum())
    if not recording.text.strip() or n_tokens < 2:
        few = (
            "no_text" if not n_tokens else "one_token" if recording.text.strip() else "white_space"
        )
        notes.info(NOTES(few))
        offer_examples(notes)
    if n_messages := chat.n_messages(recording):
        n_template = int(recording.streams[0].special.sum())
        notes.caption(
            NOTES(
                "chat",
                messages=plural(n_messages, "message"),
                n=n_template,
                tokens=plural(len(recording.streams[0].tokens), "token"),
            )
        )
    note_form(recording, notes)
    if not headline:
        note_language(recording, notes)
    note_pieces(recording, notes)
    if not fits_address(recording.text):
        notes.info(NOTES("fits_no_link", n=len(recording.text)))
    return run


def run_on_screen(target: str | tuple[int, ...] | None = None, model: str | None = None) -> Run:
    """The run of the text and the model on screen, without edits; of a recording from a file its
    own, and where the text is another, a message and the way back in the place of the page."""
    name, text = model or visit.model, visit.text
    if (recorded := loaded(name).recorded) is None:
        return Run(name, text, (), target)
    if text != recorded.text:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(RECORDED("other_text"), width="content")
            st.button(
                RECORDED("take_back"),
                key="text of recording",
                type="tertiary",
                on_click=take_text,
                args=(recorded.text,),
            )
        st.stop()
    return run_of(recorded)


def offer_examples(notes: DeltaGenerator) -> None:
    """Buttons with the first texts that suit the model."""
    texts = examples(visit.model) or EXAMPLES
    if model_names.is_recorded(visit.model):
        return
    with notes.container(horizontal=True, key="first examples"):
        for label, text in list(texts.items())[:N_EXAMPLES]:
            st.button(
                label, key=f"example {label}", type="tertiary", on_click=take_text, args=(text,)
            )


def note_origin(recording: Recording, notes: DeltaGenerator) -> None:
    """Say under which edits a file was recorded, and which layers a hybrid model shows."""
    if recording.edits and model_names.is_recorded(recording.model.name):
        notes.caption(RECORDED("edited", edits=literal(described(recording, recording.edits))))
    for line in hybrid(recording):
        notes.caption(literal(line))


def note_pieces(recording: Recording, notes: DeltaGenerator) -> None:
    """Explain the first character that is read as its bytes, else the first word of several
    tokens."""
    tokens = recording.streams[0].tokens
    part = next(filter(None, map(CHARACTER_PART.fullmatch, tokens)), None)
    continued = next((at for at, token in enumerate(tokens) if token.startswith(CONTINUES)), 0)
    if part is not None:
        character, _, n = part.groups()
        model = literal(model_names.title(recording.model.name))
        notes.caption(
            NOTES("byte", character=literal(character), tokens=plural(n, "token"), model=model)
        )
    elif continued:
        rest = takewhile(lambda token: token.startswith(CONTINUES), tokens[continued:])
        word = [tokens[continued - 1], *rest]
        notes.caption(NOTES("continued", word=literal(" ".join(word)), n=len(word), mark=CONTINUES))


def note_form(recording: Recording, notes: DeltaGenerator) -> None:
    """Say how a text is read that has special tokens of its model, or else one that is a bare
    question."""
    if token := typed_special(recording):
        note_special(recording, token, notes)
    else:
        note_question(recording, notes)


def note_special(recording: Recording, token: str, notes: DeltaGenerator) -> None:
    """Show a caption on a special token of the model that the text spells, which is read as
    letters."""
    name = recording.model.name
    of_chat = is_chat_model(name) and not recording.streams[0].roles
    slots = {"token": literal(token), "model": literal(model_names.title(name))}
    notes.caption(NOTES("special_chat" if of_chat else "special", **slots))


def note_question(recording: Recording, notes: DeltaGenerator) -> None:
    """Under a bare question, what its model does with it, and a button that asks a model that
    answers, in the form of a chat."""
    name = recording.model.name
    answers = is_chat_model(name)
    if recording.streams[0].roles or not is_question(recording.text):
        return
    if answers and visit.page == "generate":  # it answers there
        return
    if not answers and SMOLLM2 not in server_models():
        return
    kind = (
        "chat"
        if answers
        else recording.model.kind
        if loaded(name).capabilities.logits
        else "no_readout"
    )
    with notes.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            NOTES(f"question_{kind}", model=literal(model_names.title(name))), width="content"
        )
        st.button(
            "Ask it as a chat" if answers else f"Ask {SMOLLM2}",
            key="ask question",
            type="tertiary",
            icon=":material/forum:",
            on_click=_ask,
            args=(name if answers else SMOLLM2, recording.text),
        )


def _ask(model: str, question: str) -> None:
    """Ask a chat model this question, on the tab where it writes its likeliest answer."""
    url_state.take_model(model)
    take_text(" ".join(question.split()))
    visit.wanted_page = "generate"


def note_language(recording: Recording, notes: DeltaGenerator) -> None:
    """Show a caption where a text is in another language than those that its model has read."""
    name = recording.model.name
    if language := unread_language(name, recording.text):
        notes.caption(NOTES("language", model=literal(model_names.title(name)), language=language))


def read_current(edited: bool = True, typed: bool = True, headline: bool = False) -> Run:
    """The run of a page: the text on screen. `edited`: under the edits of Take out. `typed`:
    with the decoder's input where the reader typed one, and a note on it. `headline`: as of
    `current_run`."""
    # A short text is there before a spinner would be.
    long = len(visit.text) > SHORT
    with st.spinner("Reading the text …") if long else nullcontext():
        target = typed_target(visit.model) if typed else None
        run = current_run(target=target, headline=headline)
    show_target(target)
    if not edited:
        return run
    run, why = under_edits(run, str(st.session_state.edits))
    if why:
        st.caption(literal(why))
    return run


unedited = partial(read_current, edited=False)
only_text = partial(read_current, edited=False, typed=False)


def typed_target(model: str) -> str | None:
    """The decoder's input that the reader typed on the Translation page; None for the model's own
    output and for other models."""
    typed = st.session_state.target
    return typed if typed.strip() and loaded(model).card.kind == "encoder-decoder" else None


def show_target(target: str | None) -> None:
    """Show that the decoder reads a text that was typed on another page, with a button to drop
    it."""
    if target is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        words = " ".join(target.split())
        excerpt = words if len(words) <= 80 else f"{words[:80]}…"
        st.info(NOTES("typed_target", text=literal(excerpt)))
        st.button("Back to the model’s translation", key="drop target", on_click=_drop_target)


def _drop_target() -> None:
    visit.acted = True
    st.session_state.target = st.session_state.token = st.session_state.source = ""


def take_preset(texts: Mapping[str, str]) -> None:
    """The text just chosen of `texts`; pressing it once more changes nothing."""
    if visit.preset is not None:
        visit.text = texts[visit.preset]
        st.session_state.target = ""
        forget_token()


def take_text(text: str) -> None:
    """Make this the text on screen, as if the reader had typed it. For a callback, which runs
    before the field is made."""
    visit.text = well_formed(text)
    forget_token()
