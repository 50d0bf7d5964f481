"""An FFN opened: its neurons by what they add to the word's logit, what one of them says of other
words, and when it fires."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import logit_lens
from explorer.analysis.caption import caption
from explorer.analysis.formatting import fixed, signed
from explorer.components import bars, token_strip
from explorer.layout import export_menu
from explorer.layout.output import with_table
from explorer.state import cache, models, url_state
from explorer.text.logit_lens import HELP, NEURONS_OWN_CODE, ffn, how, neuron, when
from explorer.views.predictions.logit_lens import LensSelection
from explorer.views.predictions.page_state import nothing
from models.results import Attribution, Neurons


def show(on: LensSelection, taken: Attribution, words: tuple[str, str]) -> None:
    """The neurons of one FFN in the logit that was taken apart; words: as `parts.words_of`."""
    if not logit_lens.ffns(taken):
        return
    st.subheader("What did its neurons say?", anchor=False, help=HELP)
    if not models.capabilities(on.model).weights:
        st.info(NEURONS_OWN_CODE.format(models.markdown_name(on.model)))
        return
    layer = chosen_layer(taken)
    try:
        of = cache.neurons(
            on.recording, on.stream.name, layer, (taken.token, taken.id, taken.against)
        )
    except ValueError as why:
        st.info(f"The neurons of this FFN cannot be shown: {why}.")
        return
    token = on.stream.tokens[taken.token]
    shows = models.capabilities(on.model)
    st.markdown(ffn(of, logit_lens.neuron_totals(of), words, token, shows.ffn_biases))
    rank = logit_lens.neuron_rank(of, url_state.whole_number("neuron", len(of.adds)))
    left, right = st.columns(2, gap="large")
    with left:
        listed(on, of, rank)
    with right:
        opened(on, of, rank)
    st.markdown(how(shows.gate, shows.ffn_biases))
    asked = f"{on.stream.name!r}, {layer}, {taken.token}, {taken.id}, {taken.against}"
    export_menu.offer_more_code(
        ("logit_lens",),
        f"opened = model.neurons(recording, {asked})",
        "neurons = logit_lens.neuron_file(opened)",
    )
    word = f"“{words[0]}”" + (f" less that of “{words[1]}”" if words[1] else "")
    with_table(
        partial(logit_lens.neuron_file, of),
        caption(
            on.recording,
            f"neurons of the FFN of layer {layer} in the logit of {word} at token {of.token}, "
            f"“{token}”",
        ),
        f"headlight-{on.model}-neurons",
        f"All {len(of.adds):,} neurons as a table",
        form="%.6f",
    )


def chosen_layer(taken: Attribution) -> int:
    """The layer of the address, else the one whose FFN put in most; with the field that chooses."""
    parts = logit_lens.ffns(taken)
    chosen = url_state.whole_number("ffn", max(parts) + 1)
    layer = chosen if chosen in parts else logit_lens.strongest_ffn(taken)
    st.session_state["ffn field"] = layer
    st.selectbox(
        "FFN of layer",
        list(parts),
        key="ffn field",
        format_func=lambda each: f"Layer {each}: {signed(parts[each].value, 3)}",
        on_change=take_layer,
        width=260,
        help="What the FFN of each layer put into the logit. An FFN’s bar above opens it too.",
    )
    return layer


def take_layer() -> None:
    """Another FFN: its strongest neuron is opened."""
    state = st.session_state
    state.ffn, state.neuron = str(state["ffn field"]), ""


def listed(on: LensSelection, of: Neurons, rank: int) -> None:
    """The strongest neurons as bars, all others as one, and the bias."""
    rows = [
        bars.Bar(
            f"neuron {unit}",
            float(of.adds[unit]),
            (fixed(float(of.activation[unit]), 3), signed(float(of.adds[unit]), 3)),
            str(unit),
        )
        for unit in of.strongest[: logit_lens.MOST_BARS].tolist()
    ]
    n, rest = logit_lens.hidden_neurons(of)
    if n:
        rows.append(bars.Bar(f"{n:,} weaker ones", rest, ("", signed(rest, 3)), tone="rest"))
    if models.capabilities(on.model).ffn_biases:
        rows.append(bars.Bar("bias b₂", of.bias, ("", signed(of.bias, 3))))
    st.markdown("**The strongest neurons.** Choose one to see what it says.")
    chosen = str(of.strongest[rank])
    data = bars.payload(
        rows,
        ("activation", "adds"),
        about="Neurons of the FFN by what they add to the logit, the strongest first.",
        token=name_of(on, of, "neurons", chosen),
        chosen=chosen,
        action="opens the neuron",
        signed=True,
    )
    bars.show(data, "neurons", on_choice=take_neuron)


def take_neuron() -> None:
    """A click on a neuron's bar opens it."""
    st.session_state.neuron = st.session_state.neurons.get("row") or ""


def opened(on: LensSelection, of: Neurons, rank: int) -> None:
    """What one neuron does to all words' logits, and when it fires."""
    st.markdown(neuron(of, rank))
    ids = [*of.up_ids[rank].tolist(), *of.down_ids[rank].tolist()[::-1]]
    values = [*of.up[rank].tolist(), *of.down[rank].tolist()[::-1]]
    marks = {of.id: "the word", of.against: "compared"}
    rows = [
        bars.Bar(
            label,
            value,
            (signed(value, 3),),
            mark=marks.get(id, ""),
            gap=at == len(of.up_ids[rank]),
        )
        for at, (id, label, value) in enumerate(zip(ids, models.labels(on.model, ids), values))
    ]
    data = bars.payload(
        rows,
        ("logit",),
        about="The words whose logits this neuron raises most here, and those it lowers most.",
        token=name_of(on, of, "neuron words", rank),
        signed=True,
    )
    st.caption("The words it raises most here, and those it lowers most:")
    bars.show(data, "neuron words", on_choice=nothing)
    fires = logit_lens.firing_tokens(of, rank)
    tokens = [
        token_strip.Token(label, fixed(float(value), 2), "said" if on_it else "")
        for label, value, on_it in zip(on.stream.tokens, of.fires[rank], fires)
    ]
    st.caption("When it fires, its activation under every token:")
    token_strip.show(
        token_strip.payload(
            tokens,
            about="The text, with this neuron’s activation at every token.",
            says=when(of, rank, fires, on.stream.tokens),
            token=name_of(on, of, "neuron fires", rank),
            chosen=of.token,
        ),
        "neuron fires",
        on_choice=nothing,
        on_tick=nothing,
    )


def name_of(on: LensSelection, of: Neurons, *what: object) -> str:
    """The name of a picture of this FFN."""
    return cache.picture_name(on.recording, of.layer, of.token, of.id, of.against, *what)
