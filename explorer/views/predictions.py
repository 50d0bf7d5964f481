"""Predictions of a model: for one place, while it writes, at each layer, and out of which parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import head_naming, logit_lens, predictions, recorded_findings
from explorer.analysis.formatting import signed
from explorer.analysis.logit_lens import read_stream
from explorer.layout import controls, current_recording, navigation, output, selection_bar, tab
from explorer.panels import attribution, generation
from explorer.panels import logit_lens as logit_lens_panels
from explorer.panels import predictions as predictions_panels
from explorer.panels.selection import predicted
from explorer.state import event_log, jobs, url_state
from explorer.state.models import SMOLLM2, server_models
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from models import drafts, model_names
from models.caching import loaded
from models.edits import HideToken
from models.recording import Recording, Stream
from models.results import Part, Sampling
from models.run import Run

WORD_TAB = sentences("predictions", "tab")

WORDS = sentences("generation", "tab")

# ---- page state ----------------------------------------------------------------------

NOTHING = "none"  # masked, as the address says it: no word. Where it says nothing, one is


def fills(recording: Recording) -> bool:
    """True for a model that fills gaps, False for one that writes."""
    return recording.model.kind == "encoder"


def way_to(page: str, label: str, recording: Recording, **choices: object) -> None:
    """A link to the tab of a page with these choices. A text too long for an address goes along in
    the session, and so do they."""
    words = {name: str(value) for name, value in choices.items()}
    if url_state.fits_address(recording.text):
        query = {"model": recording.model.name, "text": recording.text, **words}
        if st.session_state.target:
            query["target"] = st.session_state.target
        navigation.link(page, label, query)
    elif st.button(
        label, key=f"way to {page}", type="tertiary", on_click=_take_choices, args=(words,)
    ):
        navigation.go(page)


def _take_choices(choices: dict[str, str]) -> None:
    for name, value in choices.items():
        st.session_state[name] = value


def show_prediction(run: Run, token: int, on_select: Callable[[], None] | None = None) -> None:
    """The prediction at a token, and the way to how its logit is made."""
    recording = run.recording()
    at = url_state.values(predictions_panels.word, run, {"token": token})
    make = partial(predictions_panels.word, run, **at)
    if output.show_panel(make, "prediction", on_select or forget_word) is None:
        return
    chosen: dict[str, object] = {"token": token, "word": st.session_state.word}
    if fills(recording):
        masked = [edit.token for edit in run.recording().edits if isinstance(edit, HideToken)]
        chosen["hidden"] = ".".join(map(str, masked)) or NOTHING
    way_to("attribution", "Contributions to this logit", recording, **chosen)


def forget_word() -> None:
    """Another token has other words."""
    if "token" in (st.session_state.prediction.get("select") or {}):
        st.session_state.word = ""


def take_selection() -> bool:
    """Take the selection in the bar; True for another token, whose own prediction is opened."""
    if "selected query" not in selection_bar.take():
        return False
    st.session_state.word = st.session_state.against = ""
    return True


def keep_hidden(hidden: tuple[int, ...]) -> None:
    """Keep masked tokens masked: to select a word is not to mask it."""
    if not st.session_state.hidden and hidden:
        st.session_state.hidden = ".".join(map(str, hidden))


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
    playing, over, fresh = st.session_state.playing, draft.ended or draft.full, not draft.tokens
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


def play(model: str, text: str) -> None:
    """Write on: the whole page runs again, with a clock."""
    st.session_state.play = st.session_state["run whole page"] = True


def pause(*_: str) -> None:
    """Stop writing, where the model writes on: the whole page runs again, without a clock."""
    if st.session_state.playing:
        st.session_state["run whole page"] = True


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
    st.session_state["run whole page"] = True


# ---- generation ----------------------------------------------------------------------

PACE = 0.6  # seconds between two tokens while the model writes on


def generation_panels(model: str, text: str) -> None:
    """Show the generation of a text; while it plays, its fragment runs again and again."""
    playing = bool(st.session_state.pop("play", False))
    st.session_state.playing = playing
    event_log.fragment(generation_fragment, run_every=PACE if playing else None)(
        model, text, playing
    )


def generation_fragment(model: str, text: str, playing: bool) -> None:
    """The buttons, the text with its next token, and the attention of the newest one. It takes
    names and not the recording, which Streamlit would keep for as long as the visit lasts."""
    state, run = st.session_state, Run(model, text)
    if state.pop("run whole page", False):
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
    drafts.generated_text(model, text, tuple(each.id for each in draft.tokens), draft)
    generation_buttons(model, text, draft)
    chosen = url_state.values(generation.next_token, run, {"continuation": state.said})
    left, right = st.columns([11, 9], gap="large")
    with left:
        make = partial(generation.next_token, run, **chosen)
        output.show_panel(make, "next token", pause)
    with right:
        layer, head = selected_head(draft)
        make = partial(generation.attention, run, state.said, layer, head)
        output.show_panel(make, "newest", partial(deselect, layer, head))
    if draft.tokens:
        with st.expander("Probability of the generated tokens"):
            output.show_panel(partial(generation.tokens, run, state.said), "generated tokens")
    with st.expander("KV cache: keys and values that are stored"):
        output.show_panel(partial(generation.kv_cache, run, state.said), "kv cache")
    if not playing:  # an address for every token would fill the browser's history
        url_state.write()


def no_room(run: Run, reason: str) -> None:
    """Show the prediction after the last token that is read, where nothing can be generated."""
    recording = run.recording()
    n, most = len(recording.streams[0].tokens), recording.model.n_positions
    name = "nothing_longer" if n >= most else "nothing"
    st.info(WORDS(name, reason=literal(reason)))
    show_prediction(run, n - 1)


def selected_head(draft: drafts.Draft) -> tuple[int | None, int | None]:
    """The layer and the head of the address, both None where there is no such head."""
    return controls.head_on_screen(draft.writing.rows["attn"].shape) or (None, None)


def deselect(layer: int | None, head: int | None) -> None:
    """Back to the mean where the selected head was pressed again."""
    state = st.session_state
    if layer is not None and (state.layer, state.head) == (str(layer), str(head)):
        state.layer = state.head = ""


# ---- masked lm -----------------------------------------------------------------------


def masked_word_panels(source: Run) -> None:
    """The sentence, and the prediction for one of its tokens, masked or not."""
    plain = source.recording()
    hidden, place, typed = gaps(plain)
    if place is None:
        st.info(WORD_TAB("no_word"))
        return
    run = replace(source, edits=(*source.edits, *map(HideToken, hidden)))
    with st.spinner("Reading the text without the masked words …"):
        run.recording()
    stream = plain.streams[0]
    words = [at for at, special in enumerate(stream.special) if not special]
    with st.container(horizontal=True, vertical_alignment="center"):
        selection_bar.show_word(stream, place, places=words)
        st.caption(WORD_TAB("mask"), width="content")
        if len(hidden) > 1:
            unmask = f"Unmask all {len(hidden)} words"
            st.button(unmask, key="show all", type="tertiary", on_click=show_all)
        other = SMOLLM2 if SMOLLM2 in server_models() else "decoder"
        label = WORD_TAB("next_with", model=model_names.title(other))
        pressed = st.button(
            label,
            key="next word with",
            type="tertiary",
            on_click=url_state.take_model,
            args=(other,),
        )
    if pressed:
        st.rerun()  # the whole page: the model's name stands above this part
    show_prediction(run, place, partial(mask_word, hidden, place, typed))


def gaps(recording: Recording) -> tuple[tuple[int, ...], int | None, tuple[int, ...]]:
    """The masked words, in order, without typed mask tokens; the selected token, None in a text
    without tokens of its own; and the typed mask tokens. Where no token is selected, the first
    typed mask, else the word that the first page opens on."""
    stream, state = recording.streams[0], st.session_state
    n, first = len(stream.tokens), predictions.default_masked_word(stream)
    typed = predictions.typed_masks(stream, loaded(recording).capabilities.mask)
    if first is None:
        return (), None, ()
    if typed:
        return *_beside_typed(stream, typed), typed
    opening = recorded_findings.opening_word(recording, recording.attention[0])
    if (
        opening is not None
        and not stream.special[opening]
        and not predictions.is_piece(stream.tokens, opening)
    ):
        first = opening
    chosen = url_state.whole_number("token", n)
    place = chosen if chosen is not None and not stream.special[chosen] else None
    if state.hidden == NOTHING:
        return (), first if place is None else place, ()
    chosen_tokens = tuple(
        sorted({at for at in url_state.whole_numbers("hidden", n) if not stream.special[at]})
    )
    hidden = chosen_tokens or ((first if place is None else place),)
    return hidden, hidden[0] if place is None else place, ()


def _beside_typed(stream: Stream, typed: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The same of a text with typed masks: another word is masked or selected where the reader
    chose it on this page."""
    n, state = len(stream.tokens), st.session_state
    places = url_state.whole_numbers("hidden", n) if state.hidden != NOTHING else ()
    hidden = {at for at in places if not stream.special[at]} - {*typed}
    chosen = url_state.whole_number("token", n)
    is_selected = (
        chosen in typed or state.hidden and chosen is not None and not stream.special[chosen]
    )
    return tuple(sorted(hidden)), chosen if is_selected and chosen is not None else typed[0]


def mask_word(hidden: tuple[int, ...], place: int, typed: tuple[int, ...]) -> None:
    """Mask the token that was pressed and select it; unmask it where it is both already. hidden and
    place: the masked tokens and the selected one before the press."""
    state = st.session_state
    pressed = (state.prediction.get("select") or {}).get("token")
    if pressed is None:
        return
    at = int(pressed)
    if at in typed:
        now = {*hidden}
    elif at == place and at in hidden:
        now = {*hidden} - {at}
    else:  # the word that is masked at first was not the reader's choice
        now = {at} if not state.hidden else {*hidden, at}
    state.word = ""
    state.hidden = ".".join(map(str, sorted(now))) or NOTHING


def show_all() -> None:
    """Unmask every word."""
    st.session_state.hidden = NOTHING


# ---- logit lens ----------------------------------------------------------------------

# ---- logit attribution ---------------------------------------------------------------


def take_part() -> None:
    """A press on an FFN opens its neurons."""
    state = st.session_state
    if state.part.startswith("ffn."):
        state.ffn, state.neuron = state.part.removeprefix("ffn."), ""


def named_head(recording: Recording, part: Part, token: int) -> None:
    """The head whose bar was chosen: what it is called on this text, and the way to its picture."""
    attention = next(one for one in recording.attention if one.name == part.attention)
    cross = part.attention == "cross"
    words = f"**Layer {part.layer}, head {part.head}**{' of the cross-attention' * cross}"
    if attention.query == attention.key:
        heads = recorded_findings.named_heads(recording, attention)
        head = heads[part.layer * recording.model.n_head + part.head]
        meaning = head_naming.meanings(recording, attention)[head.name].rstrip(".")
        words += f" is called **{head.name}** on this text. {meaning}"
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(f"{words}. It contributes {signed(part.value, 3)}.", width="content")
        if cross:
            where = f"{part.layer}.{part.head}"
            way_to("translate", "Open in Translate", recording, cross=where)
            return
        at: dict[str, object] = {"layer": part.layer, "head": part.head, "token": token}
        if attention is not recording.attention[0]:
            at["attention"] = attention.name
        way_to("heads", "Open in Attention", recording, **at)


def can_hide(recording: Recording) -> bool:
    """True for a model that fills in masked words and has a mask."""
    return fills(recording) and HideToken in loaded(recording).capabilities.edits


@current_recording.tab()
def word(run: Run) -> None:
    """The tab Next or masked word: the prediction for one place."""
    recording = run.recording()
    model, text = run.model, run.text
    is_chosen = take_selection()
    if (typed := predictions.first_mask(text)) and not loaded(model).capabilities.mask:
        name = "typed_mask_next" if recording.model.kind == "decoder" else "typed_mask"
        slots = {"model": literal(model_names.title(model)), "mask": literal(typed)}
        st.info(sentences("predictions", "word")(name, **slots))
    if can_hide(recording):
        if is_chosen and typed and not st.session_state.hidden:
            st.session_state.hidden = NOTHING  # the word that is selected instead of the typed mask
        masked_word_panels(run)
    elif fills(recording):
        st.info(WORD_TAB("no_mask", model=literal(model_names.title(model))))
    else:
        stream = recording.streams[-1]
        show_prediction(run, selection_bar.word(stream, len(stream.tokens) - 1))


def generate() -> None:
    """The tab Generate."""
    current_recording.show_fallback()
    source = current_recording.read_current(edited=False)
    generation_panels(source.model, source.text)
    url_state.write()


def selected(source: Run) -> tuple[Run, int | None]:
    """The run with the words hidden that Next or masked word hides, and the token whose prediction
    is opened, None for the first one that is predicted."""
    recording, place = source.recording(), None
    run = source
    hidden = gaps(recording)[0] if can_hide(recording) else ()
    if take_selection():
        keep_hidden(hidden)
    if can_hide(recording):
        hidden, place, _ = gaps(recording)
        run = replace(source, edits=(*source.edits, *map(HideToken, hidden)))
    chosen = url_state.whole_number("token", len(read_stream(recording).tokens))
    return run, place if chosen is None else chosen


@current_recording.tab()
def lens_tab(source: Run) -> None:
    """The tab Logit lens: the predictions at each layer, and how one prediction develops."""
    run, token = selected(source)
    state, recording = st.session_state, run.recording()
    bar = st.container(horizontal=True, vertical_alignment="center")
    with bar:
        selection_bar.show_word(read_stream(recording), predicted(run, token).token)
    with st.spinner("Reading every site …"):
        lens = loaded(recording).lens(recording, read_stream(recording).name)
    if state.site not in lens.sites:
        state.site = ""
    with bar.popover("View"):
        chosen = tab.choose(logit_lens_panels.lens, run, {"token": token})
    hidden = tuple(edit.token for edit in run.recording().edits if isinstance(edit, HideToken))
    make = partial(logit_lens_panels.lens, run, **chosen)
    output.show_panel(make, "logit lens", partial(keep_hidden, hidden))
    output.show_panel(partial(logit_lens_panels.development, run, token, state.site), "development")


@current_recording.tab()
def logit_attribution(source: Run) -> None:
    """The tab Attribution: the parts of one logit, the selected head with the way to it, and the
    neurons of one layer."""
    run, place = selected(source)
    at = predicted(run, place)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        selection_bar.show_word(at.stream, at.token)
        chosen = tab.choose(attribution.logit, run, {"token": at.token})
    if output.show_panel(partial(attribution.logit, run, **chosen), "parts", take_part) is None:
        return
    word = {name: chosen[name] for name in ("token", "word", "against")}
    decomposition = attribution.logit_parts(run, **word).attribution
    heads = {logit_lens.part_key(part): part for part in decomposition.parts if part.kind == "head"}
    if part := heads.get(chosen["part"]):
        named_head(at.recording, part, at.token)
    if logit_lens.ffns(decomposition):
        chosen = tab.choose(attribution.neurons, run, word)
        output.show_panel(partial(attribution.neurons, run, **chosen), "neurons")
