"""A sweep of patches as far as it has come: its map, and its strongest patch in words."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis import interventions
from explorer.analysis.figures import Matrix
from explorer.analysis.formatting import fixed
from explorer.components import panel
from explorer.layout import export_menu, navigation
from explorer.layout.output import with_table
from explorer.panels.spec import Panel
from explorer.state import cache, jobs, models
from explorer.state.jobs import Job, SweepProgress
from explorer.text import head_naming
from explorer.text.interventions import effect, scale, with_site_names
from explorer.text.markdown_escape import literal
from explorer.views.switches.edit_actions import put
from explorer.views.switches.run_pair import told
from models.edits import Edit, PatchHead, PatchSite, to_line
from models.recording import Recording

PRESS = "Press a row for its strongest patch."


@dataclass(frozen=True)
class SweepRequest:
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
        return cache.record(self.model, self.text, self.edits)

    def sweep(self) -> Job:
        """The sweep, not begun or as far as anyone has taken it."""
        asked = self.what, self.donor, self.name, self.token, self.word, self.against
        return jobs.patch_sweep(self.base(), *asked)


def watch(asked: SweepRequest, edits: tuple[Edit, ...], was_running: bool) -> None:
    """The sweep as far as it has come; it runs again and again while it goes on. `edits`: those of
    the page, which a patch is put to."""
    sweep = asked.sweep()
    running, found = sweep.running, sweep.latest
    buttons(sweep, running)
    if running != was_running:
        st.rerun(scope="app")
    if found is None:
        st.caption("Running both sentences …" if running else "Each patch is one forward pass.")
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
        + scale(effects.normalised)
    )
    read = None if asked.what == "Heads" else asked.token
    cell = interventions.strongest_cell(effects, read, st.session_state.get("patch row"))
    if cell is not None:
        strongest(asked, edits, effects, cell)
    with_table(
        interventions.map_columns(with_site_names(effects)),
        (title, *about),
        file,
        "Every effect as a table",
    )


def buttons(sweep: Job, running: bool) -> None:
    """Start, stop and go on."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if running:
            st.button("Stop", key="stop sweep", on_click=sweep.stop)
        elif sweep.finished:
            st.markdown(":material/check: All patches are done.")
        else:
            label = "Run all patches" if sweep.latest is None else "Continue"
            st.button(label, key="start sweep", on_click=sweep.resume)


def effects_of(asked: SweepRequest, found: SweepProgress) -> interventions.EffectMap:
    """What was measured so far, as a map."""
    base = asked.base()
    ends = found.clean, found.donor
    if asked.what == "Heads":
        size = base.model.n_layer, base.model.n_head
        return interventions.effects_by_head(found.effects, size, *ends)
    stream = base.stream(asked.name)
    states = tuple(interventions.named_states(stream).values())
    return interventions.effects_by_site(found.effects, stream.tokens, states, *ends)


def numbers_of(asked: SweepRequest) -> None:
    """The lines of Python that make all patches and give what they do."""
    base, heads = asked.base(), asked.what == "Heads"
    sweep = "patch_heads" if heads else "patch_sites"
    given = asked.donor, asked.name, asked.token, asked.word, asked.against
    edits = f", headlight.edits.from_line({to_line(asked.edits)!r})" if asked.edits else ""
    ends = "found.clean, found.donor)"
    if heads:
        size = base.model.n_layer, base.model.n_head
        made = f"effects = interventions.effects_by_head(effects, {size}, {ends}"
    else:
        made = (
            f"stream = recording.stream({asked.name!r})\n"
            "states = tuple(interventions.named_states(stream).values())\n"
            f"effects = interventions.effects_by_site(effects, stream.tokens, states, {ends}"
        )
    export_menu.offer_numbers_code(
        "every patch",
        (cache.Run(asked.model, asked.text, asked.edits),),
        (
            "interventions",
            "interventions_text",
        ),
        (
            f"found = model.{sweep}({asked.text!r}, {', '.join(map(repr, given))}{edits})",
            "effects = [(each.place, each.value) for each in found.effects]",
            made,
            "table = interventions.map_columns(interventions_text.with_site_names(effects))",
        ),
    )


def chart(
    asked: SweepRequest, effects: interventions.EffectMap, found: SweepProgress
) -> tuple[str, tuple[str, ...], str]:
    """The map. Returns its title, the lines below it, and the name of its file."""
    base, heads = asked.base(), asked.what == "Heads"
    one, other = models.labels(asked.model, (asked.word, asked.against))
    what = f"heads, {asked.name}-attention" if heads else f"states, {asked.name} stream"
    title = f"{effects.measure.name} of patching {what}"
    about = (
        *told(
            base,
            f"{effects.measure.meaning}. Logit of {one} − logit of {other} at token {asked.token}: "
            f"{found.clean:.3f} in this run, {found.donor:.3f} in the other run",
        ),
        "Second sentence: " + " ".join(asked.donor.split()),
    )
    file = f"headlight-{asked.model}-patching-{asked.what.lower()}"
    named = with_site_names(effects)
    matrix = Matrix(
        select=("row",),
        rows=effects.rows,
        columns=tuple(
            f"{each.group.removesuffix('s')} {each.label}".strip() for each in named.columns
        ),
        values=effects.values,
        high=effects.measure.high or 1.0,
        signed=True,
        wide=True,
    )
    shown = Panel(
        title=title,
        finding=PRESS,
        figures=(matrix,),
        caption=about,
        file=file,
        token=cache.picture_name(base, "patched", asked, len(found.effects)),
    )
    panel.show(shown.encode(), "patched map", take_row)
    return title, about, file


def strongest(
    asked: SweepRequest,
    edits: tuple[Edit, ...],
    effects: interventions.EffectMap,
    cell: tuple[int, int],
) -> None:
    """The strongest patch in words, with the way to make it one of the edits."""
    row, column = cell
    if asked.what == "Heads":
        edit: Edit = PatchHead(asked.donor, row, column, asked.name)
        place, aside = f"head {column} of layer {row}", ""
    else:
        site = effects.columns[column].name
        edit = PatchSite(asked.donor, site, row, asked.name)
        place = f"{head_naming.site(site)} at “{effects.rows[row]}” (token {row})"
        aside = " except at the selected token"
    does = effect(float(effects.values[cell]), effects.normalised)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(f"**Largest effect{aside}:** {literal(place)} {literal(does)}.")
        pressed = st.button(
            "Add to the edits",
            key="put patch",
            on_click=put,
            args=((*edits, edit),),
            disabled=edit in edits,
            help="Opens Edit the model. One weight and Edit the model then use this patch.",
        )
    if pressed:
        navigation.go("edit", {})


def take_row() -> None:
    """A press on a row of the map: its strongest patch is the one to put in; once more, the
    strongest of all."""
    row = (st.session_state["patched map"].get("select") or {}).get("row")
    row = None if row is None else int(row)
    st.session_state["patch row"] = None if row == st.session_state.get("patch row") else row
