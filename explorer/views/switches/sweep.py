"""A sweep of patches as far as it has come: its map, and its strongest patch in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from explorer.analysis import patching as numbers
from explorer.analysis import paths
from explorer.analysis.numbers import fixed
from explorer.components import residual as maps
from explorer.components.picture import Picture
from explorer.frame import export
from explorer.frame.table import with_table
from explorer.memory import background, models, passes, shelf
from explorer.memory.background import Experiment, Swept
from explorer.sentences import names
from explorer.sentences import switches as sentences
from explorer.sentences.escape import literal
from explorer.views.switches.runs import told
from explorer.views.switches.write import put
from models.edits import Edit, PatchHead, PatchSite
from models.recording import Recording
from models.written_edits import to_line


@dataclass(frozen=True)
class Question:
    """What a sweep measures: the run that is patched (model, text, edits), what is put in ("Heads"
    of the attention `name`, or "Sites" of the stream `name`) from the run of the `donor`, and
    logit(word) - logit(against) at a token that is read off."""

    model: str
    text: str
    edits: tuple[Edit, ...]
    what: str
    donor: str
    name: str
    token: int
    word: int
    against: int

    def base(self) -> Recording:
        """The run that is patched, from the shelf."""
        return passes.record(self.model, self.text, self.edits)

    def sweep(self) -> Experiment:
        """The sweep, not begun or as far as anyone has taken it."""
        asked = self.what, self.donor, self.name, self.token, self.word, self.against
        return background.sweep(self.base(), *asked)


def watch(asked: Question, edits: tuple[Edit, ...], was_running: bool) -> None:
    """The sweep as far as it has come; it runs again and again while it goes on. `edits`: those of
    the page, which a patch is put to."""
    sweep = asked.sweep()
    running, found = sweep.running, sweep.latest
    buttons(sweep, running)
    if running != was_running:
        st.rerun(scope="app")
    if found is None:
        st.caption(
            "Running both sentences …" if running else "Each patch is one pass of the model."
        )
        return
    if found.error:
        st.info(f"This cannot be patched: {literal(found.error)}.")
        return
    done = f"{len(found.effects):,} of {found.places:,} patches"
    stopped = "" if running or sweep.finished else ", stopped"
    st.progress(len(found.effects) / max(1, found.places), text=done + stopped)
    effects = effects_of(asked, found)
    title, about, file = chart(asked, effects, found)
    st.caption(
        f"Logit difference {fixed(found.clean)} in this run, {fixed(found.donor)} in the other. "
        + sentences.scale(effects.normalised)
    )
    read = None if asked.what == "Heads" else asked.token
    cell = numbers.strongest(effects, read, st.session_state.get("patch row"))
    if cell is not None:
        strongest(asked, edits, effects, cell)
    with_table(
        numbers.map_columns(named(effects)), (title, *about), file, "Every effect as a table"
    )


def buttons(sweep: Experiment, running: bool) -> None:
    """Start, stop and go on."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if running:
            st.button("Stop", key="stop sweep", on_click=sweep.stop)
        elif sweep.finished:
            st.markdown(":material/check: All patched.")
        else:
            label = "Patch them all" if sweep.latest is None else "Go on"
            st.button(label, key="start sweep", on_click=sweep.go_on)


def effects_of(asked: Question, found: Swept) -> numbers.Map:
    """What was measured so far, as a map."""
    base = asked.base()
    ends = found.clean, found.donor
    if asked.what == "Heads":
        size = base.model.n_layer, base.model.n_head
        return numbers.effects_by_head(found.effects, size, *ends)
    stream = base.stream(asked.name)
    states = tuple(paths.states(stream).values())
    return numbers.effects_by_site(found.effects, stream.tokens, states, *ends)


def numbers_of(asked: Question) -> None:
    """The lines of Python that make all patches and give what they do."""
    base, heads = asked.base(), asked.what == "Heads"
    sweep = "sweep_heads" if heads else "sweep_sites"
    given = asked.donor, asked.name, asked.token, asked.word, asked.against
    edits = f", from_line({to_line(asked.edits)!r})" if asked.edits else ""
    ends = "found.clean, found.donor)"
    if heads:
        size = base.model.n_layer, base.model.n_head
        made = f"effects = patching.effects_by_head(effects, {size}, {ends}"
    else:
        made = (
            f"stream = recording.stream({asked.name!r})\n"
            "states = tuple(paths.states(stream).values())\n"
            f"effects = patching.effects_by_site(effects, stream.tokens, states, {ends}"
        )
    export.numbers(
        "every patch",
        (passes.Shown(asked.model, asked.text, asked.edits),),
        ("explorer.analysis import patching, paths", "explorer.views.switches.sweep import named"),
        (
            f"found = library.{sweep}(model, {asked.text!r}, {', '.join(map(repr, given))}{edits})",
            "effects = [(each.place, each.value) for each in found.effects]",
            made,
            "table = patching.map_columns(named(effects))",
        ),
    )


def named(effects: numbers.Map) -> numbers.Map:
    """The map with its columns in words."""
    columns = tuple(replace(one, name=names.site(one.name)) for one in effects.columns)
    return replace(effects, columns=columns)


def chart(asked: Question, effects: numbers.Map, found: Swept) -> tuple[str, tuple[str, ...], str]:
    """The map. Returns its title, the lines below it, and the name of its file."""
    base, heads = asked.base(), asked.what == "Heads"
    one, other = models.labels(asked.model, (asked.word, asked.against))
    what = f"heads, {asked.name}-attention" if heads else f"states, {asked.name} stream"
    title = f"{effects.measure.name} of patching {what}"
    about = (
        *told(
            base,
            f"{effects.measure.meaning}. Logit of {one} − logit of {other} at token {asked.token}: "
            f"{found.clean:.3f} as it is, {found.donor:.3f} in the other run",
        ),
        "Other sentence: " + " ".join(asked.donor.split()),
    )
    file = f"headlight-{asked.model}-patching-{asked.what.lower()}"
    special = (False,) * len(effects.rows) if heads else base.stream(asked.name).special
    picture = Picture(title, about, file, shelf.name_of(base, "patched", asked, len(found.effects)))
    hint = "click a row for its strongest patch."
    data = maps.chart(named(effects), effects.rows, special, picture, hint=hint)
    maps.show(data, "patched map", take_row)
    return title, about, file


def strongest(
    asked: Question, edits: tuple[Edit, ...], effects: numbers.Map, cell: tuple[int, int]
) -> None:
    """The strongest patch in words, with the way to make it one of the edits."""
    row, column = cell
    if asked.what == "Heads":
        edit: Edit = PatchHead(asked.donor, row, column, asked.name)
        place, aside = f"head {column} of layer {row}", ""
    else:
        site = effects.columns[column].name
        edit = PatchSite(asked.donor, site, row, asked.name)
        place = f"{names.site(site)} at “{effects.rows[row]}” (token {row})"
        aside = " apart from the token that is read"
    does = sentences.effect(float(effects.values[cell]), effects.normalised)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"**Strongest{aside}: {literal(place)}** {literal(does)}.")
        pressed = st.button(
            "Make it a switch",
            key="put patch",
            on_click=put,
            args=((*edits, edit),),
            disabled=edit in edits,
            help="It joins the switches, and all of the page shows what it does.",
        )
    if pressed:
        st.rerun(scope="app")  # all of the page is another run now


def take_row() -> None:
    """A press on a row of the map: its strongest patch is the one to put in; once more, the
    strongest of all."""
    row = st.session_state["patched map"].get("token")
    row = None if row is None else int(row)
    st.session_state["patch row"] = None if row == st.session_state.get("patch row") else row
