"""Translation: how does a decoder look back at the source?"""

from __future__ import annotations

import time
from math import exp

import streamlit as st

from explorer.analysis import translation as numbers
from explorer.analysis.numbers import enough, fixed, plural, sum_told
from explorer.analysis.right import scaling
from explorer.components import translation as pictures
from explorer.frame import onscreen
from explorer.frame.table import csv_button, recording_button
from explorer.memory import address, background, models, passes, shelf
from explorer.sentences.escape import literal
from models.prediction import Beam
from models.recording import Recording

USUAL = "translator"  # for a model that runs in its own code
BEAMS = ("1", "2", "3", "4", "5")
PATIENCE = 0.4  # seconds of silence before the translation in the making is shown
BREATH = 0.1  # seconds between two looks at it
LANGUAGE = {"translator": "French"}  # what a model writes; "output" for the others


@st.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    st.subheader(
        "How does a decoder look back at the source?",
        anchor=False,
        help="The decoder writes the output one token at a time. For each token its cross-attention weighs the source tokens: that is what is drawn.",
    )
    forced = controls(model, text)
    search = searched(model, text)
    held = search.steps[-1]
    place = chosen_place(held)
    recording, ended = recorded(model, text, held[place], forced)
    said = said_of(recording, ended)
    if forced is None:
        told_beams(model, search, place)
    totals(model, recording, said, search, ended, forced)
    matrix_and_steps(recording, said, ended, forced)
    below(model, text, recording, said, ended, search, place, forced)
    address.write()


def controls(model: str, text: str) -> str | None:
    """How to search, and the field for one's own translation: what stands in it, None where it is empty."""
    left, middle, right = st.columns([1.15, 3, 1], vertical_alignment="bottom")
    address.one_of("beams", BEAMS)
    left.segmented_control(
        "Beams",
        BEAMS,
        key="beams",
        required=True,
        persist_state="session",
        on_change=forget_beam,
        disabled=bool(st.session_state.target.strip()),
        help="1 is greedy: the likeliest token each time. More beams keep that many hypotheses alive side by side and rank them in the end.",
    )
    middle.text_input(
        f"Your own {LANGUAGE.get(model, 'output')}",
        key="target",
        live="300ms",
        persist_state="session",
        on_change=forget_step,
        placeholder="Empty: the model’s own. Type here, and your words are force-fed to the decoder",
        help="Teacher forcing: the decoder reads your words, whatever it would have said, and each is given the probability the model held for it.",
    )
    typed = st.session_state.target
    if not typed.strip():
        right.button(
            "Edit the model’s",
            on_click=take_own,
            args=(model, text),
            width="stretch",
            help="Puts the model’s translation into the field, to be changed.",
        )
        return None
    right.button("Back to the model’s own", on_click=drop_own, width="stretch")
    if not address.fits_address(typed):
        st.info(
            "Your own words are too many for a link. They stay in this tab; reloading the page does not bring them back."
        )
    return typed


def seek(model: str, text: str) -> None:
    """The search for the translation, with what it has so far shown while it runs, and a button that ends it there.

    It runs outside the fragment: a button inside one would not be heard before the run is over.
    """
    search, name = asked_for(model, text)
    room, began, looked = st.empty(), time.monotonic(), 0.0
    while not is_done(search, name):
        search.go_on()
        now = time.monotonic()
        if now - began < PATIENCE or now - looked < BREATH:
            continue
        if not looked:
            with room.container(border=True):
                words = st.empty()
                st.button("Stop here", key="stop", on_click=stop, args=(name,))
        looked = now
        best = search.steps[-1][0]
        words.markdown(
            f"Translating … **{len(best.ids)}** tokens so far: {literal(models.spelled(model, best.ids))}"
        )
    room.empty()


def searched(model: str, text: str) -> background.Search:
    """The search as it is shown. One that is not done after a moment is left to `seek`."""
    search, name = asked_for(model, text)
    began = time.monotonic()
    while not is_done(search, name):
        if time.monotonic() - began > PATIENCE:
            st.rerun()
        search.go_on()
    if not search.finished:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.info(f"Stopped after {len(search.steps)} tokens; what was there is shown.")
            st.button("Go on", key="go on", on_click=stop, args=(None,))
    return search


def asked_for(model: str, text: str) -> tuple[background.Search, tuple[str, str, str]]:
    beams = address.one_of("beams", BEAMS)
    return background.search(model, text, int(beams)), (model, text, beams)


def is_done(search: background.Search, name: tuple[str, str, str]) -> bool:
    """True for a search that came to its end, or that the reader stopped."""
    return search.finished or (bool(search.steps) and st.session_state.get("stopped") == name)


def chosen_place(held: tuple[Beam, ...]) -> int:
    """The hypothesis on screen, from 0. The address counts from 1, as the list does."""
    return max(0, (address.whole("beam", len(held) + 1) or 1) - 1)


def told_beams(model: str, search: background.Search, place: int) -> None:
    """The hypotheses as a list to choose from, where there is more than one."""
    held = search.steps[-1]
    if len(held) < 2:
        return
    texts = [models.spelled(model, beam.ids) for beam in held]
    token = f"{place} {len(search.steps)} {texts}"
    pictures.show(
        pictures.beams(held, texts, [numbers.penalty(beam) for beam in held], place, token),
        "beam list",
        take_step,
        take_view,
        take_beam,
    )


def recorded(model: str, text: str, beam: Beam, forced: str | None) -> tuple[Recording, bool]:
    """The recording of what is on screen, and whether its last row ends it with [EOS]."""
    if forced is not None:
        made = onscreen.shown(model, target=forced).recording()
        return made, not made.target_dropped
    return onscreen.shown(
        model, target=beam.ids[: len(beam.ids) - beam.done]
    ).recording(), beam.done


def said_of(recording: Recording, ended: bool) -> numbers.Said:
    ids, _ = numbers.produced(recording, ended)
    return shelf.derived(
        recording,
        ("said", ids.tobytes()),
        lambda: numbers.said(passes.all_logits(recording, "decoder"), ids),
    )


def totals(
    model: str,
    recording: Recording,
    said: numbers.Said,
    search: background.Search,
    ended: bool,
    forced: str | None,
) -> None:
    """The sentence's own probability, and beside one's own French the model's."""
    best = search.steps[-1][0]
    total, n = sum(said.logprob), len(said.ids)
    if not n:
        return
    own = f"log p = {nats(total)} nats over {plural(n, 'token')}{' with [EOS]' if ended else ''}, perplexity {perplexity(said.logprob)}"
    if forced is None:
        ending = (
            " It did not end by itself: a search stops at 1.5 times the source’s length and 16 tokens more."
            if search.finished and not ended
            else ""
        )
        st.markdown(f"**{literal(recording.target) or '(nothing)'}**  \n{own}.{ending}")
        return
    theirs = sum(best.logprobs)
    if tuple(map(int, said.ids)) == best.ids:
        st.markdown(f"**Yours:** {own}.  \nThese are the model’s own words.")
        return
    more = (
        "Yours is the likelier one: the search did not find it."
        if total > theirs
        else "The model prefers its own."
    )
    st.markdown(
        f"**Yours:** {own}.  \n**The model’s own:** {literal(models.spelled(model, best.ids)) or '(nothing)'}: "
        f"log p = {nats(theirs)} nats over {plural(len(best.ids), 'token')}, perplexity {perplexity(best.logprobs)}. {more if best.done and ended else ''}"
    )


def nats(value: float) -> str:
    return fixed(value, 3)


def perplexity(logprobs) -> str:
    value = numbers.perplexity(logprobs)
    return f"{value:.2f}" if value < 1000 else f"{value:,.0f}"


def matrix_and_steps(
    recording: Recording, said: numbers.Said, ended: bool, forced: str | None
) -> None:
    attention, encoder, decoder = (
        numbers.cross(recording),
        recording.stream("encoder"),
        recording.stream("decoder"),
    )
    layers, heads = attention.pattern.shape[:2]
    names = numbers.views(layers, heads)
    name = address.one_of("cross", names)
    ids, says = numbers.produced(recording, ended)
    newest = (
        len(says) - ended if forced is not None else 1
    )  # of one's own words the last that was typed
    step = (address.whole("step", len(says) + 1) or max(1, newest)) - 1
    text = shelf.name_of(recording, ids.tobytes(), forced is not None)
    small = shelf.derived(
        recording,
        ("cross, small", ids.tobytes()),
        lambda: numbers.small(attention.pattern[:, :, : max(1, len(says))]),
    )
    data = pictures.steps(
        numbers.view(attention.pattern, name),
        small,
        source=encoder.tokens,
        source_words=numbers.words(recording.text, encoder),
        reads=decoder.tokens,
        says=says,
        says_words=numbers.produced_words(recording, ended),
        said=said,
        pieces=models.labels(recording.model.name, ids),
        tops=[models.labels(recording.model.name, row) for row in said.top_ids],
        n_vocab=recording.model.n_vocab,
        forced=forced is not None,
        names=names,
        titles=[numbers.title(each, layers, heads) for each in names],
        name=name,
        n_head=heads,
        step=step,
        caption=caption_of(recording, name, forced),
        file=file_of(recording, name),
        token=f"{text} {name}",
        text=text,
    )
    pictures.show(data, "steps", take_step, take_view, take_beam)


def caption_of(recording: Recording, name: str, forced: str | None) -> tuple[str, ...]:
    """What the figure must say when it stands alone."""
    model = recording.model
    return (
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights {model.fingerprint}) · cross-attention, {numbers.title(name, model.n_layer, model.n_head).lower()} · edits: none",
        "A row: the weights with which the decoder looked at the source tokens to say the token named at the row, and that token’s probability",
        "Source: " + onscreen.read_text(recording),
        ("Output, typed and force-fed: " if forced is not None else "Output, the model’s own: ")
        + onscreen.read_text(recording, target=True),
    )


def file_of(recording: Recording, name: str) -> str:
    layer, _, head = name.partition(".")
    return f"headlight-{recording.model.name}-cross-" + (
        f"L{layer}H{head}" if head else f"L{layer}-mean" if layer else "mean"
    )


def below(
    model: str,
    text: str,
    recording: Recording,
    said: numbers.Said,
    ended: bool,
    search: background.Search,
    place: int,
    forced: str | None,
) -> None:
    """Downloads, the tree of the search, the note and the tables."""
    name = st.session_state.cross
    target = forced if forced is not None else tuple(map(int, recording.stream("decoder").ids[1:]))
    with st.container(horizontal=True, gap="small"):
        csv_button(
            lambda: columns_of(passes.record(model, text, target=target), ended, name),
            caption_of(recording, name, forced),
            file_of(recording, name),
            "Alignment as CSV",
        )
        recording_button(model, text, target)
    left, right = (
        st.columns([1, 1], gap="large")
        if forced is None and len(search.steps[-1]) > 1
        else (None, st.container())
    )
    if left:
        with left:
            st.subheader("How the beams grew", anchor=False)
            grown(model, search, place)
    with right:
        note(recording, said, ended)
    tables(model, recording, said, ended, search, name, forced)


def columns_of(recording: Recording, ended: bool, name: str) -> dict:
    _, says = numbers.produced(recording, ended)
    matrix = numbers.view(numbers.cross(recording).pattern, name)
    reads, source = recording.stream("decoder").tokens, recording.stream("encoder").tokens
    return numbers.file_table(matrix, says, reads, said_of(recording, ended), source)


def grown(model: str, search: background.Search, place: int) -> None:
    steps = tuple(search.steps)
    labels = [models.labels(model, [beam.ids[-1] for beam in held]) for held in steps]
    token = f"{place} {len(steps)} {labels}"
    pictures.show(
        pictures.tree(steps, labels, place, token), "tree", take_step, take_view, take_beam
    )


def note(recording: Recording, said: numbers.Said, ended: bool) -> None:
    """What happens, in plain words, with the formulas and this sentence's numbers."""
    model, n = recording.model, len(said.ids)
    st.subheader("What happens here", anchor=False)
    scale = scaling(numbers.cross(recording), 0)
    addends, total = sum_told(*said.logprob) if 0 < n <= 12 else ("", nats(sum(said.logprob)))
    if n > 12:
        addends = f"{sum_told(*said.logprob[:12])[0]} …"
    unsure = perplexity(said.logprob)
    sum_of_logs = enough(unsure, lambda each: exp(each / n), abs(sum(said.logprob)))[0] if n else ""
    st.markdown(
        f"**Looking back.** In each of {model.n_layer} {'layer' if model.n_layer == 1 else 'layers'} the decoder’s newest vector becomes a query q, and every source token offers a key k and a value v. "
        f"softmax(q · k{scale}) over the {len(recording.stream('encoder').tokens)} source tokens gives the weights drawn here, one row for each of {model.n_head} heads.  \n"
        f"**Saying a word.** The vector that has read token i gives a score z to each of the {model.n_vocab:,} tokens of the vocabulary; p(word) = softmax(z) is the probability "
        f"that it is token i + 1. So the row that reads [BOS] says the first word: rows here are named after what they say.  \n"
        f"**A sentence.** Probabilities multiply, so their logarithms add up: log p = {addends} = **{total}** nats. "
        f"Perplexity is e to the mean of −log p, e^({sum_of_logs} / {n}) = **{unsure}**: as unsure as between so many equally likely tokens."
        if n
        else "There is no token yet."
    )
    st.caption(
        "Attention weights say where a head read, not why the word was chosen: the values it read there, the other heads and the words so far count as well."
    )


def tables(
    model: str,
    recording: Recording,
    said: numbers.Said,
    ended: bool,
    search: background.Search,
    name: str,
    forced: str | None,
) -> None:
    """The numbers behind every picture."""
    _, says = numbers.produced(recording, ended)
    four = st.column_config.NumberColumn(format="%.4f")
    with st.expander("Every number as a table"):
        shown = st.segmented_control(
            "Table",
            ("Tokens", "Words", "Alignment", *(("Beams",) if forced is None else ())),
            default="Tokens",
            key="table",
            required=True,
            label_visibility="collapsed",
        )
        if shown == "Words":
            st.caption(
                "A word is what stands between two spaces; its probability is the product of its pieces’."
            )
            st.dataframe(
                numbers.word_table(said, says, numbers.produced_words(recording, ended)),
                hide_index=True,
                column_config={"p": four, "log p": four},
            )
        elif shown == "Alignment":
            columns = numbers.alignment_table(
                numbers.view(numbers.cross(recording).pattern, name),
                says,
                recording.stream("encoder").tokens,
            )
            st.caption(caption_of(recording, name, forced)[1])
            st.dataframe(
                columns, hide_index=True, column_config=dict.fromkeys(list(columns)[2:], four)
            )
        elif shown == "Beams":
            steps = tuple(search.steps)
            texts = [[models.spelled(model, beam.ids) for beam in held] for held in steps]
            st.dataframe(
                numbers.beam_table(steps, texts),
                hide_index=True,
                column_config={"log p": four, "score": four},
            )
        else:
            firsts = models.labels(model, said.top_ids[:, 0])
            st.dataframe(
                numbers.token_table(said, says, firsts),
                hide_index=True,
                column_config={"p": four, "log p": four, "its p": four},
            )


def take_step() -> None:
    st.session_state.step = str(int(st.session_state.steps["step"]) + 1)


def take_view() -> None:
    st.session_state.cross = str(st.session_state.steps["view"])


def take_beam() -> None:
    st.session_state.beam = str(int(st.session_state["beam list"]["beam"]) + 1)
    forget_step()


def forget_step() -> None:
    st.session_state.step = ""


def forget_beam() -> None:
    st.session_state.beam = ""
    forget_step()


def take_own(model: str, text: str) -> None:
    """The model's translation that is on screen into the field."""
    search, name = asked_for(model, text)
    while not is_done(search, name):  # it may have been let go since it was shown
        search.go_on()
    held = search.steps[-1]
    st.session_state.target = models.spelled(model, held[chosen_place(held)].ids)
    forget_step()


def drop_own() -> None:
    st.session_state.target = ""
    forget_step()


def stop(name: tuple[str, str, str] | None) -> None:
    st.session_state.stopped = name


with st.spinner("Loading the model …"):
    shown = onscreen.model_for("encoder-decoder")
    if not models.offers(shown).weights:
        st.info(
            f"{literal(models.title(shown))}: Headlight cannot write with it word by word, so **{USUAL}** is shown. Its cross-attention is on the Attention page."
        )
        shown = USUAL
seek(shown, st.session_state.text)
explore(shown, st.session_state.text)
