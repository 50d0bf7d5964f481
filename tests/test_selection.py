"""The selection: each panel declares it, one module says what a text opens on, and a panel's own
address shows what its page does."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from app_harness import TABS, asked_of, clean, page_at

from explorer.analysis import coreference, opening
from explorer.components import codec
from explorer.panels import address, link_words, spec
from explorer.panels.choice import EVERY, SELECTION, choices_of, parameters
from explorer.screens.screen import screen
from models.contract.edits import ZeroHead, to_line
from models.runtime import registry
from models.runtime.run import Run

ROOT = Path(__file__).resolve().parent.parent
TEXT = "The river bank was steep, so we sat down on it."
ARGUMENTS = {*SELECTION, "key"}


def test_every_panel_declares_what_of_the_selection_it_takes() -> None:
    found = {
        f"{name} {each.argument}"
        for name in spec.panel_names()
        for each in parameters(spec.PANELS[name])
        if each.argument in ARGUMENTS and each.choice is None
    }
    assert not found


def test_what_a_text_opens_on_is_chosen_in_one_module() -> None:
    names = re.compile(
        r"def (_?(?:opening|first)_(?:head|row|word|token|finding|cell)|default_token)"
    )
    for path in (ROOT / "explorer").rglob("*.py"):
        assert not names.findall(path.read_text("utf-8")), path
    for folder in ("app/views", "app/layout", "components"):
        for path in (ROOT / "explorer" / folder).glob("*.py"):
            calls = re.findall(r"\bopening\.(\w+)\(", path.read_text("utf-8"))
            assert not calls, path


def test_every_is_a_word_of_an_address_and_of_a_text() -> None:
    assert link_words.in_todays_words({"token": ""}) == {"token": EVERY}
    assert link_words.in_todays_words({"selected": "none"}) == {"token": EVERY}
    assert link_words.in_todays_words({"selected": "none", "token": "3"}) == {"token": "3"}
    app = clean(page_at("heads", text="every one of them slept", word="every"))
    assert asked_of(app)["token"] == EVERY
    place = Run("encoder", "every one of them slept").recording().streams[0].tokens.index("every")
    app = clean(page_at("heads", text="every one of them slept", word="word:every"))
    assert asked_of(app)["token"] == str(place)


UNVOTED = "The dog saw the old cat near the river bank."


@pytest.mark.parametrize("text", [TEXT, UNVOTED])
def test_what_opens_is_what_the_vote_or_the_strongest_finding_is_about(text: str) -> None:
    run = Run("encoder", text)
    recording, (of,) = run.recording(), run.recording().attention
    vote, first = opening.voted(recording, of.name), opening.finding(recording, of)
    assert first is not None and first.query >= 0 and (vote is not None) == (text == TEXT)
    at = (*first.at, first.query) if vote is None else (*vote.at, vote.query)
    assert opening.lookup(recording, of) == at
    assert opening.head(recording, of) == at[:2]
    assert opening.word(recording, recording.streams[0]) == at[2]
    assert opening.cell(recording, of, at[:2])[0] == at[2]
    panel = spec.PANELS["attention.head"](run)
    told = (*first.at, first.query)
    assert tuple(panel.choices[each] for each in ("layer", "head", "token")) == told
    for layer in range(recording.model.n_layer):
        assert opening.head(recording, of, layer)[0] == layer


def test_the_head_that_opens_is_the_best_tested_one_that_says_the_noun() -> None:
    for model in ("encoder", "minilm"):
        recording = Run(model, "The waiter brought the soup but it was cold.").recording()
        (of,), tokens = recording.attention, recording.streams[0].tokens
        tested = coreference.measured_heads(recording, of)
        vote = opening.voted(recording, of.name)
        assert vote is not None and vote.n_votes
        assert (tokens[vote.query], tokens[vote.keys[0]]) == ("it", "soup")
        assert tested[vote.at].n_matches == max(each.n_matches for each in tested.values())
    divided = Run("encoder", "Anna gave the dog some water because it was thirsty.").recording()
    vote = opening.voted(divided, "self")
    assert vote is not None and not vote.n_votes
    assert divided.streams[0].tokens[vote.query] == "it"


WAITER = "The waiter brought the soup but it was cold."


@pytest.mark.parametrize(
    "text", [WAITER, "My sister Anna lost her umbrella in the rain. 🙁", "Dog bites man.", "One 🙁"]
)
@pytest.mark.parametrize("model", ["encoder", "minilm", "decoder"])
def test_no_tab_opens_on_a_head_that_is_taken_out(model: str, text: str) -> None:
    """The head that opens is taken out, then the one that opens without it, and so on."""
    if model not in registry.names():
        pytest.skip(f"{model} is not here")
    out: list[tuple[int, int]] = []
    for _ in range(4):
        run = Run(model, text, tuple(ZeroHead(*at) for at in out))
        recording, (of,) = run.recording(), run.recording().attention
        link = opening.word_link(recording, of.name)
        found = [opening.head(recording, of), opening.lookup(recording, of)[:2]]
        found += [tuple(link[:2])] if link else []
        address = {"text": text, "model": model, "edits": to_line(run.edits)}
        for tab in ("heads", "weight"):
            panels = screen(f"?{urlencode({'tab': tab, **address})}").panels()
            at = next(panels).at
            found += [(at["layer"], at["head"])] if at.get("layer") is not None else []
        assert len(found) >= 3 and not {*found} & {*out}, (found, out)
        out.append(found[0])


# What each tab opens on: the panel, and why its word is another one than the pronoun.
OF_WORD = {
    "architecture.flow": "What comes next?",  # asked where a model goes on
    "residual.updates": "for the word after",
    "feed_forward.units": "",
    "positions.answer": "guesses what comes next: here the word after",
    "positions.sentence": "",
    "logit_lens.lens": "guesses what comes next: here the word after",
    "attribution.logit": "guesses what comes next: here the word after",
    "anatomy.weight": "",
    "score_parts.sources": "",
    "embeddings.contexts": "alone",  # the noun, and why
}


@pytest.mark.slow
@pytest.mark.parametrize("text", [WAITER, "The nurse told the boy that she had lost the keys."])
@pytest.mark.parametrize("model", ["encoder", "minilm", "smollm2"])
def test_one_word_travels_through_the_tabs_or_a_tab_says_why_not(model: str, text: str) -> None:
    if model not in registry.names():
        pytest.skip(f"{model} is not here")
    run = Run(model, text)
    recording, (of,) = run.recording(), run.recording().attention
    vote, tokens = opening.voted(recording, of.name), recording.streams[0].tokens
    assert vote is not None and tokens[vote.query] in ("it", "she")
    shown = set()
    for name, why in OF_WORD.items():
        try:
            panel = spec.PANELS[name](run)
        except ValueError:  # the model predicts no word, or hides its weights
            continue
        token = panel.at.get("token")
        is_same = token == vote.query
        assert is_same or (why and why in panel.title + panel.finding), (name, token, panel.finding)
        head = panel.at.get("layer"), panel.at.get("head")
        if name in ("anatomy.weight", "score_parts.sources"):
            assert head == vote.at and panel.at["source"] == vote.keys[0], name
        shown.add(name)
    assert len(shown) >= (5 if model == "minilm" else 8)
    if vote.n_votes:
        title = spec.PANELS["embeddings.contexts"](run).title
        assert title.startswith(f"“{tokens[vote.keys[0]]}”")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("encoder", WAITER),
        ("encoder", "The nurse told the surgeon that she had forgotten the keys."),
        ("encoder", "The king told the queen that he was tired."),
        ("encoder", "Dog bites man."),
        ("decoder", WAITER),
        ("smollm2", "Paris is the capital of France. Rome is the capital of"),
        ("smollm2", WAITER),
    ],
)
def test_one_part_decided_on_every_tab_that_says_which(model: str, text: str) -> None:
    """Flow, Why this word and Residual stream: the same word in the same place, before the same
    rival, and the same part of the model."""
    if model not in registry.names():
        pytest.skip(f"{model} is not here")
    address = {"text": text, "model": model}
    flow, why, stream = (
        next(screen(f"?{urlencode({'tab': tab, **address, **more})}").panels())
        for tab, more in (("flow", {"flow_beam": "end"}), ("attribution", {}), ("residual", {}))
    )
    assert flow.at["token"] == why.at["token"] == stream.at["token"]
    figure = flow.figures[0]
    answer = figure.lanes[0].label
    (rival,) = (lane.label for lane in figure.lanes if lane.id == figure.against)
    pushing = re.search(
        rf"(head \d+ of layer \d+|the FFN of layer \d+)(, which reads “[^”]+”,)? pushes most: "
        rf"toward “{answer}”, away from “{rival}”",
        why.finding,
        re.IGNORECASE,
    )
    assert pushing and f"“{answer}”" in stream.title
    part = pushing[1].casefold()
    if "This part alone" in stream.finding:
        layer, kind = re.search(r"in layer (\d+), (\w+)", stream.finding).groups()
        assert part == f"the {kind} of layer {layer}".casefold()
    else:
        assert f"{part}{pushing[2] or ''}" in stream.finding.replace("the FFN", "the ffn")
    head = re.match(r"(Head \d+ of layer \d+) reads “([^”]+)”", figure.stops[-1].part)
    assert bool(head) is bool(figure.cause)
    if head:
        assert f"{head[1]}, which reads “{head[2]}”, " in why.finding


# The views of tabs that show other panels, by the choice that names them.
VIEWS = {
    "concepts": (
        "look_at",
        *(
            "Hard",
            "Tokens",
            "Before",
            "Shapes",
            "Three",
            "Scale",
            "Softmax",
            "Saturation",
            "Mask",
            "Mean",
            "Graph",
        ),
        *(
            "Heads",
            "Gradient",
            "Distance",
            "Stages",
            "Norm",
            "Offset",
            "Loss",
            "Loops",
            "Moves",
            "Paper",
        ),
        *("Modern", "Textbook"),
    ),
    "positions": ("ask", "Answer", "Order", "Sentence", "Waves", "Distance", "Shift", "Adding"),
    "residual": ("flow", "Writes", "Token", "LayerNorm", "Heads", "Gradient"),
    "aggregated": ("sum_what", "Mean", "Rollout", "Writes"),
    "compare": ("other_view", "Heads", "Difference", "Answers", "Nearest", "Tokens"),
    "weight": ("weight_fold", "", "Sources", "Heads"),
    "edit": ("effects", "Attention", "Vectors"),
    "embeddings": ("space", "2-D", "Anchors"),
}
# Many sentences are a list of their own, of which the text of a panel's address is the first.
WITHOUT_PANELS = {"lessons", "live", "claims", "sentences"}  # of the run of the address
OF_PANELS = [tab for tab in TABS if tab not in {*WITHOUT_PANELS, "classroom"}]


@pytest.mark.in_turn(2)
@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "translator"])
@pytest.mark.parametrize("tab", OF_PANELS)
def test_a_panels_own_address_shows_what_its_page_shows(tab: str, model: str) -> None:
    choice, *views = VIEWS.get(tab, ("", ""))
    for view in views:
        app = clean(page_at(tab, text=TEXT, model=model, **({choice: view} if view else {})))
        asked = link_words.with_key({"text": TEXT, **asked_of(app)})
        if asked.get("model", "encoder") != model:
            pytest.skip("the model does not fit the tab")
        for each in app.get("bidi_component"):
            if each.proto.component_name != "headlight.panel":
                continue
            header = codec.decode(each.proto.bytes)[0]
            name, known = header["panel"], {*asked} - {*address.OF_RUN}
            known &= {one.name for one in choices_of(spec.PANELS[header["panel"]])}
            words = {one: asked[one] for one in known}
            made = address.from_words(name, address.run_of(asked), words)
            assert made.encode(bare=header["bare"]) == each.proto.bytes, (view, name, words)
