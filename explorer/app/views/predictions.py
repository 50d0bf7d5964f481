"""Predictions of a model: for one place, while it writes, at each layer, and out of which parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import head_naming, logit_lens, predictions
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.logit_lens import read_stream
from explorer.analysis.questions import is_question
from explorer.app.layout import controls, current_recording, navigation, output, selection_bar, tab
from explorer.app.state import event_log, jobs, url_state
from explorer.app.state.models import SMOLLM2, is_chat_model, server_models
from explorer.app.state.visit import visit
from explorer.figures.formatting import signed
from explorer.panels import attribution, generation
from explorer.panels import predictions as predictions_panels
from explorer.panels.choice import EVERY, TRUE
from explorer.panels.masks import NOTHING, fills, masked_in, unmasked
from explorer.panels.selection import predicted
from explorer.screens.screen import Screen
from explorer.text import places
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models import model_names
from models.contract.recording import Recording
from models.contract.results import Part, Sampling
from models.own import drafts
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.tokens import chat

WORD_TAB = sentences("predictions", "tab")

WORDS = sentences("generation", "tab")

# ---- masked words --------------------------------------------------------------------


def select_predicted(shown: Screen) -> None:
    """The menu of the token whose prediction is opened."""
    at = predicted(shown.run, shown.chosen["token"])
    selection_bar.show_word(at.stream, at.token)


# ---- generation controls -------------------------------------------------------------

MANY = 12  # tokens to be read again one by one, from which on a bar shows how far it has come


def sampling_settings(run: Run) -> tuple[Sampling, int]:
    """Sampling settings of the next token, from the address or the sliders, and the seed."""
    chosen = url_state.values(generation.next_token, run)
    return Sampling(chosen["temperature"], chosen["top_k"], chosen["top_p"]), chosen["seed"]


def sampling_menu(bar: DeltaGenerator, run: Run) -> None:
    """The menu with temperature, top-k, top-p and seed, named after what it holds."""
    with bar.popover(f"Sampling: {sampling_text(*sampling_settings(run))}"):
        tab.choose(generation.next_token, run, {"continuation": ""})


def sampling_text(sampling: Sampling, seed: int) -> str:
    """The settings in few words."""
    settings = generation.settings_text(sampling) or "temperature 1"
    return settings if sampling.temperature == 0 else f"{settings}, seed {seed}"


def catch_up(draft: drafts.Draft, n_vocab: int) -> None:
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


def generation_buttons(model: str, text: str, draft: drafts.Draft) -> None:
    """Buttons that write tokens and take them back, and the menu of the sampling settings."""
    playing, over, fresh = visit.playing, draft.ended or draft.full, not draft.tokens
    name, icon = ("Pause", "pause") if playing else ("Play", "play_arrow")
    every: tuple[tuple[str, str, str, bool, Callable[[str, str], Any], str], ...] = (
        ("Step", "write one", "skip_next", over, step, "Write one token."),
        (
            name,
            "write on",
            icon,
            over,
            pause if playing else play,
            WORDS("play"),
        ),
        ("Back", "take back", "undo", fresh, back, WORDS("back")),
        ("Start over", "write anew", "restart_alt", fresh, start_over, WORDS("start_over")),
        (
            "Add to my text",
            "adopt",
            "playlist_add",
            fresh,
            adopt,
            WORDS("adopt"),
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
    sampling_menu(bar, Run(model, text))


def step(model: str, text: str) -> bool:
    """Write the token that is drawn next; False where the text is over."""
    draft = jobs.draft(model, text)
    ids = url_state.whole_numbers("said", loaded(model).record(text).model.n_vocab)
    if draft.step_towards(ids):
        return True  # the page is still reading the tokens before
    if draft.ended or draft.full:
        return False
    sampling, seed = sampling_settings(Run(model, text))
    of = predictions.distribution(draft.writing.logits, sampling)
    drawn = predictions.draw(of, seed, len(draft.writing.ids))
    write([*(word.id for word in draft.tokens), drawn.id])
    return True


def write_answer(run: Run, draft: drafts.Draft, told: Callable[[Sequence[int]], None]) -> None:
    """Write the answer to a question to its end, or as far as an answer goes. told: is given the
    ids so far after each token."""
    told(())
    while len(draft.tokens) < generation.MOST_OF_ANSWER and step(run.model, run.text):
        catch_up(draft, run.recording().model.n_vocab)
        told([word.id for word in draft.tokens])


def play(model: str, text: str) -> None:
    """Write on: the whole page runs again, with a clock."""
    visit.play = visit.whole_page = True


def pause(*_: str) -> None:
    """Stop writing, where the model writes on: the whole page runs again, without a clock."""
    if visit.playing:
        visit.whole_page = True


def back(model: str, text: str) -> None:
    """Take the last token back."""
    pause()
    write([word.id for word in jobs.draft(model, text).tokens][:-1])


def start_over(model: str, text: str) -> None:
    """Take every generated token back."""
    pause()
    st.session_state.said = ""


def adopt(model: str, text: str) -> None:
    """Make the generated tokens a part of the text, of a chat the assistant's message."""
    draft = jobs.draft(model, text)
    continued = generation.with_tokens(model, text, draft.writing.ids, draft.n_prompt)
    current_recording.take_text(continued)
    visit.whole_page = True


# ---- generation ----------------------------------------------------------------------

PACE = 0.6  # seconds between two tokens while the model writes on


def generation_panels(model: str, text: str) -> None:
    """Show the answer to a text; while it is written, its fragment runs again and again."""
    visit.playing, visit.play = visit.play, False
    playing = visit.playing
    event_log.fragment(generation_fragment, run_every=PACE if playing else None)(
        model, text, playing
    )


def generation_fragment(model: str, text: str, playing: bool) -> None:
    """The answer, what one head read for it, and behind a press how each token was written. It
    takes names and not the recording, which Streamlit would keep for as long as the visit lasts."""
    state, run = st.session_state, Run(model, text)
    if visit.whole_page:
        visit.whole_page = False
        st.rerun()
    try:
        draft = jobs.draft(model, text)
    except ValueError as reason:
        no_room(run, str(reason))
        return
    catch_up(draft, run.recording().model.n_vocab)
    if playing and not step(model, text):
        st.rerun()  # the text is over
    catch_up(draft, run.recording().model.n_vocab)
    show_answer(run, draft)
    written = {"continuation": state.said}
    if not playing:
        head_of_answer(run, written)
    each_token(run, draft, written)
    if not playing:  # an address for every token would fill the browser's history
        url_state.write()


# ---- the answer ----------------------------------------------------------------------

WIDE = [2, 1]  # of the picture of a head, and of what is left without it


def show_answer(run: Run, draft: drafts.Draft) -> None:
    """The answer, a short one in large type: what is written so far, else the likeliest one, word
    after word as they come."""
    model, is_chat = literal(model_names.title(run.model)), chat.n_messages(run.recording())
    asked = literal(_excerpt(question_of(run) if is_chat else run.text))
    name = "answers" if is_chat else "continues"
    st.caption(WORDS(name, model=model, text=asked))
    large, small = (st.container(key=key).empty() for key in ("answer", "continuation"))

    def show(ids: Sequence[int], text: str) -> None:
        is_large = is_chat and len(generation.answer_text(run, ids)) <= LONGEST_LARGE
        title, other = (large, small) if is_large else (small, large)
        other.empty()
        title.title(text, anchor=False)

    def tell(ids: Sequence[int]) -> None:
        show(ids, f"{literal(generation.answer_text(run, ids))} {WORDS('begins')}".strip())

    if visit.answering:
        visit.answering = False
        with st.spinner(WORDS("writing")):
            write_answer(run, draft, tell)
    drafted = ".".join(str(word.id) for word in draft.tokens)
    with st.spinner(WORDS("writing")):
        ids = generation.written_ids(run, drafted, tell)
    show(ids, _marked(run, drafted, ids))
    with st.container(horizontal=True, vertical_alignment="center", key="answers"):
        st.button(
            WORDS("sample"), key="sample answer", icon=":material/casino:", on_click=sample_answer
        )
        if drafted:
            st.button(WORDS("likeliest"), key="likeliest answer", on_click=likeliest_answer)
        settings = sampling_text(*sampling_settings(run))
        st.caption(
            WORDS("drawn", settings=settings) if drafted else WORDS("greedy"), width="content"
        )


LONGEST = 80  # letters of a question above its answer
LONGEST_LARGE = 40  # letters of an answer in large type


def _excerpt(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST].rstrip()} …"


def question_of(run: Run) -> str:
    """The last message of a chat's user."""
    asked = [each for each in chat.messages(run.text) if each.role == "user"]
    return run.text[asked[-1].start : asked[-1].end] if asked else run.text


def _marked(run: Run, said: str, ids: Sequence[int]) -> str:
    """The text of an answer, the word that is told of in the colour of what the model says."""
    text = generation.answer_text(run, ids)
    if not text:
        return WORDS("no_answer")
    is_over = chat.n_messages(run.recording()) and len(ids) < generation.MOST_OF_ANSWER
    end = "" if is_over or said else " …"
    try:
        word = generation.answer_word(run, said).word
    except ValueError:
        return literal(text) + end
    before, own, after = text.partition(word)
    marked = f":primary[{literal(own)}]" if own else ""
    return f"{literal(before)}{marked}{literal(after)}{end}"


SAMPLE = "0.8"  # temperature of another answer


def sample_answer() -> None:
    """Have another answer drawn, with the next seed. For a callback."""
    state = st.session_state
    seed = int(state.seed) + 1 if str(state.seed).isdecimal() else 1
    state.seed, state.temperature, state.said = str(seed), SAMPLE, ""
    visit.answering = True


def likeliest_answer() -> None:
    """Back to the likeliest answer. For a callback."""
    pause()
    for name in ("said", "temperature", "seed"):
        st.session_state[name] = url_state.default(name)


def head_of_answer(run: Run, written: Mapping[str, str]) -> None:
    """Draw what one head read to write a word of the answer, and what is left of it without that
    head, or why there is none."""
    try:
        with st.spinner(WORDS("looking")):
            panel = generation.reading_head(run, **written)
    except ValueError as reason:
        st.caption(literal(str(reason)))
        return
    left, right = st.columns(WIDE, gap="large")
    with left:
        output.show_panel(panel, tab.widget_key(generation.reading_head))
    with right:
        with st.spinner(WORDS("taking_out")):
            turns = generation.decides(generation.answer_word(run, **written))
        if turns:
            without = generation.answer_without_head(run, **written)
            output.show_panel(without, tab.widget_key(generation.answer_without_head))


def each_token(run: Run, draft: drafts.Draft, written: Mapping[str, str]) -> None:
    """Draw the way each token was written, and its rivals: behind a press, open where the address
    chooses something in it."""
    chosen = url_state.values(generation.next_token, run, written)
    asked = ("said", "temperature", "top_k", "top_p", "seed")
    is_asked = any(st.session_state[each] != url_state.default(each) for each in asked)
    special = int(run.recording().streams[0].special.sum())
    has_template = chat.n_messages(run.recording())
    label = WORDS("rivals_chat", n=special) if has_template else WORDS("rivals")
    is_open = is_asked or visit.playing
    with st.expander(label, key="fold rivals", expanded=is_open, on_change="rerun") as box:
        if not box.open:
            return
        drafts.generated_text(run.model, run.text, tuple(each.id for each in draft.tokens), draft)
        generation_buttons(run.model, run.text, draft)
        left, right = st.columns([11, 9], gap="large")
        with left:
            tab.show(generation.next_token, run, chosen, pause)
        with right:
            chosen = url_state.values(generation.attention, run, written)
            back_to_mean = partial(deselect, chosen["layer"], chosen["head"])
            tab.show(generation.attention, run, chosen, back_to_mean)
        if draft.tokens:
            tab.show(generation.tokens, run, written)
        tab.show(generation.kv_cache, run, written)


def no_room(run: Run, reason: str) -> None:
    """Show the prediction after the last token that is read, where nothing can be generated."""
    recording = run.recording()
    n, most = len(recording.streams[0].tokens), recording.model.n_positions
    name = "nothing_longer" if n >= most else "nothing"
    st.info(WORDS(name, reason=literal(reason)))
    chosen = url_state.values(predictions_panels.word, run, {"token": n - 1})
    if tab.show(predictions_panels.word, run, chosen):
        lead = places.ROWS["word"].leads["attribution"]
        navigation.link("attribution", lead.label, {"token": n - 1, "against": ""})


def deselect(layer: int | str, head: int | str) -> None:
    """Back to the mean where the selected head was pressed again."""
    state = st.session_state
    if layer != EVERY and (state.layer, state.head) == (str(layer), str(head)):
        state.layer = state.head = ""


# ---- masked lm -----------------------------------------------------------------------


def note_mask(run: Run, bar: DeltaGenerator) -> None:
    """Say of a mask token in the text that the model has none."""
    features, typed = run.loaded.capabilities, predictions.first_mask(run.text)
    if typed and not features.mask and not features.classes:
        which = "typed_mask_next" if run.loaded.card.kind == "decoder" else "typed_mask"
        words, name = sentences("predictions", "word"), literal(model_names.title(run.model))
        st.info(words(which, model=name, mask=literal(typed)))


def no_menus(shown: Screen) -> None:
    """Nothing above the sentence, in which a word is chosen."""


def below_blank(shown: Screen) -> None:
    """Below the sentence the ways to another blank."""
    with st.container(horizontal=True, vertical_alignment="center", key="after-blank"):
        select_masked(shown)


def select_masked(shown: Screen) -> None:
    """The menu of the word that is predicted, and of a model that fills gaps what hides several,
    unmasks all, and asks a model for the next word."""
    run = shown.run
    stream = read_stream(unmasked(run))
    if not fills(run.recording()):
        selection_bar.show_word(stream, shown.chosen["token"])
        return
    words = [at for at, special in enumerate(stream.special) if not special]
    selection_bar.show_word(stream, shown.chosen["token"], places=words)
    is_several = bool(shown.chosen["several"])
    bound = controls.bind("several", "several on", is_several, {True: TRUE, False: ""}.__getitem__)
    st.toggle(WORD_TAB("several"), **bound)
    if (n := len(masked_in(run))) > 1:
        st.button(f"Unmask all {n} words", key="show all", type="tertiary", on_click=show_all)
    other = SMOLLM2 if SMOLLM2 in server_models() else "decoder"
    pressed = st.button(
        WORD_TAB("next_with", model=model_names.title(other)),
        key="next word with",
        type="tertiary",
        on_click=url_state.take_model,
        args=(other,),
    )
    if pressed:
        st.rerun()  # the whole page: the model's name stands above this part


def show_all() -> None:
    """Unmask every word."""
    st.session_state.hidden = NOTHING


# ---- logit attribution ---------------------------------------------------------------


def named_head(recording: Recording, part: Part, token: int) -> None:
    """The head whose bar was chosen: what it is called on this text, and the way to its picture."""
    attention = next(one for one in recording.attention if one.name == part.attention)
    cross = part.attention == "cross"
    words = f"**Layer {part.layer}, head {part.head}**{' of the cross-attention' * cross}"
    if attention.query == attention.key:
        heads = RecordingFacts(recording).named_heads(attention.name)
        head = heads[part.layer * recording.model.n_head + part.head]
        meaning = head_naming.meanings(recording, attention)[head.name].rstrip(".")
        words += f" is called **{head.name}** on this text. {meaning}"
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(f"{words}. It contributes {signed(part.value, 3)}.", width="content")
        if cross:
            where = f"{part.layer}.{part.head}"
            navigation.link("translate", "Open in Translate", {"cross": where})
            return
        own = "" if attention is recording.attention[0] else attention.name
        at = {"attention": own, "layer": part.layer, "head": part.head, "token": token}
        navigation.link("heads", "Open in Attention", at)


def head_and_neurons(shown: Screen) -> None:
    """The selected head with the way to it, the neurons of one layer, and what heads bring."""
    run, chosen = shown.run, shown.chosen
    word = {name: chosen[name] for name in ("token", "word", "against")}
    decomposition = attribution.logit_parts(run, **word).attribution
    heads = {logit_lens.part_key(part): part for part in decomposition.parts if part.kind == "head"}
    if part := heads.get(chosen["part"]):
        named_head(run.recording(), part, predicted(run, chosen["token"]).token)
    offer_head(shown, part or logit_lens.largest_parts(decomposition)[0])
    has_ffns = bool(logit_lens.ffns(decomposition))
    tab.parts(shown, shown.tab.below if has_ffns else shown.tab.below[1:])


def offer_head(shown: Screen, part: Part) -> None:
    """Draw what changes the answer without a head, where the answer is that of the word that a text
    opens on, in a model as it was trained."""
    run, chosen = shown.run, shown.chosen
    is_answer = predicted(run, chosen["token"]).token == predicted(run).token
    is_answer &= chosen["word"] is None and chosen["against"] is None
    if part.kind != "head" or not is_answer or unmasked(run).edits:
        return
    at = {"layer": part.layer, "head": part.head, "attention": part.attention}
    with st.container(key="offers-below"):
        output.offers("offers.what_changes", run, at)


def head_of_class(shown: Screen) -> None:
    """The selected head of a class's logit, with the way to it."""
    chosen = shown.chosen
    if not chosen["part"]:
        return
    try:
        on = attribution.class_parts(shown.run, chosen["of_class"], chosen["against_class"])
    except ValueError:
        return
    parts = on.attribution.parts
    heads = {logit_lens.part_key(part): part for part in parts if part.kind == "head"}
    if part := heads.get(chosen["part"]):
        named_head(shown.run.recording(), part, on.at.token)


def as_asked(run: Run) -> Run:
    """A run, its text as a chat where it is a question to a model that answers."""
    if not is_chat_model(run.model) or not is_question(run.text):
        return run
    return Run(run.model, f"user: {' '.join(run.text.split())}")


@tab.by_hand("generate")
def generate() -> None:
    """The tab Answer."""
    current_recording.show_fallback()
    run = as_asked(current_recording.read_current(edited=False))
    generation_panels(run.model, run.text)
    url_state.write()


tab.view(
    "word",
    tab.Hand(
        top=note_mask,
        select=no_menus,
        below=below_blank,
        fits={"classroom": lambda run: bool(run.loaded.capabilities.logits)},
    ),
)
tab.view("lens", tab.Hand(select=select_predicted))
tab.view(
    "attribution",
    tab.Hand(
        select=select_predicted,
        below=head_and_neurons,
        for_classes=tab.Hand(below=head_of_class),
    ),
)
