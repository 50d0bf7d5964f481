"""Embeddings: where does a word travel, layer by layer, and what does context change?"""

from __future__ import annotations

import streamlit as st

from explorer.analysis import embeddings as numbers
from explorer.analysis import residual
from explorer.analysis.csv import stacked
from explorer.analysis.numbers import fixed, percents_told
from explorer.components import paths as pictures
from explorer.frame import onscreen
from explorer.frame.table import csv_button, recording_button
from explorer.memory import address, models, passes, shelf
from explorer.sentences import anchors as anchors_said
from explorer.sentences.escape import literal
from models.examples import EXAMPLES
from models.recording import Recording, Stream

PLANES = {"PCA": "Main directions", "Words": "Through the anchors"}
LENGTHS = {"Kept": "Length kept", "Removed": "Length removed"}
SUMS = {"States": "States", "Sums": "And sums"}
SPECIALS = {"Hidden": "Words only", "Shown": "And specials"}
SPACES = ("2-D", "3-D")
STEP = {  # what a sub-layer does to the vector, by where LayerNorm stands and whether there is a residual connection
    ("post", True): "each sub-layer adds what it wrote: x ← LayerNorm(x + sublayer(x)).",
    (
        "pre",
        True,
    ): "each sub-layer reads it through a LayerNorm and adds what it wrote: x ← x + sublayer(LayerNorm(x)), with one more LayerNorm at the end.",
    (None, True): "each sub-layer adds what it wrote: x ← x + sublayer(x), with no LayerNorm.",
    (
        "post",
        False,
    ): "each sub-layer puts what it wrote in its place: x ← LayerNorm(sublayer(x)), with no residual connection.",
    (
        "pre",
        False,
    ): "each sub-layer puts what it wrote in its place: x ← sublayer(LayerNorm(x)), with no residual connection.",
    (
        None,
        False,
    ): "each sub-layer puts what it wrote in its place: x ← sublayer(x), with no residual connection and no LayerNorm.",
}
N_NEAR = 5
EXAMPLE = ("Apple and juice", "Apple devices")


@st.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    if (
        text != st.session_state.text
    ):  # the example has put another text into the field above, which only a whole run draws
        st.rerun()
    st.subheader(
        "Where does a word travel, layer by layer, and what does context change?",
        anchor=False,
        help="Each token is a vector that every sub-layer moves. Here all of them are drawn in one fixed plane, from the embedding to the last layer.",
    )
    fields = st.columns([1.7, 1.4, 0.95], vertical_alignment="bottom")
    first, second = recordings(model, text, fields[0], fields[2])
    stream = chosen_stream(first)
    switches(first)
    words = anchor_words(first, second, stream, fields[1])
    scene, anchors = seen(first, second, stream, words, look())
    if scene.fallback:
        st.info(
            "No plane leads through these anchors: both groups must stand apart. The main directions are shown instead."
        )
    token, mate = chosen(first, second, stream, scene)
    stage = chosen_stage(scene)
    verdict(scene, anchors, token, mate)
    caption = caption_of(first, second, stream, scene, words)
    left, right = st.columns([1.42 if anchors else 1.15, 1], gap="large")
    with left:
        picture(first, second, scene, stream, words, token, mate, stage, caption)
    with right:
        beside(first, second, stream, scene, anchors, words, token, mate, stage, caption)
        if anchors is None:
            neighbours(first, second, stream, scene, words, token, mate)
    if anchors is not None:
        neighbours(first, second, stream, scene, words, token, mate)
    below(first, second, stream, words, scene, anchors, token, mate, stage, caption)
    address.write()


# ---- what is shown --------------------------------------------------------------------------------------------------


def recordings(model: str, text: str, field, example) -> tuple[Recording, Recording | None]:
    """The recording of the text above and of the second one, whose field stands here."""
    first = passes.record(model, text)
    field.text_input(
        "A second text: the same word in another context",
        key="second",
        persist_state="session",
        on_change=forget_mate,
        placeholder="Empty: one text alone. Type a sentence that shares a word with the first",
    )
    if text == EXAMPLES[EXAMPLE[0]] and st.session_state.second == EXAMPLES[EXAMPLE[1]]:
        example.button("One text alone", on_click=drop_second, width="stretch")
    else:
        example.button(
            "“apple” in two contexts",
            on_click=take_example,
            width="stretch",
            help="The lecture notes’ own example: an apple with juice, and apple devices.",
        )
    typed = st.session_state.second
    if not typed.strip():
        return first, None
    second = passes.record(model, typed)
    if second.dropped:
        st.warning(
            f"The second text has {second.dropped + model_size(second):,} tokens; {model} reads {model_size(second)}. The last {second.dropped:,} are not shown. The field keeps them."
        )
    if not address.fits_address(typed):
        st.info(
            "The second text is too long for a link. It stays in this tab; reloading the page does not bring it back."
        )
    return first, second


def model_size(recording: Recording) -> int:
    return recording.model.n_positions


def chosen_stream(recording: Recording) -> Stream:
    """The stream on screen. The first one stands as "" in the address."""
    names = ("", *(stream.name for stream in recording.streams[1:]))
    return recording.stream(address.one_of("stream", names) or recording.streams[0].name)


def switches(first: Recording) -> None:
    """How the paths are drawn."""
    for name, options in (
        ("plane", PLANES),
        ("length", LENGTHS),
        ("sums", SUMS),
        ("specials", SPECIALS),
        ("space", SPACES),
    ):
        address.one_of(name, tuple(options))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        if len(first.streams) > 1:
            titles = {"": f"{first.streams[0].name.capitalize()}: reads"} | {
                one.name: f"{one.name.capitalize()}: writes" for one in first.streams[1:]
            }
            choice(
                "Stream",
                titles,
                "stream",
                "Which column of vectors: the one that reads the text, or the one that writes the translation.",
                on_change=forget_place,
            )
        choice(
            "View",
            dict.fromkeys(SPACES),
            "space",
            "A plane that plays, or three dimensions to be turned.",
        )
        choice(
            "Plane",
            PLANES,
            "plane",
            "The directions along which all shown vectors spread most, or a first axis from the first group of anchor words to the second.",
        )
        choice(
            "Vectors",
            LENGTHS,
            "length",
            "As they are, or each divided by its length, so that only directions count.",
        )
        if residual.norm_place(first.streams[0]) == "post":
            choice(
                "Sites",
                SUMS,
                "sums",
                "Each state after its LayerNorm, or the sums before the LayerNorms as well.",
                on_change=forget_stage,
            )
        choice(
            "Tokens",
            SPECIALS,
            "specials",
            "Special tokens often lie far away and then decide where the main directions lead.",
        )


def anchor_words(
    first: Recording, second: Recording | None, stream: Stream, field
) -> tuple[tuple[str, ...], ...]:
    """The field with the anchor words; returns their groups, none where they are not used."""
    reads = stream.name == first.streams[0].name
    wanted = second is not None or st.session_state.plane == "Words"
    field.text_input(
        "Anchor words, two groups: a, b / c, d",
        key="anchors",
        persist_state="session",
        disabled=not (wanted and reads),
        help="For a second text, and for the plane through the anchors. "
        f"Each word is run alone through the same model in “{numbers.framed('…')}”; its vector at a site is the mean over its tokens there, a group’s the mean over its words. At most {numbers.MOST_WORDS} words a group.",
    )
    if not wanted:
        return ()
    if not reads:
        st.info(
            "Anchor words are in the language that is read, so they are measured in the encoder’s stream alone. Choose it to compare with them."
        )
        return ()
    words = numbers.groups(st.session_state.anchors)
    if len(words) < 2:
        st.info(
            "Two groups of anchor words are needed, with / between them, for example: fruit, tree, juice / mac, os, app"
        )
        return ()
    return words


def choice(label: str, options: dict, key: str, words: str, **more) -> None:
    st.segmented_control(
        label,
        tuple(options),
        key=key,
        format_func=lambda name: options[name] or name,
        required=True,
        persist_state="session",
        help=words,
        **more,
    )


def look() -> tuple[str, str, str, str]:
    """How it is drawn: plane, length, sums and specials."""
    state = st.session_state
    return state.plane, state.length, state.sums, state.specials


def seen(
    first: Recording,
    second: Recording | None,
    stream: Stream,
    words: tuple[tuple[str, ...], ...],
    how: tuple[str, str, str, str],
) -> tuple[numbers.Scene, numbers.Anchors | None]:
    """Everything that is drawn, and the anchors, from the shelf where nothing has changed. Reads nothing of the visit: a download comes here too."""
    plane, length, sums, specials = how
    sites = numbers.sites(stream, sums == "Sums")
    anchors = None
    if words:
        anchors = shelf.derived(
            first,
            ("anchors", stream.name, sites, words),
            lambda: anchors_of(first.model.name, words, stream.name, sites),
            lambda made: made.vectors.nbytes + made.all_rows.nbytes,
        )
    streams = [one.stream(stream.name) for one in (first, second) if one is not None]
    made = shelf.derived(
        first,
        ("scene", second and second.text, stream.name, words, how),
        lambda: numbers.scene(
            streams,
            anchors,
            sites,
            specials=specials == "Shown",
            unit_length=length == "Removed",
            words_plane=plane == "Words",
        ),
        lambda made: made.nbytes,
    )
    return made, anchors


def anchors_of(
    model: str, words: tuple[tuple[str, ...], ...], stream: str, sites: tuple[str, ...]
) -> numbers.Anchors:
    return numbers.anchors_of(
        words,
        [passes.record(model, numbers.framed(word)) for group in words for word in group],
        stream,
        sites,
    )


def cause(second: Recording | None, stream: Stream, words: tuple[tuple[str, ...], ...]) -> tuple:
    """What a picture depends on beside the first recording."""
    return second and second.text, stream.name, words, look()


def chosen(
    first: Recording, second: Recording | None, stream: Stream, scene: numbers.Scene
) -> tuple[int, int | None]:
    """The followed token's place in the first text, and its counterpart's in the second, None where it has none."""
    other = second.stream(stream.name) if second else None
    shown = scene.texts[0].places
    token = address.whole("token", len(stream.tokens))
    if token not in shown:
        token = numbers.followed(stream, other, shown)
    if other is None:
        return token, None
    mate = address.whole("mate", len(other.tokens))
    if mate is None:
        mate = numbers.counterpart(stream, token, other)
    return token, mate if mate in scene.texts[1].places else None


def chosen_stage(scene: numbers.Scene) -> int:
    """The site on screen, from 0: the last unless the address, which counts from 1, names one."""
    last = len(scene.sites)
    return (address.whole("stage", last + 1) or last) - 1


# ---- the sentence that says what came out ----------------------------------------------------------------------------


def quoted(scene: numbers.Scene, text: int, place: int) -> str:
    group = scene.texts[text]
    return f"“{literal(group.labels[group.places.index(place)])}”"


def verdict(
    scene: numbers.Scene, anchors: numbers.Anchors | None, token: int, mate: int | None
) -> None:
    """What the followed word does, in numbers of the full space."""
    if len(scene.texts) == 2 and mate is None:
        st.markdown(
            f"{quoted(scene, 0, token)} is not in the second text. Choose the token there that it should be compared with."
        )
    elif anchors is not None and mate is not None:
        compared(scene, anchors, token, mate)
    else:
        travelled(scene, token)


def travelled(scene: numbers.Scene, token: int) -> None:
    way = numbers.journey(scene.path(0, token))
    st.markdown(
        f"**{quoted(scene, 0, token)} travels {way.length:.2f}** over {len(scene.sites) - 1} steps and ends {way.straight:.2f} from where it began; "
        f"the cosine between start and end is {fixed(way.cosine, 3)}. The longest step, {way.longest:.2f}, is at {scene.titles[way.site]}. All in {len(scene.basis.centre)} dimensions, not in the picture’s two."
    )


def shift_of(
    scene: numbers.Scene, anchors: numbers.Anchors, token: int, mate: int
) -> numbers.Shift:
    return numbers.shift(
        [scene.path(0, token, raw=True), scene.path(1, mate, raw=True)],
        anchors,
        [group.raw for group in scene.texts],
    )


def compared(scene: numbers.Scene, anchors: numbers.Anchors, token: int, mate: int) -> None:
    found = shift_of(scene, anchors, token, mate)
    one, other = (literal(", ".join(words)) for words in anchors.words)
    towards = (one, other) if found.gap > 0 else (other, one)
    word = quoted(scene, 0, token)
    apart = f"compared with text 2, text 1 draws it towards *{towards[0]}* and away from *{towards[1]}*; its lean, the cosine to one group minus the cosine to the other, differs by **{abs(found.gap):.3f}**"
    chance = anchors_said.splits(found.as_far, found.n_splits, len(anchors.group))
    headline = {
        "apart": f"**{word} moves with its context:** {apart}. {chance}",
        "chance": f"**{word} moves, but not clearly between these two groups:** {apart}. {chance}",
        "still": f"**{word} does not move between these two groups:** the leans differ by {abs(found.gap):.3f}.",
    }[found.verdict]
    st.markdown(
        f"{headline} Between the texts the word’s own cosine goes from {fixed(found.own[0], 3)} at the embedding to {fixed(found.own[-1], 3)} at {scene.titles[-1]}."
    )


def leans(scene: numbers.Scene, anchors: numbers.Anchors, token: int, mate: int | None) -> None:
    """The figures behind the verdict."""
    if mate is None:
        return
    found = shift_of(scene, anchors, token, mate)
    one, other = (literal(", ".join(words)) for words in anchors.words)
    agree = (
        "Centred cosines agree"
        if found.centred_gap * found.gap > 0
        else "Centred cosines do not agree"
    )
    said = "; ".join(
        f"text {at + 1} has {fixed(near[0], 3)} to *{one}* and {fixed(near[1], 3)} to *{other}*, a lean of **{fixed(lean, 3)}**"
        for at, (near, lean) in enumerate(zip(found.near, found.lean))
    )
    st.markdown(
        f"Cosines at the end: {said}. {agree}: there the leans differ by {fixed(found.centred_gap, 3)}, here by {fixed(found.gap, 3)}."
    )


# ---- the pictures ---------------------------------------------------------------------------------------------------


def caption_of(
    first: Recording,
    second: Recording | None,
    stream: Stream,
    scene: numbers.Scene,
    words: tuple[tuple[str, ...], ...],
) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    model, state = first.model, st.session_state
    lines = [
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights {model.fingerprint}) · stream {stream.name} · edits: none",
        f"{'Plane' if state.space == '2-D' else 'Space'}: {', '.join(scene.basis.names[: 2 if state.space == '2-D' else 3])}, fitted on all shown vectors of the text{'s' if second else ''} at all {len(scene.sites)} sites · {LENGTHS[state.length].lower()} · {SPECIALS[state.specials].lower()}",
        ("Text 1: " if second else "Text: ") + onscreen.read_text(first),
    ]
    if second:
        lines.append("Text 2: " + onscreen.read_text(second))
    if stream.name != first.streams[0].name:
        lines += [
            "Written: " + onscreen.read_text(one, target=True)
            for one in (first, second)
            if one is not None
        ]
    if words:
        lines.append(
            f"Anchors: {' / '.join(', '.join(group) for group in words)}, each alone in “{numbers.framed('…')}”, not part of the fit"
        )
    return tuple(lines)


def file_of(first: Recording, what: str) -> str:
    return f"headlight-{first.model.name}-{what}"


def picture(
    first: Recording,
    second: Recording | None,
    scene: numbers.Scene,
    stream: Stream,
    words: tuple,
    token: int,
    mate: int | None,
    stage: int,
    caption: tuple[str, ...],
) -> None:
    if st.session_state.space == "3-D":
        in_space(first, scene, token, mate, stage, caption)
        return
    name = shelf.name_of(first, "walk", *cause(second, stream, words))
    data = shelf.derived(
        first,
        ("walk", *cause(second, stream, words)),
        lambda: pictures.walk(
            [
                {
                    "name": group.name,
                    "kind": group.kind,
                    "labels": group.labels,
                    "places": group.places,
                }
                for group in scene.groups
            ],
            **scene.arrays(),
            titles=scene.titles,
            axes=scene.basis.names,
            explained=scene.basis.explained,
            caption=caption,
            file=file_of(first, "paths"),
            token=name,
        ),
        len,
    )
    pictures.show(data, "walk", take_pick, take_stage, take_switch)


def in_space(
    first: Recording,
    scene: numbers.Scene,
    token: int,
    mate: int | None,
    stage: int,
    caption: tuple[str, ...],
) -> None:
    """Three dimensions, to be turned by hand; imported only when wanted."""
    from explorer.figures.embeddings import paths

    shares = [
        f"{name}: {share:.1%}" for name, share in zip(scene.basis.names, scene.basis.explained)
    ]
    st.markdown(
        f"**Explained variance {sum(scene.basis.explained):.1%}**   {literal('  ·  '.join(shares))}   outside these three directions at this site: "
        f"{numbers.mean_error(scene, 3, stage):.1%} on average"
    )
    st.session_state["site in space"] = stage
    st.select_slider(
        "Site",
        range(len(scene.sites)),
        key="site in space",
        format_func=scene.titles.__getitem__,
        on_change=take_site,
    )
    followed = [(0, token), *([(1, mate)] if mate is not None else [])]
    figure = paths(
        [
            (group.name, group.kind, group.labels, scene.basis.project(group.vectors[stage]))
            for group in scene.groups
        ],
        [
            (
                scene.texts[at].labels[scene.texts[at].places.index(place)]
                + f" ({scene.texts[at].name})",
                at,
                scene.basis.project(scene.path(at, place)),
            )
            for at, place in followed
        ],
        stage,
        scene.titles,
        scene.basis.names,
        (f"Paths of tokens, at {scene.titles[stage]}", *caption),
    )
    options = {
        "displaylogo": False,
        "toImageButtonOptions": {
            "format": "png",
            "scale": 2,
            "filename": file_of(first, "paths-3d"),
        },
    }
    st.plotly_chart(
        figure,
        key="in space",
        config=options,
        alt=f"Paths of tokens in three dimensions, at {scene.titles[stage]}; the tables below have the numbers",
    )


def followed_lines(
    scene: numbers.Scene,
    anchors: numbers.Anchors | None,
    token: int,
    mate: int | None,
    measure: str,
) -> tuple[list[dict], object]:
    """The curves of the followed word: names, and values (line, site)."""
    ways = [
        scene.path(0, token, raw=True),
        *([scene.path(1, mate, raw=True)] if mate is not None else []),
    ]
    values = numbers.curves(ways, anchors, [group.raw for group in scene.texts], measure)
    if anchors is None:
        return [], values
    titles = (
        [""] if measure == "Difference" else [" · " + ", ".join(words) for words in anchors.words]
    )
    lines = [
        {
            "name": f"{scene.texts[at].name if measure == 'Difference' else at + 1}{title}",
            "kind": at,
            "group": group,
        }
        for at in range(len(ways))
        for group, title in enumerate(titles)
    ]
    return lines, values


def nearest(
    recording: Recording, stream: str, place: int, scene: numbers.Scene
) -> tuple[list[list[str]], object]:
    """The nearest words (site, rank) to a token, with their cosines."""
    ids, cosines = passes.nearest(recording, stream, place, N_NEAR)
    at = [recording.stream(stream).sites.index(site) for site in scene.sites]
    return [models.labels(recording.model.name, ids[one]) for one in at], cosines[at]


def beside(
    first: Recording,
    second: Recording | None,
    stream: Stream,
    scene: numbers.Scene,
    anchors: numbers.Anchors | None,
    words: tuple,
    token: int,
    mate: int | None,
    stage: int,
    caption: tuple[str, ...],
) -> None:
    """The curves of the followed word, and which site and word are on screen."""
    state = st.session_state
    if anchors is not None:
        st.markdown(f"**How near {quoted(scene, 0, token)} stands to the anchors, site by site**")
        address.one_of("curve", tuple(numbers.MEASURES))
        st.segmented_control(
            "Measure",
            tuple(numbers.MEASURES),
            key="curve",
            required=True,
            persist_state="session",
            label_visibility="collapsed",
        )
        pieces = (
            f" Read in pieces, the mean taken: {', '.join(anchors.in_pieces)}."
            if anchors.in_pieces
            else ""
        )
        st.caption(
            f"{numbers.MEASURES[state.curve]} Colours and marks: the text; solid: the first group, dashed: the second.{literal(pieces)}"
        )
    measure = address.one_of("curve", tuple(numbers.MEASURES))
    lines, values = followed_lines(scene, anchors, token, mate, measure)
    curve_caption = (
        f"{measure} of {scene.texts[0].labels[scene.texts[0].places.index(token)]} to each group of anchors",
        f"{measure}: {numbers.MEASURES[measure]}",
        *caption,
    )
    pictures.show(
        pictures.around(
            chosen=[scene.point(0, token), scene.point(1, mate)],
            stage=stage,
            trails=address.one_of("trails", ("Chosen", "All")),
            frame=address.one_of("frame", ("All", "Close")),
            lead=state.space == "3-D",
            lines=lines,
            values=values,
            measure=measure,
            titles=scene.titles,
            caption=curve_caption,
            file=file_of(first, f"{measure.lower()}-to-anchors"),
            token=shelf.name_of(
                first,
                "around",
                *cause(second, stream, words),
                token,
                mate,
                stage,
                measure,
                state.trails,
                state.frame,
                state.space,
            ),
        ),
        "around",
        take_pick,
        take_stage,
        take_switch,
    )
    if anchors is not None:
        leans(scene, anchors, token, mate)


def neighbours(
    first: Recording,
    second: Recording | None,
    stream: Stream,
    scene: numbers.Scene,
    words: tuple,
    token: int,
    mate: int | None,
) -> None:
    """The words of the vocabulary that the followed word comes near to."""
    near = []
    for at, (recording, place) in enumerate(((first, token), (second, mate))):
        if recording is not None and place is not None:
            found, cosines = nearest(recording, stream.name, place, scene)
            rows = [list(zip(row, map(float, near_by))) for row, near_by in zip(found, cosines)]
            near.append(
                {
                    "token": recording.stream(stream.name).tokens[place],
                    "name": scene.texts[at].name,
                    "kind": at,
                    "rows": rows,
                }
            )
    name = shelf.name_of(first, "near", *cause(second, stream, words), token, mate)
    pictures.show(
        pictures.nearest(near, scene.titles, name), "near", take_pick, take_stage, take_switch
    )


# ---- words, tables and files ----------------------------------------------------------------------------------------


def below(
    first: Recording,
    second: Recording | None,
    stream: Stream,
    words: tuple,
    scene: numbers.Scene,
    anchors: numbers.Anchors | None,
    token: int,
    mate: int | None,
    stage: int,
    caption: tuple[str, ...],
) -> None:
    model, text, name = first.model.name, first.text, stream.name
    other, how, measure = second.text if second else None, look(), st.session_state.curve

    def again() -> tuple[Recording, Recording | None, numbers.Scene, numbers.Anchors | None]:
        """All of it from the shelf, so that a button keeps names and not arrays; it runs outside the visit and knows only what is named here."""
        one, two = (
            passes.record(model, text),
            passes.record(model, other) if other is not None else None,
        )
        return one, two, *seen(one, two, one.stream(name), words, how)

    with st.container(horizontal=True, gap="small"):
        csv_button(
            lambda: numbers.all_paths(again()[2]),
            caption,
            file_of(first, "paths"),
            "Paths as CSV",
        )
        if anchors is not None:
            csv_button(
                lambda: pulled(*again()[2:], token, mate, measure),
                (f"{measure}: {numbers.MEASURES[measure]}", *caption),
                file_of(first, "anchors"),
                "Curves as CSV",
            )
        csv_button(
            lambda: near_tables(*again()[:3], name, token, mate),
            caption,
            file_of(first, "nearest"),
            "Nearest words as CSV",
        )
        recording_button(model, text)
    note(first, stream, scene, anchors, token, stage)
    tables(first, second, name, scene, anchors, token, mate, stage)


def pulled(
    scene: numbers.Scene, anchors: numbers.Anchors, token: int, mate: int | None, measure: str
) -> dict:
    lines, values = followed_lines(scene, anchors, token, mate, measure)
    return numbers.pull_table(scene.titles, [line["name"] for line in lines], values)


def near_tables(
    first: Recording,
    second: Recording | None,
    scene: numbers.Scene,
    stream: str,
    token: int,
    mate: int | None,
) -> dict:
    found = [
        (
            scene.texts[at].name,
            numbers.near_table(scene.titles, *nearest(recording, stream, place, scene)),
        )
        for at, (recording, place) in enumerate(((first, token), (second, mate)))
        if recording is not None and place is not None
    ]
    return stacked(found, "of")


def note(
    first: Recording,
    stream: Stream,
    scene: numbers.Scene,
    anchors: numbers.Anchors | None,
    token: int,
    stage: int,
) -> None:
    """What happens, in plain words, with the formulas and this sentence's numbers."""
    model, basis = first.model, scene.basis
    begins = models.word_vector(model.name).replace("√d", f"√{model.d_model}")
    row = numbers.path_table(scene.titles, scene.path(0, token), basis)
    first_part, second_part, both = percents_told(*map(float, basis.explained[:2]))
    st.subheader("What happens here", anchor=False)
    st.markdown(
        f"**The path.** A token starts as {begins}{', the position is added' if 'pos.wrote' in stream.sites else '; this model adds no positions'}{', a LayerNorm follows' if 'embed.normed' in stream.sites else ''}, and {STEP[residual.norm_place(stream), residual.adds(stream)]} "
        f"That makes {len(scene.sites)} sites, at each of which {quoted(scene, 0, token)} is a vector of {model.d_model} numbers.  \n"
        f"**The plane.** All shown vectors of all sites together give one mean m and the directions u₁, u₂ of the picture; a vector v stands at (u₁ · (v − m), u₂ · (v − m)). "
        f"The plane never changes along the way, so a dot that moves has moved. It holds {first_part} + {second_part} = **{both}** of the spread.  \n"
        f"**The error.** Two of {model.d_model} directions cannot show everything. A dot’s projection error is the share of ‖v − m‖² outside the plane: 1 − (x² + y²) / ‖v − m‖². "
        f"For {quoted(scene, 0, token)} at {scene.titles[stage]}: x = {fixed(row['x'][stage], 3)}, y = {fixed(row['y'][stage], 3)}, error **{row['error in 2-D'][stage]:.1%}**. Two dots that touch may be far apart."
    )
    if anchors is not None:
        st.markdown(
            f"**Anchors.** Each anchor word is read alone, in “{numbers.framed('…')}”, by the same model; its vector is the mean over its tokens at the site, a group’s vector c the mean over its words, "
            "and cos(v, c) = v · c / (‖v‖ ‖c‖). All vectors of a model share directions, and one that stands elsewhere in its sentence has another position added, so a high cosine alone says little. "
            "The control is the difference: lean = cosine to the first group − cosine to the second, compared between the texts. At the embedding both texts have the same lean, because they have the same vector."
        )
    st.caption(
        "Nearest words: the cosine to every row of the model’s own embedding matrix. Later vectors were not made to lie near embeddings by this measure; read far-off neighbours as such."
        + (
            " In a decoder a vector starts as the token read and ends as a forecast of the next one."
            if stream.name == "decoder"
            else ""
        )
    )


def tables(
    first: Recording,
    second: Recording | None,
    stream: str,
    scene: numbers.Scene,
    anchors: numbers.Anchors | None,
    token: int,
    mate: int | None,
    stage: int,
) -> None:
    """The numbers behind every picture."""
    with st.expander("Every number as a table"):
        kinds = ("Path", "Site", *(("Curves",) if anchors is not None else ()), "Nearest words")
        kind = st.segmented_control(
            "Table",
            kinds,
            default="Path",
            key="embedding table",
            required=True,
            label_visibility="collapsed",
        )
        if kind == "Site":
            st.caption(f"Every point at {scene.titles[stage]}.")
            found = numbers.at_site(scene, stage)
        elif kind == "Curves" and anchors is not None:
            measure = st.session_state.curve
            st.caption(f"{measure}: {numbers.MEASURES[measure]}")
            found = pulled(scene, anchors, token, mate, measure)
        elif kind == "Nearest words":
            found = near_tables(first, second, scene, stream, token, mate)
        else:
            st.caption(
                "x, y and z in the basis of the picture; errors as shares; norm and distance moved in all dimensions, moved as drawn (with lengths kept or removed)."
            )
            followed = [(0, token), *([(1, mate)] if mate is not None else [])]
            found = stacked(
                [
                    (
                        scene.texts[at].name,
                        numbers.path_table(scene.titles, scene.path(at, place), scene.basis),
                    )
                    for at, place in followed
                ],
                "of",
            )
        four = st.column_config.NumberColumn(format="%.4f")
        st.dataframe(
            found,
            hide_index=True,
            column_config={
                name: four
                for name in found
                if name not in ("site", "of", "token") and not name.startswith("word ")
            },
        )


# ---- what the reader did --------------------------------------------------------------------------------------------


def take_pick() -> None:
    text, place = (int(each) for each in st.session_state.walk["pick"])
    if text == 0:
        st.session_state.token, st.session_state.mate = str(place), ""
    else:
        st.session_state.mate = str(place)


def take_stage() -> None:
    st.session_state.stage = str(int(st.session_state.walk["stage"]) + 1)


def take_site() -> None:
    st.session_state.stage = str(st.session_state["site in space"] + 1)


def take_switch() -> None:
    name, value = (str(each) for each in st.session_state.walk["switch"])
    if name in ("trails", "frame"):
        st.session_state[name] = value


def take_example() -> None:
    st.session_state.text, st.session_state.second = (EXAMPLES[name] for name in EXAMPLE)
    st.session_state.plane, st.session_state.frame = "Words", "Close"
    st.session_state.token = ""
    forget_mate()


def drop_second() -> None:
    st.session_state.second = ""
    st.session_state.plane, st.session_state.frame = "PCA", "All"
    forget_mate()


def forget_mate() -> None:
    st.session_state.mate = ""


def forget_stage() -> None:
    st.session_state.stage = ""


def forget_place() -> None:
    st.session_state.token = ""
    forget_mate()
    forget_stage()


with st.spinner("Loading the model …"):
    shown = onscreen.shown()
explore(shown.model, st.session_state.text)
