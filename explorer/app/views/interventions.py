"""Take out: experiments, edits that are added and removed, and what they change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import terminology
from explorer.analysis.residual import norm_place
from explorer.analysis.terminology import (
    ABLATIONS,
    FFN,
    PARALLEL_FFN,
    SCALE,
    LayerSwitch,
    edits_without,
)
from explorer.analysis.words import described, hidden_word, named_edits
from explorer.app import mounts
from explorer.app.layout import current_recording, navigation, output, selection_bar, tab
from explorer.app.layout.controls import bind, pick, pick_attention, pick_stream
from explorer.app.state import event_log, jobs, url_state
from explorer.app.state.jobs import Job, SweepProgress
from explorer.app.state.visit import visit
from explorer.panels import interventions
from explorer.panels.choice import Choice, arguments_of
from explorer.panels.interventions import (
    Edits,
    PatchRequest,
    PatchResults,
    can_follow,
    scales_scores,
)
from explorer.panels.selection import select
from explorer.screens.screen import Screen
from explorer.screens.subjects import followed_edits, left_out_note
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models import model_names
from models.contract.edits import (
    NORMS,
    Ablation,
    HideWord,
    MoveNorm,
    OtherNorm,
    PatchHead,
    SharedKeys,
    SideBySide,
    UniformHead,
    Window,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    groups_of,
    to_line,
)
from models.contract.recording import Attention, Recording
from models.example_texts import OPENING_TEXT
from models.own import model_card
from models.runtime.caching import loaded
from models.runtime.run import Run

WORDS = sentences("interventions", "tab")

# ---- edit form -----------------------------------------------------------------------

MAX_CHIPS = 16
POSITIONS = {
    "none": "none",
    "shuffled": "shuffled",
    "shifted": "shifted",
    "sinusoids": "sinusoids (original paper)",
    "random": "random vectors",
    "rotary": "rotary (RoPE)",
    "distance": "distance penalty (ALiBi)",
}
SUBLAYERS = {"attn": "attention", "cross": "cross-attention", "ffn": "FFN"}


@dataclass(frozen=True, eq=False)
class Edited:
    """A run under edits, the run as trained, the attention, head and token on screen, and the head
    that an experiment ablates. It is made anew in every run and nowhere kept."""

    run: Run
    plain: Recording
    attention: Attention
    at: tuple[int, int]
    token: int
    first: tuple[int, int]
    only: int | None

    @property
    def edits(self) -> Edits:
        """The edits of the run."""
        return self.run.edits

    @property
    def experiments(self) -> dict[str, Edits]:
        """The named experiments on the model, one of them on a head."""
        return interventions.named_experiments(self.plain, *self.first, self.attention.name)


def put(edits: Edits) -> None:
    """Make these the edits of the address."""
    st.session_state.edits = to_line(terminology.sorted_edits(edits))


def from_address(plain: Recording) -> Edits:
    """The edits of the address that this model and text can follow; a warning names the others."""
    edits, left_out = followed_edits(plain, str(st.session_state.edits))
    if left_out:
        st.warning(literal(left_out_note(left_out)))
    return edits


def edit_controls(on: Edited) -> None:
    """The form that adds an edit, the experiments, and the edits as chips, each removed by a
    press."""
    named, parts, state = on.experiments, offered(on.plain), st.session_state
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if parts:
            with st.popover(
                "Add an edit",
                icon=":material/add:",
                width="content",
                key="edit_form",
                on_change="rerun",  # so that it can be closed
            ):
                _form(on, parts)
        if named:
            visit.experiment = next(
                (name for name, edits in named.items() if set(edits) == set(on.edits)), None
            )
            st.selectbox(
                "Experiments",
                list(named),
                key="experiment",
                index=None,
                placeholder="Choose an experiment",
                on_change=_take_experiment,
                args=(named,),
                label_visibility="collapsed",
                width=260,
            )
        if state.edits:
            _chips(on)
    if not url_state.fits_address(state.edits):
        st.caption(WORDS("fits_no_link"))


def _take_experiment(named: Mapping[str, Edits]) -> None:
    put(named.get(visit.experiment or "", ()))


def _chips(on: Edited) -> None:
    """The edits, many of them in one line."""
    if len(on.edits) > MAX_CHIPS:
        st.markdown(f"**Edited:** {literal(described(on.plain, on.edits))}", width="content")
    elif on.edits:
        named = named_edits(on.plain, on.edits)
        names = [f"{literal(name)} ✕" for name, _ in named]
        visit.edit_chips = list(range(len(names)))
        st.pills(
            "Edits; press one to remove it",
            range(len(names)),
            selection_mode="multi",
            key="edit_chips",
            wrap=True,
            format_func=names.__getitem__,
            on_change=_take_chips,
            args=([edits for _, edits in named],),
            label_visibility="collapsed",
        )
    st.button("Undo all edits", type="tertiary", on_click=put, args=((),))


def _take_chips(chips: Sequence[Edits]) -> None:
    put(tuple(edit for at, edits in enumerate(chips) if at in visit.edit_chips for edit in edits))


# ---- the form ------------------------------------------------------------------------------------


def _form(on: Edited, parts: Mapping[str, Callable[[Edited], Edits]]) -> None:
    """Show the form of an edit: the part of the model, the edit, and the button that adds it."""
    part = st.selectbox("Part of the model", list(parts), key="edit part")
    edits = parts[part](on)
    st.button(
        "Add",
        key="add",
        type="primary",
        on_click=_add,
        args=(edits,),
        disabled=set(edits) == set(on.edits),
        help=WORDS("form"),
    )


def _add(edits: Edits) -> None:
    put(edits)
    visit.edit_form = False


def offered(plain: Recording) -> dict[str, Callable[[Edited], Edits]]:
    """The parts that this model lets one edit, each with its fields, which return all edits."""
    shows, kind = loaded(plain).capabilities, plain.model.kind
    lacks = str(model_card.facts(plain.model.name).get("without", ""))
    heads, has_norms = plain.model.n_head, norm_place(plain.streams[0]) is not None
    parts: dict[str, tuple[bool, tuple[type, ...], Callable[[Edited], Edits]]] = {
        "Attention head": (True, tuple(ABLATIONS.values()), _heads),
        "Word": (bool(interventions.words_to_take_out(plain)), (HideWord,), _word),
        "Positions": (True, terminology.POSITIONS, _positions),
        "Scale of the scores": (scales_scores(plain), (WithoutScale,), _scale),
        "Residual connection": (lacks != "residual", (WithoutResidual,), _residual),
        "Norm": (has_norms, (WithoutNorm, MoveNorm, OtherNorm), _norm),
        "Feed-forward network": (True, (WithoutFeedForward, SideBySide), _ffn),
        "Causal mask": (True, (WithMask if kind == "encoder" else WithoutMask,), _mask),
        "Sliding window": (True, (Window,), _window),
        "Key/value heads": (1 < heads == (shows.key_heads or heads), (SharedKeys,), _keys),
    }
    return {
        name: fields
        for name, (has, kinds, fields) in parts.items()
        if has and can_follow(plain, *kinds)
    }


def _layer(on: Edited) -> int | None:
    """The layer that the reader chose, None for all."""
    value = "all" if on.only is None else str(on.only)
    options = ["all", *map(str, range(on.plain.model.n_layer))]
    of_address = lambda layer: layer.replace("all", "")
    st.selectbox("Layer", options, **bind("only", "edited layer", value, of_address))
    return on.only


def _heads(on: Edited) -> Edits:
    """Heads zero-ablated, mean-ablated, or with uniform attention."""
    how = pick(
        "Ablation",
        tuple(ABLATIONS),
        "brush",
        help=WORDS("ablation"),
    )
    size, name = on.attention.pattern.shape, on.attention.name
    wanted = []
    for label, n, at in zip(("Layer", "Head"), size, on.at):
        options = ["all", *map(str, range(n))]
        chosen = st.selectbox(label, options, index=int(at) + 1, key=f"ablated {label} {name} {at}")
        wanted.append(range(n) if chosen == "all" else [int(chosen)])
    heads = [(layer, head) for layer in wanted[0] for head in wanted[1]]
    rest = tuple(
        edit
        for edit in on.edits
        if not isinstance(edit, (Ablation, PatchHead))
        or edit.attention != name
        or (edit.layer, edit.head) not in heads
    )
    return (*rest, *(ABLATIONS[how](*head, name) for head in heads))


def _word(on: Edited) -> Edits:
    """A word taken out, which no other token reads."""
    places = interventions.words_to_take_out(on.plain)
    place = st.selectbox(
        "Word", list(places), key="word out", format_func=places.__getitem__, help=WORDS("word_out")
    )
    taken = hidden_word(on.plain, int(place))
    return (*(edit for edit in on.edits if edit not in taken), *taken)


def _positions(on: Edited) -> Edits:
    """Other positions than the model's own."""
    own = on.run.loaded.capabilities.positions
    lacks = model_card.facts(on.run.model).get("without") == "positions"
    options = [
        each
        for each in POSITIONS
        if (each, own) != ("rotary", "rotary") and (each, lacks) != ("none", True)
    ]
    to = st.selectbox("Positions", options, key="positions of", format_func=POSITIONS.__getitem__)
    by = 0
    if to in ("shuffled", "shifted"):
        longest = max(len(stream.tokens) for stream in on.plain.streams)
        most = 9999 if to == "shuffled" else max(1, on.plain.model.n_positions - longest)
        label = "Shuffle seed" if to == "shuffled" else "Shift, positions"
        by = int(st.number_input(label, 0 if to == "shuffled" else 1, most, step=1))
    return terminology.set_positions(on.edits, to, by)


def _put_layered(on: Edited, switch: LayerSwitch, only: int | None, value: object) -> Edits:
    return switch.put(on.edits, on.plain.model.n_layer, only, value)


def _scale(on: Edited) -> Edits:
    """Scores divided by another number than √d_head."""
    own = on.plain.model.d_head
    divisor = st.number_input(
        "Scores are divided by",
        0.001,
        1000.0,
        1.0,
        step=0.5,
        format="%.3g",
        key="divisor",
        help=WORDS("scale", own=own, root=own**0.5),
    )
    return _put_layered(on, SCALE, _layer(on), float(divisor))


def _residual(on: Edited) -> Edits:
    """Sub-layers whose output replaces the stream."""
    sites = on.plain.streams[-1].sites
    places = [each for each in SUBLAYERS if f"0.{each}.wrote" in sites]
    options = ["all", *places] if len(places) > 1 else ["all"]
    around = st.selectbox(
        "Remove it around",
        options,
        key="residual around",
        format_func=lambda at: SUBLAYERS.get(at, at),
    )
    only, switch = _layer(on), terminology.residual_switch(places)
    now = switch.values(on.edits, on.plain.model.n_layer)[only or 0]
    layers = [each for each in now if around not in ("all", each)]
    return _put_layered(on, switch, only, layers)


def _norm(on: Edited) -> Edits:
    """Norms removed, placed elsewhere, or of the other kind."""
    place = norm_place(on.plain.streams[0]) or "none"
    kind = "rms" if on.run.loaded.capabilities.rms else "layer"
    other = "layer" if kind == "rms" else "rms"
    changes = {
        "none": "removed",
        "pre": "before each sub-layer (pre-LN)",
        "post": "after each sum (post-LN)",
        "kind": f"{NORMS[other]} instead of {NORMS[kind]}",
    }
    changes.pop(place)
    to = st.selectbox(NORMS[kind], list(changes), key="norm to", format_func=changes.__getitem__)
    if to == "kind":
        return _put_layered(on, terminology.norm_kind_switch(kind), _layer(on), other)
    return _put_layered(on, terminology.norm_place_switch(place), _layer(on), to)


def _ffn(on: Edited) -> Edits:
    """Feed-forward networks removed, or beside attention."""
    changes = {"none": "removed", "parallel": "parallel to attention"}
    if on.run.loaded.capabilities.parallel:
        del changes["parallel"]
    to = st.selectbox(
        "Feed-forward network",
        list(changes),
        key="ffn to",
        format_func=changes.__getitem__,
        help=WORDS("parallel"),
    )
    if to == "none":
        return _put_layered(on, FFN, _layer(on), False)
    return _put_layered(on, PARALLEL_FFN, _layer(on), True)


def _mask(on: Edited) -> Edits:
    """The causal mask of a decoder removed, or one added to an encoder."""
    kinds: dict[str, type] = {"removed": WithoutMask, "added to the encoder": WithMask}
    if on.plain.model.kind == "encoder":
        del kinds["removed"]
    elif on.plain.model.kind == "decoder":
        del kinds["added to the encoder"]
    to = st.selectbox("Causal mask", list(kinds), key="mask to")
    return (*edits_without(on.edits, kinds[to]), kinds[to]())


def _window(on: Edited) -> Edits:
    """A window of so many tokens."""
    size = st.number_input(
        "Tokens in the window",
        1,
        on.plain.model.n_positions,
        min(4, on.plain.model.n_positions),
        step=1,
        key="window",
        help=WORDS("window"),
    )
    return (*edits_without(on.edits, Window), Window(int(size)))


def _keys(on: Edited) -> Edits:
    """Heads that share keys and values."""
    options = groups_of(on.plain.model.n_head)[:-1]
    groups = st.select_slider(
        "Number of key/value heads",
        options,
        key="shared keys",
        help=WORDS("key_heads"),
    )
    return (*edits_without(on.edits, SharedKeys), SharedKeys(int(groups)))


# ---- patching ------------------------------------------------------------------------

AT_ONCE = 2e10  # parameters times tokens read, of a sweep that is made without being asked for
LOOK = 0.7  # seconds between two looks at a sweep that runs
PATCHED = "patched map"


def name_edits(run: Run, bar: DeltaGenerator) -> None:
    """Have the whole page drawn where edits were added: its frame names them."""
    if st.session_state.edits != visit.edits_in_frame:
        st.rerun(scope="app")


def select_compared(shown: Screen) -> None:
    """The menu of the token whose prediction is compared."""
    selection_bar.show_word(shown.run.recording().streams[-1], shown.chosen["token"])


def sweeping(shown: Screen) -> bool:
    """The sweep of a large model, which is made step by step, until every patch is measured; that
    of a small one is made at once."""
    try:
        request = _request(shown)
    except ValueError:  # which the panel says
        return False
    if interventions.sweep_cost(request) <= AT_ONCE:
        return False
    run, job = shown.run, _job(request)
    if job.finished and not job.latest.error:
        interventions.sweep(request, _patches(job.latest))
        return False
    event_log.fragment(_watch, run_every=LOOK if job.running else None)(run, request, job.running)
    return True


def _request(shown: Screen) -> PatchRequest:
    """The sweep of a tab's choices."""
    chosen = arguments_of(interventions.patch_request, shown.chosen)
    return interventions.patch_request(shown.run, **chosen)


def _job(request: PatchRequest) -> Job:
    return jobs.patch_sweep(request.run.recording(), request.unit, *request.arguments)


def _patches(results: SweepProgress) -> PatchResults:
    return PatchResults(results.clean, results.donor, results.effects)


def _watch(run: Run, request: PatchRequest, was_running: bool) -> None:
    """The sweep as far as it has come; it runs again and again while it goes on."""
    job = _job(request)
    running, results = job.running, job.latest
    _buttons(job, running)
    if running != was_running:
        st.rerun(scope="app")
    if results is None:
        st.caption(WORDS("running") if running else WORDS("each_patch"))
        return
    if results.error:
        st.info(WORDS("not_patched", why=literal(results.error)))
        return
    _progress(results, running)
    panel = interventions.patch_panel(request, _patches(results))
    drawn = replace(panel, token=f"{hash(request)} {len(results.effects)}")
    mounts.panel(drawn.encode(), PATCHED, lambda: None)
    _offer_patch(run, request, _patches(results), None)


def _progress(results: SweepProgress, running: bool) -> None:
    done = f"{len(results.effects):,} of {results.places:,} patches" + ", stopped" * (not running)
    st.progress(len(results.effects) / max(1, results.places), text=done)


def _buttons(job: Job, running: bool) -> None:
    """Start, stop and go on."""
    if running:
        st.button("Stop", key="stop sweep", on_click=job.stop)
    elif not job.finished:
        label = "Run all patches" if job.latest is None else "Continue"
        st.button(label, key="start sweep", type="primary", on_click=job.resume)


def _offer_patch(
    run: Run, request: PatchRequest, results: PatchResults, cell: tuple[int, int] | None
) -> None:
    """The button that makes the framed patch one of the edits: that of a cell, where there is none
    that of the largest effect."""
    effects = interventions.effect_map(request, results)
    if cell is None or not interventions.is_measured(effects, cell):
        cell = interventions.strongest(request, effects)
    if cell is None:
        return
    edit, place = interventions.patch_of(request, effects, cell)
    pressed = st.button(
        "Add this patch to the edits",
        key="put patch",
        on_click=put,
        args=((*run.edits, edit),),
        disabled=edit in run.edits,
        help=literal(WORDS("opens_edit", place=place)),
    )
    if pressed:
        navigation.go("edit")


def offer_patch(shown: Screen) -> None:
    """The button for the framed patch; where there is no second sentence, to a text with one."""
    try:
        request = _request(shown)
    except ValueError:
        take = current_recording.take_text
        label = sentences("interventions", "patches")("works")
        st.button(label, key="works", type="primary", on_click=take, args=(OPENING_TEXT,))
        return
    _offer_patch(shown.run, request, interventions.sweep(request), shown.chosen["cell"])


tab.view(
    "patching",
    tab.Hand(top=name_edits, select=select_compared, instead=sweeping, below=offer_patch),
)

VIEWS = {
    "Attention": "Attention of the head",
    "Vectors": "Residual stream",
    "Trained without": "Trained without a part",
}


def layers_of(run: Run, chosen: Mapping[str, Any]) -> range:
    """The layers of a run's model."""
    return range(run.recording().model.n_layer)


@tab.by_hand("edit")
@current_recording.tab(current_recording.only_text)
def edit_model(
    run: Run,
    effects: Annotated[str, Choice(VIEWS, "View")] = "Attention",
    only: Annotated[int | None, Choice(layers_of, help="the layer that the form edits")] = None,
    brush: Annotated[str, Choice(tuple(ABLATIONS), "Ablation")] = "zero",
) -> None:
    """Edits, on the tab Take out. effects: what is shown below the prediction. only: the layer that
    the form edits, None for all. brush: how it ablates a head."""
    state = st.session_state
    if state.edits != visit.edits_in_frame:
        st.rerun(scope="app")  # the frame names the edits
    selection_bar.take()
    plain = run.recording()
    edits = from_address(plain)
    first = url_state.values(interventions.experiments, run)
    attention = select(run, attention=first["attention"]).attention
    pick_attention(plain, first["attention"])
    run = run.under(edits)
    of_edits = url_state.values(interventions.effect, run)
    at, of_first = ((each["layer"], each["head"]) for each in (of_edits, first))
    on = Edited(run, plain, attention, at, of_edits["token"], of_first, only)
    lead = tab.lead_room()
    edit_controls(on)
    output_side = plain.streams[-1]
    words = selection_bar.Words(output_side.tokens, on.token, roles=output_side.roles)
    n_layers, n_heads = attention.pattern.shape[:2]
    can_mask = interventions.can_mask(run, {"token": on.token})
    menu = partial(_view_menu, on)
    selection_bar.show(words, (n_layers, n_heads), at, menu if can_mask else None)
    _show_effect(on, lead)
    pick("View", VIEWS, "effects", bare=True)
    if effects == "Attention":
        head = {"layer": at[0], "head": at[1], "attention": attention.name}
        tab.show(interventions.head_attention, run, head)
    elif effects == "Vectors":
        chosen = url_state.values(interventions.residual_stream, run, {"token": on.token})
        pick_stream([each.name for each in plain.streams], chosen["stream"])
        tab.show(interventions.residual_stream, run, chosen)
    else:
        _trained_without(on)
    if edits:
        output.offer_recording(run)


def _show_effect(on: Edited, lead: DeltaGenerator) -> None:
    """Show what the edits change where there are some or the text is long; else what is left of the
    answer without each word, and the experiments. The first of these is the headline, in `lead`."""
    is_edited = on.run.edits or len(on.plain.streams[0].tokens) > interventions.MAX_TOKENS
    panel, at = interventions.experiments, on.first
    if is_edited:
        panel, at = interventions.effect, on.at
    chosen = {"token": on.token, "attention": on.attention.name, "layer": at[0], "head": at[1]}
    shown: list[tuple[Callable[..., Any], dict[str, Any]]] = []
    if is_edited or on.experiments:
        shown.append((panel, url_state.values(panel, on.run, chosen)))
    of_words = url_state.values(interventions.words_out, on.run, {"token": on.token})
    is_plain = not edits_without(on.edits, HideWord)
    if is_plain and interventions.can_take_out(interventions.pair(on.run, **of_words)):
        shown.insert(len(shown) if is_edited else 0, (interventions.words_out, of_words))
    for place, (each, its) in enumerate(shown):
        with st.container() if place else lead:
            tab.show(each, on.run, its)
    title = literal(model_names.title(on.run.model))
    if not interventions.can_follow(on.plain, MoveNorm, WithoutFeedForward):
        st.caption(WORDS("edits_of_own_code", model=title))
    if not interventions.can_follow(on.plain, ZeroHead, UniformHead):
        st.caption(WORDS("heads_of_own_code", model=title))


def _view_menu(on: Edited) -> None:
    tab.choose(interventions.effect, on.run, {"token": on.token})


# ---- models that were trained without a part -----------------------------------------------------


def _trained_without(on: Edited) -> None:
    """The models of one family, and the way to each of them."""
    panel, families = interventions.trained_without, interventions.families()
    if not families:
        st.info(WORDS("no_family"))
        return
    chosen = tab.choose(panel, on.run, {})
    tab.show(panel, on.run, chosen)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for of in families[interventions.family_of(on.run.model, chosen["full"])]:
            edits = interventions.ABLATION_EDITS.get(of.without, ())
            pressed = _open(f"Without {of.without}: trained so", of.name, (), on)
            if edits:
                pressed |= _open(f"{of.without} ablated", of.full, edits, on)
            if pressed:
                st.rerun(scope="app")  # the sentence bar above names the model


def _open(label: str, model: str, edits: interventions.Edits, on: Edited) -> bool:
    """A button that opens a model under edits."""
    return st.button(
        label,
        key=f"open {model} {edits}",
        on_click=_open_model,
        args=(model, edits),
        disabled=(model, edits) == (on.run.model, on.run.edits),
        help=f"Open {model}" + " with this edit" * bool(edits),
    )


def _open_model(name: str, edits: interventions.Edits) -> None:
    """That model, under these edits."""
    state = st.session_state
    visit.model, visit.acted = name, True
    state.token = state.layer = state.head = state.attention = state.only = ""
    put(edits)
