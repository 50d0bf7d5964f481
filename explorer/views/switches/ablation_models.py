"""The fair comparison: models that learned without a part."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import interventions
from explorer.analysis.terminology import ABLATION_EDITS
from explorer.layout import export_menu, output
from explorer.state import models
from explorer.state.cache import run_of
from explorer.text.interventions import FAIR
from explorer.text.markdown_escape import literal
from explorer.views.switches.edit_actions import open_model, shown
from explorer.views.switches.run_pair import Runs


def show(on: Runs) -> None:
    """Learning curves and results of one family of models, and the way to each of them."""
    st.subheader("Trained without this part", anchor=False)
    st.markdown(FAIR)
    found = interventions.ablation_models(models.cards())
    if not found:
        st.info("No model here was trained without a part.")
        return
    family = pick_family(found, on.model)
    found = tuple(of for of in found if of.full == family)
    curves = [(family, found[0].full_curve), *((of.name, of.curve) for of in found)]
    series = [(name, curve) for name, curve in curves if len(curve)]
    about = (
        f"Training loss: {family}",
        "trained with every part, and without one part; otherwise equal",
    )
    left, right = st.columns([1.1, 1], gap="medium")
    with left:
        if series:
            from explorer.figures.interventions import curves as drawn

            output.plotly_chart(drawn(series, about), "learning", about[0])
    with right:
        output.data_table(interventions.result_columns(found), "Results of the models", "%.4g")
        st.caption(
            "Losses are the last ones of training. The other numbers were measured on held-out "
            "data."
        )
    export_menu.offer_numbers_code(
        "these models’ training",
        (run_of(on.plain),),
        ("interventions",),
        (
            "cards = {name: headlight.registry.card(name) for name in headlight.names()}",
            f"found = [of for of in interventions.ablation_models(cards) if of.full == {family!r}]",
            f"curves = [({family!r}, found[0].full_curve), *((of.name, of.curve) for of in found)]",
            "results = interventions.result_columns(found)",
            "table = interventions.curve_columns([each for each in curves if len(each[1])])",
        ),
    )
    for of in found:
        doors(of, on.model)
    if series:
        columns, file = interventions.curve_columns(series), f"headlight-trained-without-{family}"
        output.with_table(columns, about, file, "The curves as a table")


def doors(of: interventions.AblationModel, model: str) -> None:
    """The model that was trained without a part, and the full one with the part switched off."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**Without {literal(of.without)}**", width=160)
        pressed = st.button(
            "Trained without this part",
            key=f"open {of.name}",
            on_click=open_model,
            args=(of.name, ()),
            disabled=of.name == model,
            help=f"Open {of.name}",
        )
        taken = ABLATION_EDITS.get(of.without)
        if taken:
            pressed |= st.button(
                "Trained with it, ablated",
                key=f"open {of.full} {of.without}",
                on_click=open_model,
                args=(of.full, taken),
                help=f"Open {of.full} with this edit",
            )
        if pressed:
            st.rerun(scope="app")  # the sentence bar above names the model


def pick_family(found: tuple[interventions.AblationModel, ...], model: str) -> str:
    """The full model that others are compared with, chosen where there are several."""
    families = tuple(dict.fromkeys(of.full for of in found))
    own = next((of.full for of in found if model in (of.name, of.full)), families[0])
    family = st.session_state.fair if st.session_state.fair in families else own
    if len(families) > 1:
        shown("family", family)
        st.segmented_control(
            "The full model", families, key="family", required=True, on_change=take_family
        )
    return family


def take_family() -> None:
    """The full model chosen."""
    st.session_state.fair = st.session_state["family"]
