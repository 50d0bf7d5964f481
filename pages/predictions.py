"""Predictions: what would the model say, here, at each layer, and next?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import truediv

import streamlit as st

from explorer.analysis import heads as naming
from explorer.analysis import lens as reading
from explorer.analysis import predictions as numbers
from explorer.analysis import residual
from explorer.analysis.numbers import (
    chance,
    enough,
    exponent_told,
    fixed,
    plural,
    power,
    power_of_e,
    signed,
    softmax_told,
)
from explorer.components import bars, looks, strip
from explorer.components import lens as one_lens
from explorer.frame import onscreen
from explorer.frame.picker import take_named
from explorer.frame.table import csv_button
from explorer.memory import address, drafts, models, passes, shelf
from explorer.sentences.escape import literal
from models.edits import Edit, HideToken
from models.prediction import Attribution, Lens, Part, Sampling
from models.recording import Recording, Stream

NOTHING = "none"  # hidden, said in the address: no word at all. Where the address says nothing, one word is
TEMPERATURES = tuple(f"{tenth / 10:g}" for tenth in range(21))
TOP_KS = ("0", "1", "2", "3", "5", "10", "20", "50", "100", "200", "500")
TOP_PS = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99", "1")
SEEDS = 100_000
PACE = 0.6  # seconds between two tokens while a text writes itself
TAIL = 5  # tokens that say after what something comes
MANY = 12  # tokens to be read again one by one, from which on a bar shows how far it has come
MOST_PARTS = 14  # bars of a logit that are shown at once
Cause = tuple[
    str, str, tuple[Edit, ...], str | None
]  # what a recording is asked for by: model, text, edits, target


@st.fragment
def explore(model: str, text: str, target: str | None) -> None:
    """The page below the sentence bar, section by section. It takes names and not the recording, which Streamlit would keep for as long as
    the visit lasts. `target`: what the decoder of a translator reads where it is not its own translation."""
    recording = passes.record(model, text, target=target)
    if recording.model.kind == "encoder" and HideToken not in models.offers(model).edits:
        edits, place = (), None
        st.info(
            f"{literal(model)} has no [MASK] to hide a word with, so nothing can be filled in. What happens inside it stands below."
        )
    elif recording.model.kind == "encoder":
        edits, place = filling_section(model, text)
    elif recording.model.kind == "decoder":
        edits, place = (), address.whole("token", len(recording.streams[0].tokens))
        writing_section(model, text)
    else:
        edits, place = (), None
        writes_elsewhere(recording)
    inside((model, text, edits, target), place)
    address.write()


# ---- an encoder: what fills a gap -----------------------------------------------------------------------------------------


def filling_section(model: str, text: str) -> tuple[tuple[Edit, ...], int | None]:
    """What would stand at a place, hidden or not. Returns the edits that hide words, and the place looked at."""
    stream = passes.record(model, text).streams[0]
    hidden, place = gaps(stream)
    edits = tuple(HideToken(at) for at in hidden)
    if place is None:
        return edits, place
    with st.spinner("Reading the text without the hidden words …"):
        recording = passes.record(model, text, edits)
        of = numbers.distribution(passes.logits(recording, stream.name, place))
    st.subheader(
        "What would stand here?",
        anchor=False,
        help="A hidden word is replaced by [MASK]. The model then gives every word of its vocabulary a probability for this place, from the words on both sides.",
    )
    left, right = st.columns([1, 1.1], gap="large")
    with left:
        sentence(recording, stream, hidden, place)
        st.markdown(what_stood_here(of, stream, hidden, place))
        st.markdown(formula(of, recording, numbers.top(of, most=1)[0].id))
    with right:
        fillers(recording, stream, of, hidden, place)
    return edits, place


def gaps(stream: Stream) -> tuple[tuple[int, ...], int | None]:
    """The places that are hidden, in order, and the one that is looked at; None in a text without tokens of its own."""
    n, state = len(stream.tokens), st.session_state
    first = numbers.word_to_hide(stream)
    if first is None:
        return (), None
    chosen = address.whole("token", n)
    place = chosen if chosen is not None and not stream.special[chosen] else None
    if state.hidden == NOTHING:
        return (), first if place is None else place
    asked = tuple(sorted({at for at in address.numbers("hidden", n) if not stream.special[at]}))
    hidden = asked or ((first if place is None else place),)
    return hidden, hidden[0] if place is None else place


def sentence(recording: Recording, stream: Stream, hidden: tuple[int, ...], place: int) -> None:
    """The sentence, each word of it to be hidden and shown."""

    def one(at: int) -> strip.Token:
        label, gone = stream.tokens[at], at in hidden
        if stream.special[at]:
            return strip.Token(label, tone="special")
        spoken = f"{label}, token {at}, {'hidden' if gone else 'seen'}{', looked at' if at == place else ''}"
        return strip.Token(
            "[MASK]" if gone else label,
            label if gone else "",
            "hidden" if gone else "",
            spoken,
            open=True,
        )

    model, text = recording.model.name, recording.text
    word = f"“{stream.tokens[place]}” (token {place})"
    strip.show(
        strip.payload(
            [one(at) for at in range(len(stream.tokens))],
            about="The sentence. Arrow keys move, Enter hides a word, and shows it again.",
            says=f"Looked at: {word}, {'hidden from the model' if place in hidden else 'which the model sees'}.",
            hint="Click a word to hide it, and again to show it. With several hidden, the first click on one looks at it.",
            chosen=place,
            token=shelf.name_of(recording, "sentence", place),
        ),
        "sentence",
        on_choice=lambda: take_token(model, text),
        on_tick=nothing,
    )
    if len(hidden) > 1:
        st.button(f"Show all {len(hidden)} hidden words", key="show all", on_click=show_all)
    if place in hidden and numbers.is_piece(stream.tokens, place):
        st.caption(
            "This token is only a piece of a word. The other pieces tell what it was: hide them too for a harder question."
        )


def what_stood_here(
    of: numbers.Distribution, stream: Stream, hidden: tuple[int, ...], place: int
) -> str:
    """The word that stands in the text, its rank, and how sure the model is."""
    (own,) = numbers.top(of, [int(stream.ids[place])], most=0)
    tells = (
        "The model does not see it, and gives it"
        if place in hidden
        else "The model sees it, so this is no guess; it gives it"
    )
    return f"**{literal(stream.tokens[place])}** stands in the text. {tells} probability **{chance(own.own)}**, rank {own.rank + 1:,} of {len(of.order):,}.  \n{how_sure(of, 'words')}"


def fillers(
    recording: Recording,
    stream: Stream,
    of: numbers.Distribution,
    hidden: tuple[int, ...],
    place: int,
) -> None:
    """The likeliest words as bars, the word of the text among them, and all others as one bar."""
    here = int(stream.ids[place])
    words = numbers.top(of, [here])
    others = numbers.rest(of, words)
    rows = [
        bars.Bar(
            label,
            word.own,
            (f"{word.rank + 1:,}", chance(word.own)),
            str(word.id),
            mark="in the text" if word.id == here else "",
            gap=word.rank >= numbers.MOST_ROWS,
        )
        for word, label in zip(words, labels_of(recording, words))
    ]
    if others.n:
        rows.append(
            bars.Bar(
                f"all {others.n:,} other words", others.own, ("", chance(others.own)), tone="rest"
            )
        )
    word = str(st.session_state.word)
    bars.show(
        bars.payload(
            rows,
            ("rank", "probability"),
            about=f"What fits token {place}, the likeliest first.",
            chosen=word,
            action="takes the word apart further down",
            full=words[0].own,
            token=shelf.name_of(recording, "fillers", place, word),
        ),
        "fillers",
        on_choice=take_word,
    )
    st.caption(
        f"All {len(of.order):,} words together: {others.all_own:.4f}. The likeliest word sets the scale; a torn bar is longer than its track. Choose a bar to see further down what raised or lowered its word."
    )
    how = "hidden" if place in hidden else "seen"
    edits = ", ".join(map(str, recording.edits)) or "none"
    as_table(
        recording,
        of,
        (
            f"What {recording.model.name} says for token {place}, “{stream.tokens[place]}”, {how}",
            f"edits: {edits}",
        ),
        f"token-{place}",
    )


def take_token(model: str, text: str) -> None:
    """A click on a word: one that is hidden and looked at is shown again; any other is looked at, and hidden if it was not."""
    state = st.session_state
    hidden, place = gaps(passes.record(model, text).streams[0])
    at = int(state.sentence["at"])
    if at == place and at in hidden:
        now = set(hidden) - {at}
    else:
        now = (
            {at} if not state.hidden else {*hidden, at}
        )  # the word hidden to begin with was not the reader's choice
    state.token, state.word = str(at), ""
    state.hidden = ".".join(map(str, sorted(now))) or NOTHING


def show_all() -> None:
    st.session_state.hidden = NOTHING


def take_word() -> None:
    """A click on a bar: its word is what the section on the heads takes apart; a second click lets it go."""
    chosen = st.session_state.fillers["row"]
    st.session_state.word = "" if chosen == st.session_state.word else chosen


def nothing() -> None:
    pass


# ---- a decoder: what comes next -------------------------------------------------------------------------------------------


@st.fragment
def writing_section(model: str, text: str) -> None:
    """What comes next, and next after that. A step runs this alone."""
    recording = passes.record(model, text)
    stream = recording.streams[0]
    sampling, seed = settings()
    st.subheader(
        "What comes next?",
        anchor=False,
        help="A decoder reads the text from left to right and gives every token of its vocabulary a probability to be the next one.",
    )
    try:
        draft = drafts.draft(model, text)
    except ValueError as why:
        shorter = " Shorten the text to go on from it." if models.offers(model).weights else ""
        st.info(
            f"Nothing can be written here: {literal(str(why))}.{shorter} What the model says after the last token that it reads stands below."
        )
        of = numbers.distribution(
            passes.logits(recording, stream.name, len(stream.tokens) - 1), sampling
        )
        with st.columns([1, 1], gap="large")[0]:
            choices(recording, of, stream.tokens, None, seed)
        return
    catch_up(draft, recording.model.n_vocab)
    of = numbers.distribution(draft.writing.logits, sampling)
    drawn = None if draft.ended or draft.full else numbers.draw(of, seed, len(draft.writing.ids))
    if drawn is None:
        st.session_state.playing = False
    labels = labels_of(recording, draft.said)
    so_far(recording, stream, draft, labels)
    controls(model, text, draft)
    left, right = st.columns([1, 1], gap="large")
    with left:
        choices(recording, of, (*stream.tokens, *labels), drawn, seed)
        if draft.said:
            written_table(draft, labels)
    with right:
        newest(recording, draft, (*stream.tokens, *labels))
        kept(recording, draft)
    if draft.said:
        st.caption(
            "The sections below look inside your own text. “Add to my text” makes what was written a part of it."
        )
    if (
        not st.session_state.playing
    ):  # an address for every token that is written by itself would fill the browser's history
        address.write()


def settings() -> tuple[Sampling, int]:
    """How the next token is drawn, from the address or the sliders, and the seed."""
    temperature, top_k, top_p = (
        address.one_of(name, options)
        for name, options in (("temperature", TEMPERATURES), ("top_k", TOP_KS), ("top_p", TOP_PS))
    )
    seed = address.whole("seed", SEEDS)
    if seed is None:
        st.session_state.seed = address.default("seed")
    return Sampling(float(temperature), int(top_k), float(top_p)), seed or 0


def catch_up(draft: drafts.Draft, n_vocab: int) -> None:
    """Read what was said until the draft is that, with a bar where it takes a while. Any choice ends it; it goes on from where it was."""
    said = address.numbers("said", n_vocab)
    todo = left = draft.towards(said)
    bar = st.empty()
    while left:
        if todo > MANY:
            bar.progress(1 - left / todo, f"Reading what was written, token by token: {left} left")
        left = draft.towards(said)
    bar.empty()
    say(word.id for word in draft.said)


def say(ids: Iterable[int]) -> None:
    st.session_state.said = ".".join(map(str, ids))


def so_far(
    recording: Recording, stream: Stream, draft: drafts.Draft, labels: Sequence[str]
) -> None:
    """The prompt, and after it in another tone what was written, with probability and rank."""
    model, text, playing = recording.model.name, recording.text, bool(st.session_state.playing)
    prompt = [
        strip.Token(label, tone="special" if special else "")
        for label, special in zip(stream.tokens, stream.special)
    ]
    written = [
        strip.Token(
            label,
            f"{'< 0.01' if word.own < 0.005 else f'{word.own:.2f}'} · #{word.rank + 1:,}",
            "said",
            f"{label}, written, probability {chance(word.own)}, rank {word.rank + 1:,}",
        )
        for label, word in zip(labels, draft.said)
    ]
    strip.show(
        strip.payload(
            [*prompt, *written],
            about="The text: what you wrote, and after it what was written by the model.",
            says=where_it_stands(draft, labels),
            token=shelf.name_of(recording, "draft", st.session_state.said, playing),
            every=PACE if playing else 0,
            at_end=True,
        ),
        "draft text",
        on_choice=nothing,
        on_tick=lambda: tick(model, text),
    )
    if stream.tokens[-1] == "␣":
        st.caption(
            "Your text ends with a space, and this space is a token of its own (␣). Words bring their own space with them, so take it away for the continuation you probably mean."
        )


def where_it_stands(draft: drafts.Draft, labels: Sequence[str]) -> str:
    """One sentence on what was written last, and whether there is more to come."""
    if not labels:
        return "Nothing is written yet. Press Step, or choose a word of the list."
    last = draft.said[-1]
    told = f"{len(labels)} written; under each its probability and rank. The last: “{labels[-1]}”, {chance(last.own)}, rank {last.rank + 1:,}."
    if draft.ended:
        return (
            told
            + f" Here the model says that the text has ended ({labels[-1]}). Press Back to go another way."
        )
    if draft.full:
        return (
            told
            + f" The text now has {len(draft.writing.ids)} tokens, all that this model reads. Press Back to go another way."
        )
    return told


def controls(model: str, text: str, draft: drafts.Draft) -> None:
    """Step, play, back."""
    over, fresh, playing = draft.ended or draft.full, not draft.said, bool(st.session_state.playing)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button(
            "Step",
            key="write one",
            icon=":material/skip_next:",
            disabled=over,
            on_click=step,
            args=(model, text),
            help="Write one token.",
        )
        name, icon = ("Pause", ":material/pause:") if playing else ("Play", ":material/play_arrow:")
        st.button(
            name,
            key="write on",
            icon=icon,
            disabled=over,
            on_click=play,
            help="Write token after token, until you stop it.",
        )
        st.button(
            "Back",
            key="take back",
            icon=":material/undo:",
            disabled=fresh,
            on_click=back,
            args=(model, text),
            help="Take the last token back.",
        )
        st.button(
            "Start over",
            key="write anew",
            icon=":material/restart_alt:",
            disabled=fresh,
            on_click=start_over,
            help="Take back all that was written.",
        )
        st.button(
            "Add to my text",
            key="adopt",
            icon=":material/playlist_add:",
            disabled=fresh,
            on_click=adopt,
            args=(model, text),
            help="What was written becomes part of your text, so that every page shows it.",
        )
    if st.session_state.pop("adopted", False):
        st.rerun()


def step(model: str, text: str) -> None:
    """Write the token that is drawn next."""
    draft = drafts.draft(model, text)
    if (
        draft.towards(address.numbers("said", passes.record(model, text).model.n_vocab))
        or draft.ended
        or draft.full
    ):
        return  # the page is still reading what was said before
    sampling, seed = settings()
    drawn = numbers.draw(
        numbers.distribution(draft.writing.logits, sampling), seed, len(draft.writing.ids)
    )
    say([*(word.id for word in draft.said), drawn.id])


def tick(model: str, text: str) -> None:
    """The browser asks for the next token: only one that it does not have yet is written."""
    if st.session_state.playing and int(st.session_state["draft text"]["tick"]) == len(
        drafts.draft(model, text).writing.ids
    ):
        step(model, text)


def play() -> None:
    st.session_state.playing = not st.session_state.playing


def back(model: str, text: str) -> None:
    st.session_state.playing = False
    say([word.id for word in drafts.draft(model, text).said][:-1])


def start_over() -> None:
    st.session_state.playing = False
    st.session_state.said = ""


def adopt(model: str, text: str) -> None:
    """Make what was written a part of the text. The page has to run as a whole then: `controls` sees to it."""
    draft = drafts.draft(model, text)
    whole, prompt = (models.spelled(model, draft.writing.ids[:n]) for n in (None, draft.n_prompt))
    onscreen.take_text(text + whole[len(prompt) :] if whole.startswith(prompt) else whole)
    st.session_state.playing, st.session_state.adopted = False, True


def choose(model: str, text: str) -> None:
    """Write the token of the bar that was clicked."""
    draft = drafts.draft(model, text)
    if not (draft.ended or draft.full):
        say([*(word.id for word in draft.said), int(st.session_state.choices["row"])])


def choices(
    recording: Recording,
    of: numbers.Distribution,
    tokens: Sequence[str],
    drawn: numbers.Draw | None,
    seed: int,
) -> None:
    """The likeliest next tokens as bars: the model's own probability, and what is made of it. `drawn` None where nothing can be written."""
    sliders(seed)
    words = numbers.top(of, [drawn.id] if drawn else ())
    others = numbers.rest(of, words)
    model, text, sampling = recording.model.name, recording.text, of.sampling
    st.markdown(
        f"After “{'… ' * (len(tokens) > TAIL)}**{literal(numbers.joined(tokens[-TAIL:]))}**” comes:"
    )
    rows = [
        bars.Bar(
            label,
            word.drawn,
            (chance(word.own), chance(word.drawn) if word.kept else "cut"),
            str(word.id) if drawn else "",
            behind=word.own,
            tone="" if word.kept else "cut",
            mark="next" if drawn and word.id == drawn.id else "",
            gap=word.rank >= numbers.MOST_ROWS,
        )
        for word, label in zip(words, labels_of(recording, words))
    ]
    if others.n:
        cut = (
            ""
            if others.n_kept == others.n
            else ", all cut"
            if not others.n_kept
            else f", {others.n - others.n_kept:,} cut"
        )
        rows.append(
            bars.Bar(
                f"all {others.n:,} others{cut}",
                others.drawn,
                (chance(others.own), chance(others.drawn)),
                behind=others.own,
                tone="rest",
            )
        )
    bars.show(
        bars.payload(
            rows,
            ("model", "drawn from"),
            about="What may come next, the likeliest first: the model’s own probability, and the one that is drawn from.",
            action="writes the token" if drawn else "",
            full=max(words[0].own, words[0].drawn),
            token=shelf.name_of(
                recording, "choices", len(tokens), st.session_state.said, sampling, seed
            ),
        ),
        "choices",
        on_choice=lambda: choose(model, text),
    )
    n_kept, n = others.n_kept + sum(word.kept for word in words), len(of.order)
    st.caption(
        f"Kept: {n_kept:,} of {n:,} tokens. Sums: model {others.all_own:.4f}, drawn from {others.all_drawn:.4f}. "
        "Pale: the model’s own probability. Solid: what is drawn from. Hatched: cut. A torn bar is longer than its track."
        + (" Choose a bar to write its token." if drawn else "")
    )
    if drawn:
        st.markdown(how_drawn(recording, drawn, seed, len(tokens)))
    st.markdown(formula(of, recording, drawn.id if drawn else words[0].id))
    st.markdown(how_sure(of, what_counts(recording)))
    about = (
        f"What {model} says after “{numbers.joined(tokens[-3 * TAIL :])}” ({len(tokens)} tokens)",
        f"temperature {sampling.temperature:g}, top-k {sampling.top_k or 'off'}, top-p {sampling.top_p:g}",
    )
    as_table(recording, of, about, f"after-{len(tokens)}-tokens")


def written_table(draft: drafts.Draft, labels: Sequence[str]) -> None:
    """What was written, token by token, as a table."""
    with st.expander("What was written, as a table", key="written table", on_change="rerun") as box:
        if box.open:
            fine = {"probability": st.column_config.NumberColumn(format="%.6f")}
            st.dataframe(
                numbers.said_columns(draft.said, labels),
                hide_index=True,
                column_config=fine,
                alt="The written tokens, their probabilities and ranks",
            )


def sliders(seed: int) -> None:
    """Temperature, top-k, top-p and seed."""
    st.session_state["seed field"] = seed
    temperature, top_k, top_p, seeds = st.columns([1.2, 1, 1, 0.9], vertical_alignment="bottom")
    temperature.select_slider(
        "Temperature",
        TEMPERATURES,
        key="temperature",
        persist_state="session",
        format_func=lambda value: "0 (greedy)" if value == "0" else value,
        help="Every score is divided by it. Under 1 the likely get likelier, over 1 the unlikely do. 0 takes the likeliest token, always.",
    )
    top_k.select_slider(
        "Top-k",
        TOP_KS,
        key="top_k",
        persist_state="session",
        format_func=lambda value: "all" if value == "0" else value,
        help="Only the k likeliest tokens are kept.",
    )
    top_p.select_slider(
        "Top-p",
        TOP_PS,
        key="top_p",
        persist_state="session",
        format_func=lambda value: "all" if value == "1" else value,
        help="The likeliest tokens are kept until together they reach p; the others are cut.",
    )
    seeds.number_input(
        "Seed",
        0,
        SEEDS - 1,
        key="seed field",
        on_change=take_seed,
        help="Where the random numbers start. The same seed and text always give the same words.",
    )


def take_seed() -> None:
    st.session_state.seed = str(st.session_state["seed field"])


def how_drawn(recording: Recording, drawn: numbers.Draw, seed: int, place: int) -> str:
    """What Step will write, and why."""
    word = literal(labels_of(recording, [drawn])[0])
    if drawn.number is None:
        return f"**Step writes “{word}”**, the likeliest token: at temperature 0 nothing is left to chance."
    return (
        f"**Step writes “{word}”.** The random number of seed {seed} for token {place} is {drawn.number:.4f}. "
        f"With all kept tokens end to end on a line from 0 to 1, the likeliest first, it falls on “{word}”, which reaches from {drawn.start:.4f} to {drawn.end:.4f}."
    )


def newest(recording: Recording, draft: drafts.Draft, tokens: Sequence[str]) -> None:
    """What the newest token looked at, in every head."""
    rows = draft.writing.rows["attn"]
    layer, head = address.whole("layer", rows.shape[0]), address.whole("head", rows.shape[1])
    chosen = looks.MEAN if layer is None or head is None else f"{layer}.{head}"
    st.subheader(
        "What did the newest token look at?",
        anchor=False,
        help="The last row of every head’s attention matrix: how the newest token’s vector is made from the tokens before it. The scores for the next token are read from that vector.",
    )
    tones = ["said" if at >= draft.n_prompt else "" for at in range(len(tokens))]
    token = shelf.name_of(recording, "newest", st.session_state.said, chosen)
    looks.show(
        looks.payload(rows, tokens, tones, chosen=chosen, who=tokens[-1], token=token),
        "newest",
        on_choice=take_named("newest", "row"),
    )
    with st.expander("As a table", key="newest table", on_change="rerun") as box:
        if box.open:
            st.dataframe(
                numbers.look_columns(rows, tokens),
                hide_index=True,
                height=320,
                alt="What the newest token looks at, one column for each head",
            )


def kept(recording: Recording, draft: drafts.Draft) -> None:
    """The keys and values that are stored, and what that saves."""
    model, n, steps = recording.model, len(draft.writing.ids), len(draft.said)
    size = draft.writing.stored.nbytes
    st.subheader(
        "What is kept from step to step?",
        anchor=False,
        help="A token’s keys and values never change, because no token sees a later one. So they are computed once and kept: the KV cache.",
    )
    st.progress(n / model.n_positions, f"{n} of {model.n_positions} tokens, {size / 1024:,.1f} KiB")
    st.markdown(
        f"Every layer keeps 2 × {model.n_head} heads × {n} tokens × {model.d_head} numbers, the keys and the values. "
        f"In {model.n_layer} layers and 4 bytes a number that is **{size:,} bytes**."
    )
    if not steps:
        st.markdown(
            f"The model read your {n} tokens at once. With their keys and values kept, the next step reads **1** token; without, it would read all **{n + 1}** again."
        )
    else:
        again = sum(range(draft.n_prompt + 1, n + 1))
        since = f" All {steps} steps read {steps} tokens instead of {again:,}." if steps > 1 else ""
        st.markdown(
            f"The last step read **1** token; without the cache it would have read all **{n}** again.{since}"
        )


# ---- both -------------------------------------------------------------------------------------------------------------------


def formula(of: numbers.Distribution, recording: Recording, id: int) -> str:
    """How a word's probability is made, with this text's numbers."""
    if of.sampling.temperature == 0:
        return "**How the numbers are made.** Temperature 0 stands for the limit of softmax(z / T) as T goes to 0: all probability falls to the likeliest token, whatever top-k and top-p say."
    steps, word = (
        numbers.steps(of, id),
        literal(models.labels(recording.model.name, [id])[0]),
    )
    plain = recording.model.kind == "encoder"
    things = what_counts(recording)
    over = "z" if plain else "z/T"
    tempered = chance(steps.tempered)
    over_t, part, total = softmax_told(steps.divided, steps.log_total, tempered)
    temperature = 1 if plain else of.sampling.temperature
    (score,) = enough(over_t, lambda z: z / temperature, steps.score)
    divided = (
        ""
        if plain or of.sampling.temperature == 1
        else f"; divided by the temperature T = {of.sampling.temperature:g} it is {over_t}"
    )
    told = (
        f"**How the numbers are made.** The model gives each of {len(of.order):,} {things} a score z (a logit), and a softmax makes probabilities of them: p = e^({over}) / Σ e^({over}).  \n"
        f"For **{word}** z = {score}{divided}. e^{over_t} = {part}, the sum over all {things} is {total}, so p = {part} / {total} = **{tempered}**."
    ).replace("e^(z) / Σ e^(z)", "e^z / Σ e^z")
    if steps.n_kept < len(of.order):
        drawn = chance(steps.drawn)
        own, held = enough(drawn, truediv, steps.tempered, steps.held, least=4, write=power)
        told += f" The {steps.n_kept:,} that are kept hold {held} together, so it is drawn with {own} / {held} = **{drawn}**."
    return told


def how_sure(of: numbers.Distribution, things: str) -> str:
    entropy = numbers.entropy(of.own)
    bits = fixed(numbers.bits(entropy))
    (nats,) = enough(bits, numbers.bits, entropy)
    return f"Entropy of the model’s own probabilities: {plural(nats, 'nat')} = {plural(bits, 'bit')}, as unsure as among {numbers.as_many(entropy):,.1f} equally likely {things}."


def what_counts(recording: Recording) -> str:
    """What the entries of the vocabulary are called: a gap is filled by words, a text is written in tokens."""
    return "words" if recording.model.kind == "encoder" else "tokens"


def as_table(
    recording: Recording, of: numbers.Distribution, about: tuple[str, ...], file: str
) -> None:
    """The whole distribution as a table, made when it is opened, and as a file."""
    model = recording.model

    def table() -> dict[str, Sequence]:
        return numbers.columns(of, models.labels(model.name, range(model.n_vocab)))

    described = (
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights {model.fingerprint})",
        *about,
        f"Text: {onscreen.read_text(recording)}",
    )
    with st.expander(
        f"All {len(of.order):,} {what_counts(recording)} as a table",
        key="distribution table",
        on_change="rerun",
    ) as box:
        if box.open:
            fine = {
                name: st.column_config.NumberColumn(format="%.6f")
                for name in ("probability", "drawn from")
            }
            st.dataframe(table(), hide_index=True, height=400, column_config=fine, alt=about[0])
    csv_button(table, described, f"headlight-{model.name}-{file}", "Download all as CSV")


def labels_of(recording: Recording, words: Iterable) -> list[str]:
    """What the words are called that have these ids."""
    return models.labels(recording.model.name, [word.id for word in words])


# ---- inside the model: the logit lens, and one logit taken apart ---------------------------------------------------------------


def inside(cause: Cause, place: int | None) -> None:
    """What happens on the way to the answer. `place` is the token looked at where the address names none."""
    with st.spinner("Reading the words off every site …"):
        recording = passes.record(*cause)
        stream = reading.read_stream(recording)
        found = passes.lens(recording, stream.name)
    token = address.whole("token", len(stream.tokens))
    if token is None:
        token = reading.asked_token(recording) if place is None else place
    lens_section(cause, recording, found, token)
    attribution_section(cause, recording, found, token)


def writes_elsewhere(recording: Recording) -> None:
    """For a model whose words are shown being written on another page: where, and what is left for this one."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            "This model writes its translation, word by word, on another page. Here is what happens inside its decoder on the way to each word.",
            width="content",
        )
        way_to("../pages/translation.py", "Open the Translation page", recording)


def lens_section(cause: Cause, recording: Recording, found: Lens, token: int) -> None:
    """What every site would say at every token, the held cell's words, and its token's way through the sites."""
    stream, model = reading.read_stream(recording), recording.model
    right = reading.truth(recording, passes.record(cause[0], cause[1], (), cause[3]))
    if st.session_state.site not in found.sites:
        st.session_state.site = ""
    site = found.sites.index(st.session_state.site or found.sites[-1])
    take = partial(take_cell, found.sites, tuple(edit.token for edit in cause[2]))
    st.subheader(
        "What would it say at each layer?",
        anchor=False,
        help="The logit lens (nostalgebraist, 2020): the model’s own readout, applied to every state on the way as if it were the last one.",
    )
    question = (
        "“**Which word comes next?**” is what each column answers; the word that really came next stands under its token."
        if reading.asks_next(recording)
        else "“**Which word stands here?**” is what each column answers: easy where the word is in sight, a question where it is hidden."
    )
    st.markdown(
        f"A token enters on top and comes out at the bottom as the model’s answer. A cell holds the likeliest word at that point. {question}"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        measure = st.segmented_control(
            "Colour of the cells",
            tuple(reading.MEASURES),
            key="lens",
            required=True,
            persist_state="session",
            label_visibility="collapsed",
            width="content",
        )
        st.caption(f"Colour: {reading.MEASURES[measure]}", width="stretch")
    what = ("lens picture", measure)
    data = shelf.derived(
        recording,
        what,
        lambda: lens_picture(recording, found, right, measure, shelf.name_of(recording, *what)),
        weigh=len,
    )
    one_lens.show_grid(data, "lens table", lambda: take("lens table"))
    way = reading.column(found, token)
    ids = reading.named(way, right)
    labels = dict(zip(ids.tolist(), models.labels(model.name, ids)))
    words, states = st.columns([5, 7], gap="large")
    with words:
        top_words(recording, way[site], labels, int(right[token]), found.sites[site])
    with states:
        data = one_lens.way(
            way,
            site,
            labels=labels,
            sites=[reading.site_name(one) for one in found.sites],
            spoken=[reading.site_words(one) for one in found.sites],
            where=stream.tokens[token],
            n_tokens=len(stream.tokens),
            token=shelf.name_of(recording, "way", site, token),
        )
        one_lens.show_way(data, "lens way", lambda: take("lens way"))
    st.markdown(lens_formula(recording, way[site], labels, found.sites[site]))
    lens_files(cause, recording, found)


def lens_picture(recording: Recording, found: Lens, right, measure: str, name: str) -> bytes:
    ids = reading.vocabulary(found, right, one_lens.TOP_SHOWN)
    return one_lens.grid(
        found.top_ids,
        found.top_logprobs,
        found.final_id,
        found.rank,
        found.logprob,
        found.kl,
        right=right,
        ids=ids,
        labels=models.labels(recording.model.name, ids),
        sites=[reading.site_name(site) for site in found.sites],
        spoken=[reading.site_words(site) for site in found.sites],
        tokens=reading.read_stream(recording).tokens,
        asks_next=reading.asks_next(recording),
        measure=measure,
        n_vocab=recording.model.n_vocab,
        token=name,
    )


def top_words(
    recording: Recording, cell: reading.Cell, labels: dict[int, str], right: int, site: str
) -> None:
    """The likeliest words of the held cell, and all others together."""
    where = literal(reading.read_stream(recording).tokens[cell.token])
    st.markdown(f"**{reading.site_words(site)}, at {where} (token {cell.token})**")
    marks = {cell.final_id: "the answer"}
    marks[right] = "✓ the answer" if right == cell.final_id else "✓ right"
    rows = [
        bars.Bar(labels[int(id)], p, (chance(p),), mark=marks.get(int(id), ""))
        for id, p in zip(cell.ids, cell.probabilities)
    ]
    rows.append(
        bars.Bar(
            f"all {recording.model.n_vocab - len(cell.ids):,} other words",
            cell.others,
            (chance(cell.others),),
            tone="rest",
        )
    )
    name = shelf.name_of(recording, "top words", cell.site, cell.token)
    bars.show(
        bars.payload(
            rows, ("probability",), about="The likeliest words of this cell.", token=name, full=1.0
        ),
        "top words",
        on_choice=nothing,
    )
    st.caption("A full bar is 1; together they make 1.")


def lens_formula(
    recording: Recording, cell: reading.Cell, labels: dict[int, str], site: str
) -> str:
    """How a cell comes about, with the numbers of the one that is held."""
    where, how = (
        residual.norm_place(reading.read_stream(recording)),
        models.readout(recording.model.name),
    )
    if how == "own code":
        read = "This model runs in its own code, and its own readout reads every state."
    elif where == "pre":
        read = "This model is pre-LN: LayerNorm stands in front of the sub-layers and once more at the end. Every state is sent through that last one before it is read."
    elif where is None:
        read = "This model has no LayerNorm: every state is read as it is."
    elif site in ("embed", "embed+pos"):
        read = "This model is post-LN: a LayerNorm follows every sub-layer. The embedding rows are read as they are, before any LayerNorm, on a scale of their own."
    else:
        read = "This model is post-LN: a LayerNorm follows every sub-layer. So the state is read right after its LayerNorm, as the next sub-layer gets it; the embedding rows are read raw."
    logits = {
        "tied": "state · embeddingᵀ + bias",
        "transform": "transform(state) · embeddingᵀ + bias",
    }.get(str(how), "readout(state)")
    transform = (
        " The transform, a dense layer with an activation and a LayerNorm, belongs to this model’s readout."
        if how == "transform"
        else ""
    )
    stream = reading.read_stream(recording)
    untrained = (
        f"**{literal(stream.tokens[cell.token])} is a special token**: no word was ever asked for there in training, so the words of its column mean nothing.  \n"
        if stream.name == "encoder" and stream.special[cell.token]
        else ""
    )
    return untrained + (
        f"**How a cell is made.** Logits = {logits}, for all {recording.model.n_vocab:,} words at once, and p = softmax(logits): the readout of the "
        f"last site, used early.{transform} Only the last row is what the model says. {read}  \n"
        f"Here **{literal(labels[int(cell.ids[0])])}** has p = {chance(cell.probabilities[0])}. KL to the final = Σ p · ln(p / q) over all words, "
        f"p the final probability and q the one here: **{plural(fixed(cell.kl, 3), 'nat')}**."
    )


def lens_files(cause: Cause, recording: Recording, found: Lens) -> None:
    """The table behind the picture, made when it is opened, and its file."""
    with st.expander(
        "Every number of the lens as a table", key="lens numbers", on_change="rerun"
    ) as box:
        if box.open:
            ids = reading.vocabulary(found, found.final_id, 1)
            labels = dict(zip(ids.tolist(), models.labels(cause[0], ids)))
            fine = dict.fromkeys(
                ("its probability", "its probability here", "KL (nats)"),
                st.column_config.NumberColumn(format="%.5f"),
            )
            tokens = reading.read_stream(recording).tokens
            st.dataframe(
                reading.table(found, tokens, labels),
                hide_index=True,
                height=420,
                column_config=fine,
                alt="The logit lens, a row for each token of each site",
            )
        about = about_file(recording, "logit lens")
        csv_button(
            lambda: lens_columns(cause),
            about,
            f"headlight-{cause[0]}-lens",
            "Download the lens as CSV",
        )


def lens_columns(cause: Cause) -> dict:
    recording = passes.record(*cause)
    stream = reading.read_stream(recording)
    found = passes.lens(recording, stream.name)
    ids = reading.vocabulary(found, found.final_id, found.top_ids.shape[-1])
    return reading.file_table(
        found, stream.tokens, dict(zip(ids.tolist(), models.labels(cause[0], ids)))
    )


def take_cell(sites: tuple[str, ...], hidden: tuple[int, ...], key: str) -> None:
    """A choice in the table or in a token's way. What is hidden stays hidden: to look at a word is not to hide it."""
    state = st.session_state
    site, _, token = (state[key].get("cell") or "").partition(".")
    if not token:
        return
    state.site, state.token = sites[int(site)], token
    if not state.hidden and hidden:
        state.hidden = ".".join(map(str, hidden))


def attribution_section(cause: Cause, recording: Recording, found: Lens, token: int) -> None:
    """One word's logit at one token, taken apart into what each part of the model wrote."""
    model, stream = recording.model, reading.read_stream(recording)
    sums = models.readout(model.name) == "tied"
    st.subheader(
        "What made it say that?",
        anchor=False,
        help="Direct logit attribution: the state that a word is read from is a sum, so the word’s logit is one too, of what each head, each FFN and the embedding put in.",
    )
    if not sums:
        why = (
            "it runs in its own code, which does not show W_O and the norms"
            if models.readout(model.name) == "own code"
            else "between its last vector and the words stand a dense layer with an activation and a LayerNorm, which are not linear"
        )
        st.info(
            f"A logit of {literal(model.name)} cannot be taken apart into a sum: {why}. The lens above reads every state."
        )
        return
    left, right, _ = st.columns(3)
    with left:
        word = word_field("word", "The word", recording, found, token)
    with right:
        against = word_field("against", "Compared with", recording, found, token)
    word = int(found.final_id[token]) if word is None else word
    one, other = map(
        literal, models.labels(model.name, [word, word if against is None else against])
    )
    if against == word:
        st.info(
            "A word compared with itself leaves nothing to explain. Choose another one to compare with, or nothing."
        )
        return
    taken = passes.attribution(recording, stream.name, token, word, against)
    total, odds = reading.total(taken), power_of_e(taken.logit, 3)
    st.markdown(
        f"At **{literal(stream.tokens[token])}** (token {token}; the table above chooses it) the logit of **{one}**{'' if against is None else f' less that of **{other}**'} "
        f"is **{signed(taken.logit, 5)}**. The {len(taken.parts)} parts add up to {signed(total, 5)}; the two differ by {chance(abs(total - taken.logit))}. "
        + (
            "A bar to the right pushed the word up, one to the left down."
            if against is None
            else f"So {one} is e^{exponent_told(taken.logit, odds)} = {odds} times as likely as {other}. A bar to the right raised {one} against {other}, one to the left the other way round."
        )
    )
    name = token, word, against
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Adding up, in the order of the network**")
        groups = [(group.name, group.value) for group in reading.groups(taken)]
        one_lens.show_sum(
            one_lens.sum_up(groups, total, shelf.name_of(recording, "sum", *name)), "sum of parts"
        )
    with right:
        st.markdown(
            "**Every part, the strongest first.**"
            + (
                " Choose a head to see what it is."
                if any(part.kind == "head" for part in taken.parts)
                else ""
            )
        )
        parts_list(recording, taken)
    heads = {reading.part_key(part): part for part in taken.parts if part.kind == "head"}
    if part := heads.get(st.session_state.part):
        named_head(recording, part, token)
    st.markdown(how_taken_apart(recording))
    parts_files(cause, taken)


def how_taken_apart(recording: Recording) -> str:
    """The method in words, as it is for this model."""
    n, added = reading.n_norms(recording), residual.adds(reading.read_stream(recording))
    passed = (
        f"sent through {n} LayerNorm{'s' * (n > 1)}" if added else "sent through the last LayerNorm"
    )
    state = (
        "the state is the sum of what was written on the way"
        if added
        else "this model has no residual connections: only what the last sub-layer wrote reaches the readout, so it and the biases are the only parts"
    )
    through = (
        f", {passed}. A LayerNorm subtracts the mean and divides by the spread σ. Each σ is held at the value it had on this token: dividing by a fixed number "
        "is linear, so every part can be followed alone to the end. The biases of LayerNorm, of W_O and of the readout are one part, “biases”."
        if n
        else "; there is no LayerNorm on the way, so nothing has to be held. The biases of W_O and of the readout are one part, “biases”."
    )
    return (
        f"**How a logit is taken apart.** A logit is state · embedding of the word + bias, and {state}{through} "
        f"A bar says what a part put in directly, not what would happen without it: then {'every σ and ' if n else ''}every later layer would be another."
    )


def word_field(name: str, label: str, recording: Recording, found: Lens, token: int) -> int | None:
    """A field that offers the model's likeliest words and takes any other. The id chosen, None where it is left as it is."""
    model, ids = recording.model, [int(id) for id in found.top_ids[-1, token]]
    words = models.labels(model.name, ids)
    options = {"": f"the model’s answer: {words[0]}" if name == "word" else "nothing"} | {
        f"#{id}": f"{at}. {word}" for at, (id, word) in enumerate(zip(ids, words), 1)
    }
    chosen = address.whole(name, model.n_vocab)
    if chosen is not None:
        options.setdefault(
            f"#{chosen}", f"{models.labels(model.name, [chosen])[0]} (word {chosen})"
        )
    st.session_state[f"{name} field"] = "" if chosen is None else f"#{chosen}"
    st.selectbox(
        label,
        list(options),
        key=f"{name} field",
        format_func=lambda value: options.get(value, value),
        accept_new_options=True,
        on_change=take_typed,
        args=(name, model.name, tuple(options)),
        help="One of the model’s ten likeliest words here; or type any other.",
    )
    typed, n, id = st.session_state.get(f"{name} typed", ("", 0, None))
    if typed and id == chosen:
        first = literal(models.labels(model.name, [id])[0]) if n else ""
        st.caption(
            f"“{literal(typed[:60])}” is {n:,} tokens to this model; the first, **{first}**, is taken."
            if n > 1
            else f"Read as the token **{first}**."
            if n
            else "There is no token in what was typed."
        )
    return chosen


def take_typed(name: str, model: str, options: tuple[str, ...]) -> None:
    """What was chosen in the field; of a text that was typed, its first token."""
    state = st.session_state
    value = state[f"{name} field"] or ""
    state[f"{name} typed"] = "", 0, None
    if value in options:
        state[name] = value[1:]
        return
    first = models.first_token(model, value)
    id, n = first or (None, 0)
    state[name] = "" if id is None else str(id)
    state[f"{name} typed"] = value, n, id


def parts_list(recording: Recording, taken: Attribution) -> None:
    """The parts as bars, the strongest first; those that are left out are one bar."""
    parts, chosen = reading.largest(taken), st.session_state.part
    every = len(parts) <= MOST_PARTS or st.toggle(f"All {len(parts)} parts", key="every part")
    shown = [
        part
        for at, part in enumerate(parts)
        if every or at < MOST_PARTS or chosen and reading.part_key(part) == chosen
    ]
    rows = [
        bars.Bar(
            reading.part_name(part),
            part.value,
            (signed(part.value, 3),),
            key=reading.part_key(part),
        )
        for part in shown
    ]
    if rest := [part for part in parts if part not in shown]:
        value = sum(part.value for part in rest)
        rows.append(bars.Bar(f"{len(rest)} weaker ones", value, (signed(value, 3),), tone="rest"))
    name = shelf.name_of(recording, "parts", taken.token, taken.id, taken.against, every, chosen)
    data = bars.payload(
        rows,
        ("contribution",),
        about="Parts of the logit, the strongest first.",
        token=name,
        chosen=chosen,
        action="names the head",
        signed=True,
    )
    bars.show(data, "parts", on_choice=take_part)


def named_head(recording: Recording, part: Part, token: int) -> None:
    """The head whose bar was chosen: what it is called on this text, and the way to its picture."""
    attention = next(one for one in recording.attention if one.name == part.attention)
    words = f"**Layer {part.layer}, head {part.head}**" + (
        " of the cross-attention" if part.attention == "cross" else ""
    )
    if attention.query == attention.key:
        heads = shelf.derived(
            recording, (attention.name, "heads"), lambda: naming.describe(recording, attention)
        )
        head = heads[part.layer * recording.model.n_head + part.head]
        words += f" is called **{head.name}** on this text. {naming.meanings(recording, attention)[head.name]}"
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(
            f"{words.rstrip('.')}. Here it put in {signed(part.value, 3)}.", width="content"
        )
        if part.attention == "cross":
            way_to(
                "../pages/translation.py",
                "Open it on the Translation page",
                recording,
                cross=f"{part.layer}.{part.head}",
            )
        else:
            which = {} if attention is recording.attention[0] else {"attention": attention.name}
            way_to(
                "../pages/attention.py",
                "Open it on the Attention page",
                recording,
                layer=part.layer,
                head=part.head,
                token=token,
                **which,
            )


def way_to(page: str, label: str, recording: Recording, **choices: object) -> None:
    """A link to another page with these choices. A text too long for an address goes along in the session, and so do they."""
    if address.fits_address(recording.text):
        asked = {
            "model": recording.model.name,
            "text": recording.text,
            **({"target": st.session_state.target} if st.session_state.target else {}),
            **choices,
        }
        st.page_link(
            page,
            label=label,
            icon=":material/arrow_forward:",
            query_params={name: str(value) for name, value in asked.items()},
        )
        return
    for name, value in choices.items():
        st.session_state[name] = str(value)
    st.page_link(page, label=label, icon=":material/arrow_forward:")


def take_part() -> None:
    """A click on a head's bar names it; a second click lets it go."""
    chosen = st.session_state.parts.get("row") or ""
    st.session_state.part = "" if chosen == st.session_state.part else chosen


def parts_files(cause: Cause, taken: Attribution) -> None:
    """The table behind the bars, made when it is opened, and its file."""
    which = taken.token, taken.id, taken.against
    with st.expander(
        f"All {len(taken.parts)} parts as a table", key="parts numbers", on_change="rerun"
    ) as box:
        if box.open:
            fine = {"contribution": st.column_config.NumberColumn(format="%.6f")}
            st.dataframe(
                reading.parts_table(taken),
                hide_index=True,
                column_config=fine,
                alt="What each part put into the logit, the strongest first",
            )
        csv_button(
            reading.parts_file(taken),
            parts_about(cause, *which),
            f"headlight-{cause[0]}-logit-parts",
            "Download the parts as CSV",
        )


def parts_about(cause: Cause, token: int, id: int, against: int | None) -> tuple[str, ...]:
    recording = passes.record(*cause)
    stream = reading.read_stream(recording)
    words = models.labels(cause[0], [id, id if against is None else against])
    title = (
        f"logit of “{words[0]}”"
        + ("" if against is None else f" less that of “{words[1]}”")
        + f" at token {token}, “{stream.tokens[token]}”"
    )
    return about_file(recording, title)


def about_file(recording: Recording, what: str) -> tuple[str, ...]:
    """What a file must say when it stands alone."""
    model = recording.model
    target = (
        (f"Decoder reads: {onscreen.read_text(recording, target=True)}",)
        if len(recording.streams) > 1
        else ()
    )
    return (
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights {model.fingerprint}) · {what} · edits: {', '.join(map(str, recording.edits)) or 'none'}",
        f"Text: {onscreen.read_text(recording)}",
        *target,
    )


with st.spinner("Loading the model …"):
    chosen = onscreen.model_for("encoder", "decoder", "encoder-decoder", readout=True)
    wanted = onscreen.typed_target(chosen)
    shown = onscreen.shown(chosen, target=wanted)
onscreen.tell_target(wanted)
address.one_of("lens", tuple(reading.MEASURES))
st.session_state.playing = False
explore(shown.model, st.session_state.text, wanted)
