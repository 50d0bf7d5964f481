"""Residual stream: what did each sub-layer write, and how far did it turn the vector?"""

from __future__ import annotations

from math import sqrt

import streamlit as st

from explorer.analysis import residual as numbers
from explorer.analysis.caption import caption
from explorer.analysis.numbers import enough_for, fixed
from explorer.components import residual as pictures
from explorer.frame import onscreen
from explorer.frame.table import csv_button, recording_button, with_table
from explorer.memory import address, background, models, passes, shelf
from explorer.sentences import gradients as words
from explorer.sentences.escape import literal
from explorer.views.residual import deep
from models.recording import Recording, Stream

WHERE = {
    "post": "This model is post-LN: its LayerNorms follow the sums, and what they make goes on as the vector.",
    "pre": "This model is pre-LN: its LayerNorms stand in front of the sub-layers, which alone read what they make; the vector itself goes on without. The last one stands before the readout.",
    None: "",
}
FLOWS = ("Writes", "LayerNorm", "Heads", "Gradient", "RNN")
FLOW_LABELS = {
    "Writes": "What was written",
    "LayerNorm": "LayerNorm",
    "Heads": "Heads",
    "Gradient": "Gradient",
    "RNN": "Beside an RNN",
}
WAY_ON = {  # what happens to a token's vector, by where LayerNorm stands
    "post": "Attention and FFN each add something to it; LayerNorm then sets its length. The vector is passed on and only ever added to: the residual stream.",
    "pre": "Attention and FFN each read it through a LayerNorm and add something to it. The vector itself is passed on and only ever added to: the residual stream.",
    None: "Attention and FFN each add something to it, and no LayerNorm ever sets its length. The vector is passed on and only ever added to: the residual stream.",
}
LOOK = 0.7  # seconds between two looks at an experiment that runs
TWO, THREE = (st.column_config.NumberColumn(format=f"%.{digits}f") for digits in (2, 3))


@st.fragment
def explore(model: str, text: str, target: str | None) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    recording = passes.record(model, text, target=target)
    st.subheader(
        "What did each sub-layer write, and how far did it turn the vector?",
        anchor=False,
        help=f"Every token has one vector. {WAY_ON[numbers.norm_place(recording.streams[0])]}",
    )
    stream, flow = controls(recording)
    if flow != "RNN" and not numbers.sublayers(stream):
        st.info(
            f"{model} does not show what its sub-layers write, so there is nothing to draw here. “{FLOW_LABELS['RNN']}” needs your text alone."
        )
        address.write()
        return
    if not numbers.adds(stream):
        st.info(
            f"**{model} was trained without residual connections**: what a sub-layer writes is not added to the vector, it takes its place."
        )
    {
        "Writes": writes,
        "LayerNorm": layer_norm,
        "Heads": heads,
        "Gradient": gradient,
        "RNN": recurrence,
    }[flow](recording, stream)
    address.write()


def controls(recording: Recording) -> tuple[Stream, str]:
    """Which stream, and what of it."""
    names = tuple(stream.name for stream in recording.streams)
    left, right = st.columns([2.2, 1]) if len(names) > 1 else (st.container(), None)
    flow = left.segmented_control(
        "Look at",
        FLOWS,
        key="flow",
        format_func=FLOW_LABELS.get,
        required=True,
        persist_state="session",
    )
    name = names[0]
    if right:
        st.session_state["stream shown"] = address.one_of("stream", names)
        name = right.segmented_control(
            "Stream", names, key="stream shown", required=True, on_change=take_stream
        )
    return recording.stream(name), flow


def chosen(recording: Recording, stream: Stream) -> int:
    """The token that is followed: the one chosen, or else the one that was turned furthest."""
    asked = address.whole("token", len(stream.tokens))
    return (
        shelf.derived(recording, ("most turned", stream.name), lambda: numbers.most_turned(stream))
        if asked is None
        else asked
    )


def chart(
    recording: Recording, stream: Stream, grid: numbers.Grid, what: str, log: bool, note
) -> int:
    """The map, the followed token's line and a note beside them, the table and the files; the token followed."""
    token = chosen(recording, stream)
    measure = grid.measure
    title = f"{measure.name}: {what}"
    caption = caption_of(
        recording,
        stream,
        f"{measure.name}: {measure.meaning}" + (", on a logarithmic scale" if log else ""),
    )
    which = f"-{stream.name}" if len(recording.streams) > 1 else ""
    file = f"headlight-{recording.model.name}{which}-{measure.name.lower().replace(' ', '-')}"
    picture = shelf.name_of(recording, stream.name, what, measure.name, log)
    data = shelf.derived(
        recording,
        ("residual chart", picture),
        lambda: pictures.chart(
            grid,
            stream.tokens,
            stream.special,
            log=log,
            title=title,
            caption=caption,
            file=file,
            token=picture,
        ),
        weigh=len,
    )
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        pictures.show(data, "map", take_token)
    with right:
        bars = measure in numbers.HEADS
        pictures.show(
            pictures.followed(
                grid,
                stream.tokens,
                token,
                bars=bars,
                log=log,
                title=title,
                caption=caption,
                file=file,
                token=f"{picture} followed",
                picture=picture,
            ),
            "way of the token",
            ignore,
        )
        note(token)
    model, text, wanted = recording.model.name, recording.text, target_of(recording)
    tokens = stream.tokens  # and not the stream, which a button to press later would keep
    with st.container(horizontal=True, gap="small"):
        recording_button(model, text, wanted)
    with_table(lambda: numbers.table(grid, tokens), (title, *caption), file, form="%.3f")
    return token


def caption_of(recording: Recording, stream: Stream, what: str) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    of = f"{stream.name} stream" if len(recording.streams) > 1 else ""
    return caption(recording, what, of=of, target="Output")


# ---- what was written ---------------------------------------------------------------------------------------------


def writes(recording: Recording, stream: Stream) -> None:
    names = tuple(measure.name for measure in numbers.WRITES)
    measure, log = pick("write", names, numbers.WRITES)
    grid = shelf.derived(
        recording, ("writes", stream.name, measure), lambda: numbers.writes(stream, measure), _weigh
    )
    token = chart(
        recording,
        stream,
        grid,
        "every token, sub-layer by sub-layer" if measure != "Norm" else "every token, site by site",
        log,
        lambda at: written_note(recording, stream, at),
    )
    st.subheader(
        f"The whole way of “{literal(stream.tokens[token])}” (token {token})", anchor=False
    )
    followed = numbers.followed(stream, token)
    st.dataframe(followed, hide_index=True, column_config=dict.fromkeys(list(followed)[1:], TWO))
    turned = numbers.rotations(stream, token)
    caption = caption_of(recording, stream, f"token {token}, {stream.tokens[token]}")
    file = f"headlight-{recording.model.name}-{stream.name}-token{token}"
    csv_button(followed, caption, file, "This way as CSV")
    st.markdown(
        "**The rotations of each layer**, in degrees: from the layer’s beginning to after its attention, from there to after its FFN, and both in one."
    )
    st.dataframe(turned, hide_index=True, column_config=dict.fromkeys(list(turned)[1:], TWO))
    st.caption(
        "Two turns in unlike directions make less than their sum: “whole layer” is the angle from beginning to end."
    )


def written_note(recording: Recording, stream: Stream, token: int) -> None:
    """The formula with this token's numbers, at the sub-layer that turned it furthest."""
    way = numbers.followed(stream, token)
    at = numbers.furthest(way)
    value = {name: column[at] for name, column in way.items()}
    adds = numbers.adds(stream)
    share, length = fixed(value["share"]), fixed(value["|sum|"]) if adds else ""
    equalities = [(share, lambda x, f, cos: f / (f + x))]
    if adds:
        equalities += [(length, lambda x, f, cos: sqrt(x * x + f * f + 2 * x * f * cos))]
    before, wrote, cosine = enough_for(
        equalities, *map(float, (value["|before|"], value["|wrote|"], value["cosine"]))
    )
    post = "turned by norm °" in value
    goes_on = "; LayerNorm of it goes on" if post else ""
    rule = (
        f"**Write, {'then norm, ' if post else ''}no adding.** f(x) is written in the place of x{goes_on}."
        if not adds
        else "**Norm, then add.** A sub-layer reads LayerNorm(x), and x + f goes on as it is, f = what it made of that."
        if numbers.norm_place(stream) == "pre"
        else f"**Add, then norm.** x + f(x) is the sum{goes_on}."
        if post
        else "**Add, and no norm.** x + f(x) goes on as it is: this model was trained without LayerNorm."
    )
    came = (
        f"|x + f|² = |x|² + |f|² + 2 |x| |f| cos, so |x + f| = {length}. Adding turned it"
        if adds
        else "Putting f(x) in the place of x turned it"
    )
    ended = (
        f"{value['turned by adding °']:.1f}°, LayerNorm then {value['turned by norm °']:.1f}°; from x to after the norm it is **{value['turned in all °']:.1f}°**"
        if post
        else f"**{value['turned in all °']:.1f}°**"
    )
    st.markdown(
        f"{rule}  \n"
        f"**{literal(stream.tokens[token])}** in {value['sub-layer']}, its furthest turn: |x| = {before}, and |f| = {wrote} was written, "
        f"a share of {wrote} / ({wrote} + {before}) = **{share}**, at a cosine of **{cosine}** to x.  \n"
        f"{came} {ended}."
    )
    if not adds:
        st.markdown(
            "**What was there is lost** wherever a sub-layer writes: before + wrote = after does not hold here, because the model has no residual connections."
        )
        return
    error, n, largest = shelf.derived(
        recording, ("conservation", stream.name), lambda: numbers.conservation(stream)
    )
    st.markdown(
        f"**Nothing is lost: before + wrote = after.** Over all {n:,} additions of this recording the largest error of any component is **{numbers.power(error, 2)}**, "
        f"the rounding of 32-bit numbers where components reach {numbers.power(largest)}."
    )


# ---- LayerNorm ----------------------------------------------------------------------------------------------------


def layer_norm(recording: Recording, stream: Stream) -> None:
    if not numbers.norms_of(stream):
        st.info(
            f"**{recording.model.name} has no LayerNorm**, so there is none to look at. “{FLOW_LABELS['Writes']}”, with the lengths of the vectors (Norm), shows what becomes of them without."
        )
        return
    names = tuple(measure.name for measure in numbers.NORMS)
    measure, log = pick("norm", names, numbers.NORMS)
    grid = shelf.derived(
        recording,
        ("norms", stream.name, measure),
        lambda: numbers.norm_grid(stream, measure),
        _weigh,
    )
    if not models.offers(recording.model.name).weights:
        not_shown(recording, "the gains and biases of its norms")
        return
    norms = passes.norms(recording, stream.name)

    def note(token: int) -> None:
        error = shelf.derived(
            recording, ("norm error", stream.name), lambda: numbers.norm_error(stream, norms)
        )
        st.markdown(
            "**LayerNorm** takes each token’s vector alone: LN(h) = (h − μ) / √(σ² + ε) · γ + β, μ and σ² over its own components, gain γ and bias β learned. "
            f"So σ is 1 before gain and bias, and what they make of it after. {WHERE[numbers.norm_place(stream)]}  \nRecomputed from everything recorded before a LayerNorm with the model’s γ and β: the largest difference to what was recorded is **{numbers.power(error, 2)}**."
        )

    token = chart(recording, stream, grid, "every token, LayerNorm by LayerNorm", log, note)
    places = {each.name: each.site for each in numbers.norms_of(stream)}
    st.subheader("One LayerNorm, step by step", anchor=False)
    site = place(places, "LayerNorm")
    name = next(name for name, each in places.items() if each == site)
    steps = numbers.stages(stream, norms, site, token)
    st.markdown(f"**{literal(stream.tokens[token])}** (token {token}) in one LayerNorm, {name}:")
    st.dataframe(steps, hide_index=True, column_config=dict.fromkeys(list(steps)[1:], THREE))
    beside_batch_norm(recording, stream, token, site, name, norms)


def place(places: dict[str, str], label: str) -> str:
    """The sub-layer or LayerNorm chosen by the reader, the first where none is."""
    sites = tuple(places.values())
    names = dict(zip(places.values(), places))
    address.one_of("block", sites)
    return st.selectbox(
        label,
        sites,
        key="block",
        format_func=lambda site: names[site][0].upper() + names[site][1:],
        persist_state="session",
        width=320,
    )


def beside_batch_norm(
    recording: Recording, stream: Stream, token: int, site: str, name: str, norms
) -> None:
    """The same sums over features and over tokens, when one token's vector is multiplied."""
    from explorer.figures.residual import bars

    st.subheader("Why not BatchNorm?", anchor=False)
    times = factor()
    found = numbers.change(stream, site, token, times, norms[site][2])
    label = stream.tokens[token]
    worst = numbers.worst_other(found.batch, token)
    st.markdown(
        f"The same recorded vectors, as they stood before this LayerNorm ({name}), normalised over features (LayerNorm: each token by itself) and over tokens (BatchNorm: each feature, this text as the batch). "
        f"Then the vector of **{literal(label)}** (token {token}) is multiplied by {times:g}, and both are done again. How far does each token’s normalised vector move?"
    )
    if worst is None:
        st.info(
            "There is one token only. Over tokens it has no spread, so BatchNorm makes every feature 0, whatever the token says; LayerNorm does not need the others."
        )
    else:
        other, moved = worst
        least = numbers.worst_other(found.layer, token)
        st.markdown(
            f"The other {len(stream.tokens) - 1} tokens: LayerNorm moves them by **{numbers.power(least[1])}**; BatchNorm moves “{literal(stream.tokens[other])}” (token {other}) by "
            f"**{moved:.3f}**, though it did not change. The changed token itself moves by {numbers.power(found.layer[token])} under LayerNorm, which forgets a vector’s length, and by {numbers.power(found.batch[token])} under BatchNorm."
        )
    about = (
        f"Moves when token {token} is multiplied by {times:g}",
        f"|y′ − y| of the normalised vectors, {name}; gain and bias left out",
        *caption_of(recording, stream, f"changed: token {token}, {label}")[::2],
    )
    st.plotly_chart(
        bars(
            (("LayerNorm", found.layer), ("BatchNorm", found.batch)),
            about,
            stream.tokens,
            "moved by",
        ),
        key="batch norm",
        config=options("norms"),
        alt=about[0],
    )
    columns = {
        "token": numbers.numbered(stream.tokens),
        "LayerNorm": found.layer,
        "BatchNorm": found.batch,
    }
    with_table(columns, about, f"headlight-{recording.model.name}-layernorm-batchnorm")


def factor() -> float:
    """By what the vector is multiplied, as the address says or the slider."""
    try:
        value = float(str(st.session_state.times))
    except ValueError:
        value = 3.0
    st.session_state.times = value if value in (0, 0.5, 1, 2, 3, 5, 10) else 3.0
    st.session_state.times = f"{st.session_state.times:g}"
    return float(
        st.select_slider(
            "Multiply the followed token’s vector by",
            ("0", "0.5", "1", "2", "3", "5", "10"),
            key="times",
            persist_state="session",
            width=420,
            help="Computed from the recorded vectors; the model does not run again.",
        )
    )


# ---- heads --------------------------------------------------------------------------------------------------------


def heads(recording: Recording, stream: Stream) -> None:
    if not models.shows_writes(recording):
        not_shown(recording, "W_O, through which a head writes")
        return
    names = tuple(measure.name for measure in numbers.HEADS)
    measure, log = pick("writer", names, numbers.HEADS)
    outputs = passes.outputs(recording)
    grid = shelf.derived(
        recording,
        ("head writes", stream.name, measure),
        lambda: numbers.head_grid(recording, stream, measure, outputs),
        _weigh,
    )

    def note(token: int) -> None:
        error = shelf.derived(
            recording,
            ("heads error", stream.name),
            lambda: numbers.heads_error(recording, stream, outputs),
        )
        st.markdown(
            f"**A head’s own write.** Head h makes z = Σ weight · v, {recording.model.d_head} numbers, and its slice of W_O, {recording.model.d_head} × {recording.model.d_model}, turns them into a vector "
            "of the stream: that vector’s length is drawn. Attention’s write is the sum of all heads’ and W_O’s bias.  \n"
            f"Summed for every token and layer of this recording, the largest difference to what attention wrote is **{numbers.power(error, 2)}**.  \n"
            "Heads can write against each other, so the lengths together are more than the length of the sum."
        )

    chart(recording, stream, grid, "every token, head by head", log, note)


# ---- gradients ----------------------------------------------------------------------------------------------------


def gradient(recording: Recording, stream: Stream) -> None:
    from explorer.figures.residual import lines

    if not models.offers(recording.model.name).weights:
        not_shown(recording, "its gradients")
        return
    st.session_state["followed"] = chosen(recording, stream)
    labels = numbers.numbered(stream.tokens)
    token = st.selectbox(
        "Token",
        range(len(labels)),
        format_func=labels.__getitem__,
        key="followed",
        on_change=take_selected,
        width=320,
    )
    if models.readout(recording.model.name) is None:
        st.info(
            f"**{recording.model.name} has no readout**: it predicts no words, so there is no output whose gradient could go back through its layers. A stack of random layers and one of its own sub-layers can be differentiated:"
        )
        deep.panel(
            recording, stream.name, caption_of(recording, stream, "")[::2], options("deep-stack")
        )
        one_jacobian(recording, stream, token)
        return
    with st.spinner("Going back through the layers …"):
        found = passes.highway(recording, stream.name, token)
    word = models.labels(recording.model.name, [found.id])[0]
    reads = recording.stream(found.output).tokens[found.token]
    st.subheader("The way back from the output", anchor=False)
    where = (
        f"token {found.token}, {reads}, of the {found.output}"
        if len(recording.streams) > 1
        else f"token {found.token}, {reads}"
    )
    st.markdown(
        f"**The output** is one number: the logit of **{literal(word)}**, the model’s top word at {literal(where)} ({found.logit[0]:.2f}). "
        "Its gradient by the state at a site says how much that number would change for a small change there; what is drawn is its length, over the vectors of all tokens together. "
        + taken(recording, stream)
    )
    total = numbers.over_tokens(found.norm)
    sites = [
        "input",
        *(
            f"{numbers.SHORT[site.rpartition('.')[2]]} {site.partition('.')[0]}"
            for site in found.sites[1:]
        ),
    ]
    about = (
        "Gradient by the state after a sub-layer",
        f"output: logit of {word} at {where}; length over all tokens",
        *caption_of(recording, stream, "")[::2],
    )
    left, right = st.columns([1.25, 1], gap="large")
    with left:
        st.plotly_chart(
            lines(
                list(zip(found.ways, total)),
                about,
                sites,
                "",
                "length of the gradient",
                log=True,
                named=True,
            ),
            key="highway",
            config=options("gradient"),
            alt=about[0],
        )
    with right:
        highway_note(found, total, recording.model.n_layer)
    columns = (
        {"state after": sites}
        | {f"{way}, all tokens": row for way, row in zip(found.ways, total)}
        | {f"{way}, token {token}": row[:, token] for way, row in zip(found.ways, found.norm)}
    )
    with_table(
        columns, about, f"headlight-{recording.model.name}-{stream.name}-gradient-token{token}"
    )
    deep.panel(
        recording, stream.name, caption_of(recording, stream, "")[::2], options("deep-stack")
    )
    one_jacobian(recording, stream, token)


def taken(recording: Recording, stream: Stream) -> str:
    """How often the output is taken, and from which model: without what, of that which the model has."""
    adds, norm = numbers.adds(stream), numbers.norm_place(stream)
    if adds and norm:
        return "The same word’s logit is taken four times: as the model is, with every residual connection taken away (what was written replaces the vector), and both without LayerNorm. The weights stay what they were learned for, which was with both."
    if adds:
        return f"The same word’s logit is taken twice: as {recording.model.name} is, which was trained without LayerNorm, and with every residual connection taken away (what was written replaces the vector)."
    return f"The same word’s logit is taken {'twice: as' if norm else 'once, as'} {recording.model.name} is, which was trained without residual connections{', and without LayerNorm' if norm else ' and without LayerNorm'}."


def highway_note(found, total, layers: int) -> None:
    """What the lines say, in numbers."""
    st.markdown(words.table(found.ways, total))
    st.markdown(words.highway(found.ways, total, layers))
    st.markdown(words.WHY)


def one_jacobian(recording: Recording, stream: Stream, token: int) -> None:
    from explorer.figures.residual import spectrum

    st.subheader(
        "One sub-layer: I + ∂f" if numbers.adds(stream) else "One sub-layer: ∂f", anchor=False
    )
    places = {each.name: each.site for each in numbers.sublayers(stream) if each.layer >= 0}
    site = place(places, "Sub-layer")
    name = next(name for name, each in places.items() if each == site)
    with st.spinner("Differentiating …"):
        found = passes.jacobian(recording, stream.name, token, site)
    d = recording.model.d_model
    both = (
        f"∂(x + f(x)) was differentiated by itself. Their difference is I: the largest entry of |∂(x + f) − ∂f − I| is **{numbers.power(found.error, 2)}**.  \n"
        if found.adds
        else "This model adds no x to it, so there is no I, and ∂f is all there is.  \n"
    )
    kept = (
        f" I + ∂f runs from {found.total[0]:.2f} to {numbers.power(found.total[-1], 2)}; there it is {numbers.below(found.total, 0.1)}."
        if found.adds
        else ""
    )
    st.markdown(
        f"At **{literal(stream.tokens[token])}** (token {token}), {name}: ∂f is how what was written changes with the token’s own vector, a {d} × {d} matrix, the other tokens held. {both}"
        f"A singular value is how much a direction is stretched. ∂f alone runs from {found.wrote[0]:.2f} down to {numbers.power(found.wrote[-1], 2)}; "
        f"{numbers.below(found.wrote, 0.1)} of {d} directions lose nine tenths or more.{kept}"
    )
    about = (
        "Singular values of ∂f and I + ∂f" if found.adds else "Singular values of ∂f",
        f"{name}, token {token}, {stream.tokens[token]}; below a millionth not drawn",
        *caption_of(recording, stream, "")[::2],
    )
    series = (
        ("∂f, what is written", found.wrote),
        *((("I + ∂f, the sum", found.total),) if found.adds else ()),
        *((("after LayerNorm", found.after),) if numbers.norm_place(stream) == "post" else ()),
    )
    st.plotly_chart(
        spectrum(series, about), key="jacobian", config=options("jacobian"), alt=about[0]
    )
    columns = {"rank": range(1, d + 1)} | dict(series)
    with_table(
        columns,
        about,
        f"headlight-{recording.model.name}-{stream.name}-jacobian-{site}-token{token}",
    )


# ---- beside an RNN ------------------------------------------------------------------------------------------------


def recurrence(recording: Recording, stream: Stream) -> None:
    st.subheader("How far back does a gradient reach in an RNN?", anchor=False)
    longest = background.longest_lag(len(stream.tokens))
    if longest < 1:
        st.info(
            f"This text has {len(stream.tokens)} tokens; distance needs at least 3. Type a longer sentence above."
        )
        return
    lag = address.whole("lag", longest + 1) or min(8, longest)
    st.session_state.lag = str(lag)
    st.markdown(
        "In an RNN a token reaches the output through every state between: its gradient is a product with one factor a step. Attention reaches any token in one step. "
        "Here three small networks of the same width learn the same task, and after every few steps of training the gradient is measured **on your text**."
    )
    if longest > 1:
        st.select_slider(
            "Learn to say the token so many back",
            [str(each) for each in range(1, longest + 1)],
            key="lag",
            persist_state="session",
            width=420,
            help="A network that is to say the token k back needs gradient over k tokens.",
        )
    lag = int(st.session_state.lag)
    running = background.decay(recording, stream.name, lag).running
    st.fragment(watch, run_every=LOOK if running else None)(
        recording.model.name, recording.text, target_of(recording), stream.name, lag, running
    )
    with st.expander("The set-up, in full"):
        st.markdown(
            "- **Networks**: an RNN (tanh), an LSTM, and a Transformer (one decoder layer of the paper: 4 heads, FFN twice as wide, add & norm, sinusoidal positions, causal mask). Each has one layer of width 32 between an embedding and a linear readout.\n"
            "- **Start**: every matrix Xavier-uniform, every bias 0 (the LSTM’s forget gate too), embeddings N(0, 1), LayerNorm’s gains 1; the same seed for each.\n"
            "- **Task**: at each place say the symbol k places back, on lists of random symbols as long as your text (at most 48). 16 symbols; chance is 1/16, a loss of ln 16 = 2.77 nats.\n"
            "- **Training**: Adam at 0.003, 300 steps of 32 lists, no clipping of gradients, no schedule; all three see the same lists in the same order.\n"
            "- **Measured**: your text’s tokens, distinct ones numbered as they appear modulo 16, are fed in. For each output t, the gradient of its largest logit by the embedding of the token d before; its length, averaged over all outputs that have one.\n"
            "- **Not tuned**: nothing was chosen to favour one. Other starts (orthogonal recurrent matrices, forget bias 1), clipping or longer training help an RNN."
        )


def watch(
    model: str, text: str, target: str | None, name: str, lag: int, was_running: bool
) -> None:
    """The experiment as far as it has come; it runs again and again while it goes on."""
    from explorer.figures.residual import lines

    recording = passes.record(model, text, target=target)
    stream = recording.stream(name)
    experiment = background.decay(recording, name, lag)
    running, found = experiment.running, experiment.latest
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if running:
            st.button("Stop", key="stop experiment", on_click=experiment.stop)
        elif not experiment.finished:
            st.button(
                "Start training" if found is None else "Go on",
                key="start experiment",
                on_click=experiment.go_on,
            )
        else:
            st.markdown(":material/check: Trained to the end.")
    if running != was_running:
        st.rerun(scope="app")
    if found is None:
        st.caption(
            "About ten seconds for a sentence on two cores."
            if not running
            else "Making the three networks …"
        )
        return
    st.progress(
        found.step / found.steps,
        text=f"Step {found.step} of {found.steps}{'' if running or experiment.finished else ', stopped'}",
    )
    networks = ("RNN", "LSTM", "Transformer")
    choices = f"task: say the token {lag} back; {found.length} tokens; width 32; seed 7"
    caption = caption_of(recording, stream, "")
    about = (
        "Gradient by distance",
        choices,
        "length of d(largest logit)/d(embedding), mean over outputs",
        caption[2],
    )
    left, right = st.columns(2, gap="large")
    now, both = list(zip(networks, found.gradient)), (found.first, found.gradient)
    with left:
        figure = lines(
            list(zip(networks, found.first)),
            ("Before any training", *about[1:]),
            range(found.length),
            "distance in tokens",
            "length of the gradient",
            log=True,
            over=both,
        )
        st.plotly_chart(
            figure,
            key="decay before",
            config=options("decay-before"),
            alt="Gradient by distance before training",
        )
    with right:
        figure = lines(
            now,
            (f"After {found.step} steps", *about[1:]),
            range(found.length),
            "distance in tokens",
            "length of the gradient",
            log=True,
            over=both,
        )
        st.plotly_chart(
            figure,
            key="decay now",
            config=options("decay"),
            alt=f"Gradient by distance after {found.step} steps",
        )
    st.markdown(words.lesson(networks, found.gradient, found.accuracy, lag))
    last = found.loss[:, -1]
    st.markdown(
        words.decay(
            networks, found.parameters, found.first, found.gradient, found.accuracy, last, lag
        )
    )
    st.caption(
        f"The gradient {lag} back: the length of d(largest logit)/d(embedding of the token {lag} before), mean over the outputs of your text. To say that token a network needs gradient there, "
        "so a peak at that distance is what learning looks like. Said right and loss are on 128 fresh random lists; chance is 6.2% and 2.77 nats."
    )
    with st.expander("Loss as it fell"):
        st.plotly_chart(
            lines(
                list(zip(networks, found.loss)),
                ("Loss on fresh lists", *about[1:2]),
                found.looks,
                "step",
                "nats",
                log=False,
            ),
            key="loss",
            config=options("loss"),
            alt="Loss by step",
        )
    columns = (
        {"distance": range(found.length)}
        | {f"{n} before": row for n, row in zip(networks, found.first)}
        | {f"{n} now": row for n, row in now}
    )
    with_table(columns, about, f"headlight-gradient-by-distance-lag{lag}")


# ---- shared -------------------------------------------------------------------------------------------------------


def not_shown(recording: Recording, what: str) -> None:
    """For a model in its own code: what it keeps to itself, and what there is to look at."""
    st.info(
        f"{literal(recording.model.name)} runs in its own code, which does not show {what}. “{FLOW_LABELS['Writes']}” works for it."
    )


def pick(
    key: str, names: tuple[str, ...], measures: tuple[numbers.Measure, ...]
) -> tuple[str, bool]:
    """Which number is drawn, and whether on a logarithmic scale, where that has a meaning."""
    address.one_of(key, names)
    meaning = "\n".join(f"- **{measure.name}**: {measure.meaning}" for measure in measures)
    name = st.segmented_control(
        "What the colour is", names, key=key, required=True, persist_state="session", help=meaning
    )
    if not next(measure for measure in measures if measure.name == name).spread:
        return name, False
    st.session_state["logarithmic"] = address.one_of("spread", numbers.TONES) == "Log"
    return name, st.toggle(
        "Logarithmic scale",
        key="logarithmic",
        on_change=take_scale,
        help="Tells small values apart where one token, often a special one, is far larger than all others.",
    )


def options(file: str) -> dict:
    return {
        "displaylogo": False,
        "toImageButtonOptions": {"format": "svg", "filename": f"headlight-{file}"},
    }


def _weigh(grid: numbers.Grid) -> int:
    return grid.values.nbytes + 10_000


def target_of(recording: Recording) -> str | None:
    """What the decoder was given to read, None for what the model says itself or for a model of one text."""
    return onscreen.typed_target(recording.model.name)


def take_token() -> None:
    asked = st.session_state["map"].get("token")
    st.session_state.token = "" if asked is None else str(int(asked))


def take_scale() -> None:
    st.session_state.spread = "Log" if st.session_state["logarithmic"] else "Linear"


def take_selected() -> None:
    st.session_state.token = str(st.session_state["followed"])


def ignore() -> None:
    """The line is only looked at."""


def take_stream() -> None:
    st.session_state.stream = st.session_state["stream shown"]
    st.session_state.token = ""


address.one_of("flow", FLOWS)
with st.spinner("Loading the model …"):
    wanted = onscreen.typed_target(st.session_state.model)
    shown = onscreen.shown(target=wanted)
onscreen.tell_target(wanted)
explore(shown.model, st.session_state.text, wanted)
