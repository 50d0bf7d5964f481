"""What a reader can choose, page by page: what each choice is when an address does not say, and
what it depends on.

A choice has one name, in `st.session_state` and in the address alike. Widgets that set it may have
it as their key; what keeps something else under a key (a picture, a chart, a button) must not, and
tests/test_house.py holds that.
"""

from __future__ import annotations

from dataclasses import dataclass

ANCHORS = "fruit, tree, juice / mac, os, app"  # the lecture notes' own, for a word of two senses


@dataclass(frozen=True)
class Choice:
    """What it is at first, and of what it is a choice: of a "text", of a "model", or of neither,
    which stays whatever is shown."""

    default: str = ""
    of: str = ""


class Choices:
    """The choices of one page. Raises ValueError for a name that another page has: in an address it
    would mean two things."""

    every: dict[str, Choice] = {}

    def __init__(self, page: str, **named: Choice | str) -> None:
        self.page = page
        self.named = {
            name: each if isinstance(each, Choice) else Choice(each) for name, each in named.items()
        }
        if twice := sorted(self.named.keys() & self.every.keys()):
            raise ValueError(f"{page} declares what another page has declared: {', '.join(twice)}")
        self.every.update(self.named)


def names() -> tuple[str, ...]:
    """The names of all choices."""
    return tuple(Choices.every)


def default(name: str) -> str:
    """What a choice is when the address does not say."""
    return Choices.every[name].default


def of(*whats: str) -> tuple[str, ...]:
    """The names of the choices that depend on any of these, "text" or "model"."""
    return tuple(name for name, each in Choices.every.items() if each.of in whats)


OF_TEXT, OF_MODEL = Choice(of="text"), Choice(of="model")

shared = Choices(
    "every page",
    attention=OF_MODEL,
    layer=OF_MODEL,
    head=OF_MODEL,
    token=OF_TEXT,
    source=OF_TEXT,  # the other side's token, between two texts
    stream=OF_MODEL,
    target=OF_MODEL,  # what a decoder is to read
    edits="",
)
attention = Choices(
    "attention",
    view="Lines",
    scale="Head",
    tone="Linear",
    att_unit="Tokens",
    att_keep="All",
    att_sum="As they are",
    att_right="",
    att_word=OF_TEXT,  # "none": the reader let go of the word that the page opens on
)
anatomy = Choices("anatomy", anatomy_cell="")  # query and key with a dot between them
positions = Choices(
    "positions",
    ask="Waves",  # the screen
    width="",
    places="",
    pair="",
    place="",
    shift="",
    order="Shuffle",
    shuffle="1",
    retyped=OF_TEXT,
    positions="Without",
)
residual = Choices(
    "residual",
    flow="Writes",
    write="Turned",
    norm="Sigma before",
    writer="Length",
    block="0.attn",
    spread="Linear",
    times="3",
    lag="8",
)
embeddings = Choices(
    "embeddings",
    contexts="Two",  # or "One": one text alone
    second="",
    mate=OF_TEXT,
    anchors=ANCHORS,
    stage=OF_MODEL,
    plane="PCA",
    length="Kept",
    sums="States",
    specials="Hidden",
    space="2-D",
    curve="Cosine",
    trails="Chosen",
    frame="All",
)
summaries = Choices("summaries", sum_what="Mean", sum_layer="", sum_head="", sum_measure="Length")
lookup = Choices(
    "lookup",
    look_at="Hard",
    look_temperature="1",
    look_rule="2",
    look_layout="Arcs",
    look_heads="One",
    look_before="Weights",
    look_as="Bare",
    look_key=OF_TEXT,
    look_word=OF_MODEL,
)
predictions = Choices(
    "predictions",
    site="",
    lens="Top word",
    word=OF_MODEL,
    against=OF_MODEL,
    part=OF_MODEL,
    ffn=OF_MODEL,  # the layer whose FFN is opened
    neuron=OF_MODEL,
    hidden=OF_TEXT,
    said=OF_TEXT,
    temperature="0.5",  # at 1 a small model writes words that are none
    top_k="0",
    top_p="1",
    seed="0",
)
translation = Choices("translation", beams="1", beam=OF_TEXT, step=OF_TEXT, cross="")
switches = Choices(
    "switches",
    donor="",
    only="",
    brush="Zero",
    seen="",
    experiment="",  # "off": opened with nothing switched
    effects="Attention",
    patch="Heads",
    fair="",
)
compare = Choices(
    "compare",
    other_what="Edit",
    other_edits="WithoutPositions",
    other_text="",
    other_model="",
    other_swap="",
    other_of="",
    other_to="",
    other_view="Heads",
    other_tone="Linear",
    other_pair="",
    other_word="",
)
tour = Choices("tour", tour=OF_MODEL)  # the step, by its id
claims = Choices("claims", claim="", claim_verdict="All", claim_note="All notes")
training = Choices(
    "training",
    train_view="Checkpoints",
    train_step=OF_MODEL,
    train_habit=OF_MODEL,
    train_of=OF_MODEL,
    train_pair="",
    live_task="induction",
    live_unit="characters",
)
sentences = Choices("sentences", many_by="far word")
