"""Links that version 0.4 wrote lead to the tab that shows the same, with all their choices."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from app_harness import page_at

from explorer.server.addresses import refusal
from explorer.state import places

OWN = "My+sister+thanked+the+nurse+because+she+was+kind."
FRENCH = "La+voiture+rouge+est+devant+la+maison."
RED = "The+red+car+is+in+front+of+the+white+house."
# Where choices are tabs now, or nothing else can be chosen, the link's word for them is gone.
IS_A_TAB = {
    ("look_at", "Words"),
    ("effects", "Patching"),
    ("experiment", "off"),
    *(("train_view", view) for view in ("Checkpoints", "Live", "Twins")),
}
# The link, the tab it opens, and the component that is then on screen, or "" where there is none
# before something is pressed.
LINKS = [
    ("/", "heads", "panel"),
    ("/?layer=2&head=3", "heads", "panel"),
    (f"/?text={OWN}&layer=1&head=5&token=7", "heads", "panel"),
    ("/?view=Matrix&scale=Global&tone=Log&att_unit=Words&att_keep=No+specials", "heads", "panel"),
    ("/?model=translator&attention=cross&source=2", "heads", "panel"),
    ("/?model=decoder&text=The+cat+sat+on+the+mat.&token=3&view=Table", "heads", "panel"),
    ("/?att_word=none", "heads", "panel"),
    ("/attention?layer=0&head=4", "heads", "panel"),
    ("/anatomy", "weight", "panel"),
    ("/anatomy?layer=1&head=5&token=9&anatomy_cell=9.2", "weight", "panel"),
    (f"/anatomy?text={OWN}&layer=0&head=1&token=3", "weight", "panel"),
    ("/anatomy?layer=0&head=1&edits=ZeroHead%3A0%3A1%3Aself", "weight", "panel"),
    ("/anatomy?model=induction&text=a+b+c+a+b&layer=1&head=0", "weight", "panel"),
    (f"/anatomy?model=translator&text={RED}&attention=cross&layer=1&head=2", "weight", "panel"),
    ("/summaries", "aggregated", "panel"),
    ("/summaries?sum_what=Rollout", "aggregated", "panel"),
    (f"/summaries?text={OWN}&sum_what=Max&sum_layer=2", "aggregated", "panel"),
    ("/summaries?sum_what=Writes&sum_layer=1&sum_head=3&sum_measure=Length", "aggregated", "panel"),
    ("/lookup?look_at=Words", "circuits", "panel"),
    ("/lookup?look_at=Words&layer=1&head=5&token=9&look_key=2&look_as=Here", "circuits", "panel"),
    ("/lookup?look_at=Words&model=decoder&text=Ram+pushed+Hari&look_word=50", "circuits", "panel"),
    ("/lookup", "concepts", "panel"),
    ("/lookup?look_temperature=0.5&layer=1&head=5&token=9", "concepts", "panel"),
    ("/lookup?look_at=Graph&look_layout=Arcs&layer=0&head=2", "concepts", "panel"),
    ("/lookup?look_at=Scale&spread=Log", "concepts", "panel"),
    ("/lookup?look_at=Three&look_before=Weights&layer=2&head=1", "concepts", "panel"),
    ("/predictions", "word", "panel"),
    (f"/predictions?text={OWN}&token=7&hidden=7", "word", "panel"),
    ("/predictions?hidden=2.3&token=2", "word", "panel"),
    ("/predictions?hidden=none&token=9", "word", "panel"),
    ("/predictions?token=4&lens=Rank&site=1.ffn.normed", "lens", "panel"),
    ("/predictions?model=decoder&text=The+cat+sat&lens=Answer", "lens", "panel"),
    ("/predictions?token=9&part=head.3.7.self", "attribution", "panel"),
    ("/predictions?token=9&word=120&against=130", "attribution", "panel"),
    ("/predictions?ffn=1&neuron=7&token=9", "attribution", "panel"),
    ("/predictions?model=decoder&text=The+cat+sat&temperature=0.8&seed=4", "generate", "panel"),
    ("/predictions?model=grammar&text=The+cat&top_k=5&said=9.12", "generate", "panel"),
    ("/translation", "translate", "panel"),
    (f"/translation?model=translator&text={RED}&beams=4&cross=1.2", "translate", "panel"),
    (f"/translation?model=translator&text={RED}&target={FRENCH}", "translate", "panel"),
    ("/switches", "edit", "panel"),
    ("/switches?edits=ZeroHead%3A1%3A5%3Aencoder+self&layer=1&head=5", "edit", "panel"),
    ("/switches?edits=WithoutPositions&token=9&effects=Vectors", "edit", "panel"),
    (f"/switches?text={OWN}&experiment=off&seen=yes", "edit", "panel"),
    ("/switches?effects=Trained+without", "edit", "panel"),
    ("/switches?patch=Sites", "patching", "panel"),
    ("/switches?effects=Patching&donor=The+animal+was+wide.&token=9", "patching", "panel"),
    ("/compare", "compare", "panel"),
    ("/compare?other_what=Sentence&other_text=The+street+was+too+wide.", "compare", "panel"),
    (f"/compare?text={OWN}&other_view=Vectors", "compare", "panel"),
    ("/compare?other_what=Model&other_model=twin-pre&other_pair=0.1.1.2", "compare", "panel"),
    ("/claims", "claims", ""),
    ("/claims?claim=start&claim_verdict=Hold", "claims", ""),
    ("/tour", "tour", "tour"),
    ("/tour?tour=heads", "tour", "tour"),
    (f"/tour?tour=qkv&text={OWN}", "tour", "tour"),
    ("/sentences?many_by=far+word&layer=1&head=5", "sentences", "load"),
    ("/positions?ask=Shift&shift=4&width=32", "positions", "panel"),
    (f"/positions?text={OWN}&ask=Order&order=Shuffle&shuffle=3", "positions", "panel"),
    ("/residual?flow=Heads&token=4", "residual", "panel"),
    (f"/residual?text={OWN}&flow=LayerNorm&norm=Sigma+before", "residual", "panel"),
    ("/embeddings?contexts=One&token=3&stage=1", "embeddings", "panel"),
    ("/embeddings?second=The+dog+was+tired.&curve=Cosine&plane=PCA", "embeddings", "panel"),
    ("/training?model=induction&train_step=650", "checkpoints", "panel"),
    ("/training?train_view=Live&live_task=copy", "live", ""),
    ("/training?train_view=Twins", "twins", "panel"),
]


def test_there_are_as_many_links_as_pages_had_uses() -> None:
    assert len(LINKS) >= 60 and {page for page, _, _ in map(parts, LINKS)} >= {*places.PAGES_BEFORE}


def parts(link: tuple[str, str, str]) -> tuple[str, dict[str, str], str]:
    """A link's page, its choices and its tab."""
    to = urlsplit(link[0])
    choices = dict(parse_qsl(to.query, keep_blank_values=True))
    return to.path.strip("/") or "attention", choices, link[1]


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS, ids=lambda link: link[0])
def test_a_link_opens_its_tab_with_all_its_choices(link: tuple[str, str, str]) -> None:
    (page, choices, tab), drawn = parts(link), link[2]
    app = page_at(page, **choices)
    state = app.session_state
    assert not app.exception and not app.toast and state["page"] == tab
    for name, value in choices.items():
        if (name, value) not in IS_A_TAB:
            assert state[name] == value, name
    names = [each.proto.component_name for each in app.get("bidi_component")]
    assert not drawn or f"headlight.{drawn}" in names, names


def test_the_server_sends_an_old_address_on() -> None:
    for link in LINKS:
        path, _, query = link[0].partition("?")
        page, choices, tab = parts(link)
        scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode()}
        said = refusal(scope)
        if path == "/" or (page == "training" and "train_view" not in choices):
            assert said is None, link
            continue
        assert said is not None and said.status_code == 307, link
        to = urlsplit(said.headers["location"])
        now = dict(parse_qsl(to.query, keep_blank_values=True))
        place = to.path.strip("/") or places.FIRST
        assert now.pop("tab", places.first_tab(place)) == tab and tab in places.PLACES[place].tabs
        assert now == {name: v for name, v in choices.items() if (name, v) not in IS_A_TAB}
        again = {**scope, "path": to.path, "query_string": to.query.encode()}
        assert refusal(again) is None, "one step"


@pytest.mark.slow
def test_a_tab_of_no_such_name_is_the_first_of_its_place() -> None:
    app = page_at("residual")
    app.query_params["tab"] = "<b>nothing</b>"
    assert not app.run().exception and app.session_state["page"] == "diagram"
