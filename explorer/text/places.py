"""The one table by tab: the places of the app, the tabs in each, the rows of each tab, and whatever
is true of a row alone. Consumers read the fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlencode

from explorer.wording.templates import named
from models.example_texts import DEFAULT_TEXT, EXAMPLES

# What a tab takes of a model, more than a recording of one text holds.
Requirement = Literal[
    "",  # a recording is enough
    "weights",
    "texts",  # that it reads other texts
    "passes",  # that it reads a text once more, otherwise
    "words",  # that it predicts words
    "prediction",  # that it predicts words, or classes of a text
    "generation",  # that it continues a text
    "translation",
    "trainings",  # that it has checkpoints
]
SELECTION = ("token", "layer", "head")


@dataclass(frozen=True)
class Fold:
    """A part of a tab that opens below its panels: its label, "" where it is of the run; the names
    of its panels. wait: said while these are made. group: what is opened in its place where it is
    one of several parts, of which one is shown at a time."""

    label: str = ""
    panels: tuple[str, ...] = ()
    wait: str = ""
    group: str = ""


@dataclass(frozen=True)
class Lead:
    """The way on to another tab: its label, what it opens there and what it takes along of the
    tab's choices."""

    label: str
    choices: Mapping[str, str] = field(default_factory=dict)
    keeps: tuple[str, ...] = ("layer", "head", "token")


@dataclass(frozen=True)
class Views:
    """Panels of which some are shown at a time: the choice of the address that says which, and by
    its words their label, "" for what their own choice of this name calls it, and the names of the
    panels. groups: by their labels the words of several that stand behind one button, in a row of
    their own while one of them is shown. earlier: the view that a link means which names none,
    where another stood first when links were shared; today's links name one, and a bare address
    opens on the first of today. newer: those that no link of that time leads to: an address that
    says one of them and no more means the text of a bare one. index: the view without panels that
    leads to the others, "" where buttons do."""

    choice: str
    panels: Mapping[str, tuple[str, tuple[str, ...]]]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    earlier: str = ""
    newer: tuple[str, ...] = ()
    index: str = ""


@dataclass(frozen=True)
class Alone:
    """Panels that a tab opens on in the place of its own, where all of them are there: their names,
    the word of its `open_fold` for its own panels, the label of what leads to these, and of what
    leads back. is_there: None until that is known of a run."""

    panels: tuple[str, ...]
    others: str
    label: str
    back: str
    is_there: bool | None = None


@dataclass(frozen=True)
class Tab:
    """A row of the table: a tab, or what else a tab shows. Its id, which stands in an address, and
    its title.

    label, beside: of a tab that shows one of several rows at a time, what it is called among them,
    and the others, each with its title there. titles: what a tab is called for some models, by
    their kinds, "classes" for those that classify texts.

    panels: the names of those that it shows from top to bottom, below those of one of its views
    where it has some; none for a tab that is drawn by hand. folds: the parts below them of which
    one is open at a time. open_fold: the choice of the address that names the part that is open,
    with `closed` for none; "" where the address does not say. alone: what it opens on while none
    is, in their place. leads: the ways on to other tabs, by
    the tab. of_stream: choices that end with another stream. wait: said while the panels are made.
    for_classes: the row that a classifier of texts has in the place of this one; it has panels
    alone. below: the names of panels that stand below all these, as far as they are there. subject:
    what makes of the run of an address the one that the panels are of (screens/subjects.py), "" for
    the run itself. reads: what it reads of a run beside its model and its text. press: what a press
    changes beside what it says (screens/presses.py), "" for nothing.

    needs: what it takes of a model. nearest: of a tab that has no use for some of the selection,
    `unused`, the nearest that has; "" for one that uses it. as_trained: it is on weights, on other
    texts or on trainings, and shows the model without edits. names_edits: it says itself which
    edits there are. is_step: it can be a step of a lesson.

    text: the text that an address of it means which chooses something and says no text; a bare
    address opens on OPENING_TEXT where this is DEFAULT_TEXT. own: choices that no address of
    another tab has, since they are long. words: those that what is drawn by hand on it takes, and
    no panel. of_first_stream: its word is one of the first stream.
    formula_first: the formulas of its panels stand above their figures; elsewhere a press opens
    them.
    studied: the concept of the charts in it into which one zooms, and in which one measures.
    """

    id: str
    title: str
    panels: tuple[str, ...] = ()
    folds: Mapping[str, Fold] = field(default_factory=dict)
    open_fold: str = ""
    closed: str = ""
    alone: Alone | None = None
    views: Views | None = None
    leads: Mapping[str, Lead] = field(default_factory=dict)
    of_stream: tuple[str, ...] = ("token",)
    wait: str = ""
    for_classes: Tab | None = None

    label: str = ""
    beside: tuple[Tab, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)

    below: tuple[str, ...] = ()
    subject: str = ""
    reads: tuple[str, ...] = ("edits", "target")
    press: str = ""

    needs: Requirement = ""
    nearest: str = ""
    unused: tuple[str, ...] = SELECTION
    as_trained: bool = False
    names_edits: bool = False
    is_step: bool = True

    text: str = DEFAULT_TEXT
    own: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    of_first_stream: bool = False
    formula_first: bool = False
    studied: str = ""


@dataclass(frozen=True)
class Place:
    """A place's title, its icon, "" for one to which a button of the frame leads, and its tabs; the
    first tab needs no word in the address. reads_together: texts are read there in one pass with
    those of other readers, since nothing is edited by itself."""

    title: str
    icon: str
    tabs: tuple[Tab, ...]
    reads_together: bool = False


ATTENTION = (
    Tab(
        "heads",
        "Heads",
        label="Each head",
        words=("verify",),
        beside=(
            Tab(
                "aggregated",
                "All heads together",
                ("summaries.disagreements",),
                views=Views(
                    "sum_what",
                    {
                        "Mean": ("", ("summaries.aggregated",)),
                        "Max": ("", ("summaries.aggregated",)),
                        "Rollout": ("", ("summaries.aggregated",)),
                        "Flow": ("", ("summaries.aggregated",)),
                        "Values": ("", ("summaries.aggregated",)),
                        "Writes": ("Head outputs", ("summaries.output_norms",)),
                    },
                ),
            ),
        ),
    ),
    Tab(
        "weight",
        "One head",
        ("anatomy.weight",),
        label="Weight",
        beside=(
            Tab(
                "circuits",
                "Matching and output",
                ("circuits.circuits",),
                reads=("target",),
                needs="weights",
                as_trained=True,
            ),
        ),
        folds={
            "Sources": Fold(
                "Where the score comes from",
                ("score_parts.sources", "score_parts.path"),
                wait="Following the score through the layers …",
            ),
            "Heads": Fold(
                "All heads of the layer",
                ("multi_head.shapes", "multi_head.concatenation", "anatomy.formulas"),
            ),
        },
        open_fold="weight_fold",
        formula_first=True,
        leads={"concepts": Lead("Change the temperature of this softmax")},
    ),
    Tab(
        "sentences",
        "Many sentences",
        ("corpus.patterns", "corpus.highest", "corpus.distances"),
        subject="sentences read",
        reads=(),
        needs="texts",
        as_trained=True,
        own=("many_text", "many_column"),
    ),
)
NUMBERS, BACKWARDS = "Token, norms and heads in numbers", "Backwards: gradient, and an RNN"
ARCHITECTURE = (
    Tab("flow", "Flow", ("architecture.flow",), of_first_stream=True),
    Tab(
        "positions",
        "Positions",
        views=Views(
            "ask",
            {
                "Answer": ("The guess", ("positions.answer",)),
                "Order": ("Each word’s vector", ("positions.order",)),
                "Sentence": ("This sentence", ("positions.sentence",)),
                "Waves": ("Sinusoids", ("positions.encoding",)),
                "Distance": ("Products", ("positions.distance",)),
                "Shift": ("Rotation", ("positions.rotation",)),
                "Adding": ("Add or concatenate", ("positions.overlap",)),
            },
            groups={
                "Another order": ("Answer", "Order"),
                "Encoding": ("Waves", "Distance", "Shift", "Adding"),
            },
            earlier="Sentence",
            newer=("Answer",),
        ),
        reads=(),
        wait="Reading the text with and without positions …",
        as_trained=True,
        of_first_stream=True,
        formula_first=True,
        studied="positions",
    ),
    Tab(
        "residual",
        "Residual stream",
        ("residual.updates",),
        {
            "Token": Fold("Selected token in numbers", ("residual.token_path",), group=NUMBERS),
            "LayerNorm": Fold(panels=("residual.norms", "residual.norm_steps"), group=NUMBERS),
            "BatchNorm": Fold("Compared with BatchNorm", ("residual.batch_norm",), group=NUMBERS),
            "Heads": Fold("Contribution of each head", ("residual.heads",), group=NUMBERS),
            "Gradient": Fold(
                "Gradient",
                ("gradients.deep_stack", "gradients.jacobian"),
                wait="Going back through the layers …",
                group=BACKWARDS,
            ),
            "RNN": Fold("Compared with an RNN", group=BACKWARDS),
        },
        open_fold="flow",
        closed="Writes",
        words=("lag",),
        studied="residual",
    ),
    Tab(
        "embeddings",
        "Embeddings",
        ("embeddings.contexts", "embeddings.neighbours"),
        {
            "Anchors": Fold("Anchor words", ("embeddings.anchors",)),
            "3-D": Fold("In three dimensions"),
        },
        open_fold="space",
        closed="2-D",
        of_stream=("token", "mate", "stage"),
        studied="embeddings",
    ),
    Tab(
        "feedforward",
        "Feed-forward",
        ("feed_forward.units", "feed_forward.network"),
        needs="weights",
    ),
)
PREDICT = (
    Tab(
        "word",
        "Next or hidden word",
        ("predictions.cloze",),
        {"Numbers": Fold("Formula, ranks and entropy", ("predictions.word",))},
        titles={"encoder": "Hidden word", "classes": "Class"}
        | dict.fromkeys(("decoder", "encoder-decoder"), "Next word"),
        leads={
            "attribution": Lead("Why this word"),
            "classroom": Lead(
                named("classroom", "games")["Words"], {"quiz": "Words"}, keeps=("token",)
            ),
        },
        wait="Reading the text without the masked words …",
        subject="masked word",
        for_classes=Tab(
            "word",
            "Next or masked word",
            ("predictions.word",),
            leads={"attribution": Lead("Contributions to this class")},
        ),
        press="masked word",
        needs="prediction",
    ),
    Tab(
        "attribution",
        "Why this word",
        ("attribution.logit",),
        label="Contributions",
        titles={"classes": "Why this class"},
        beside=(
            Tab(
                "lens",
                "Layer by layer",
                ("logit_lens.lens", "logit_lens.development"),
                wait="Reading every site …",
                press="predicted word",
                needs="words",
            ),
        ),
        for_classes=Tab(
            "attribution",
            "Why this word",
            ("attribution.class_logit",),
            wait="Following the class back to the words …",
        ),
        below=("attribution.neurons", "attribution.carriers"),
        press="predicted word",
        needs="prediction",
    ),
    Tab("generate", "Answer", needs="generation", nearest="word", as_trained=True),
    Tab(
        "translate",
        "Translate",
        ("translation.alignment",),
        below=("translation.probability",),
        subject="output",
        reads=("target",),
        needs="translation",
        nearest="heads",
        as_trained=True,
        text=EXAMPLES["Red car"],  # its small model gets it right
    ),
)
EXPERIMENT = (
    Tab(
        "edit",
        "Take out",
        words=("effects", "only", "brush"),
        label="Edits",
        beside=(
            Tab(
                "patching",
                "From another sentence",
                ("interventions.patches",),
                of_stream=("patch_cell",),
                wait="Patching …",
                subject="followed edits",
                reads=(),
                press="patch",
                needs="passes",
            ),
        ),
        needs="passes",
        names_edits=True,
    ),
    Tab(
        "compare",
        "Compare",
        ("compare.heads",),
        {
            "Difference": Fold("Selected head: B − A", ("compare.difference",)),
            "Answers": Fold("Predictions", ("compare.prediction",)),
            "Nearest": Fold("Nearest heads", ("compare.nearest",)),
            "Tokens": Fold("Token alignment", ("compare.tokens",)),
        },
        open_fold="other_view",
        closed="Votes",
        alone=Alone(
            ("compare.votes",),
            others="Heads",
            label="Where the two differ most, head by head",
            back="What both models say of one word",
        ),
        subject="both runs",
        reads=("target",),
        press="head of A",
        needs="passes",
    ),
)
TRAINING = (
    Tab(
        "checkpoints",
        "Checkpoints",
        ("training.checkpoints",),
        below=("training.losses",),
        wait="Reading the text at every checkpoint …",
        subject="last step",
        reads=(),
        needs="trainings",
        nearest="heads",
        unused=("token",),
        as_trained=True,
        studied="training",
    ),
    Tab(
        "live",
        "Train live",
        words=("live_task", "live_unit"),
        leads={
            "heads": Lead("Keep and explore its heads"),
            "checkpoints": Lead("Keep and see its checkpoints"),
        },
        nearest="heads",
        as_trained=True,
        studied="training",
    ),
)
LEARN = (
    Tab(
        "lessons", "Lessons", words=("my_lesson",), nearest="heads", as_trained=True, is_step=False
    ),
    Tab(
        "concepts",
        "Concepts",
        label="Pictures",
        beside=(
            Tab(
                "claims",
                "Claims",
                words=("claim_verdict", "claim_note"),
                nearest="heads",
                as_trained=True,
            ),
            Tab(
                "twins",
                "Two trainings",
                ("training.pair",),
                wait="Reading the text at every checkpoint …",
                reads=(),
                needs="trainings",
                nearest="compare",
                as_trained=True,
                studied="training",
            ),
        ),
        views=Views(
            "look_at",
            {
                "All": ("All concepts", ()),
                "Hard": ("Soft lookup", ("soft_lookup.temperature", "soft_lookup.heads")),
                "Tokens": ("Words in pieces", ("tokens.merges",)),
                "Before": ("Before attention: a recurrent network", ("recurrence.bottleneck",)),
                "Shapes": ("Shapes of the matrices", ("multi_head.shapes",)),
                "Three": ("Three kinds of scores", ("soft_lookup.scoring",)),
                "Scale": ("Why the scale", ("soft_lookup.scale",)),
                "Softmax": ("The softmax of one row", ("softmax.row",)),
                "Saturation": ("A saturated softmax", ("softmax.saturation",)),
                "Mask": ("The mask", ("softmax.mask",)),
                "Mean": ("The weighted mean of values", ("softmax.combination",)),
                "Graph": ("Messages", ("soft_lookup.messages",)),
                "Heads": ("Heads side by side, and W_O", ("multi_head.concatenation",)),
                "Gradient": ("The gradient of each head", ("multi_head.head_gradients",)),
                "Distance": ("Near and far heads", ("distances.near_and_far",)),
                "Stages": ("Two stages of a layer", ("stages.exchanged",)),
                "Norm": ("Post-LN and pre-LN", ("norm_place.diagrams",)),
                "Offset": (
                    "Input and target, shifted by one",
                    ("teacher_forcing.offset", "teacher_forcing.product"),
                ),
                "Loss": ("The loss, and one step of training", ("loss.loss", "loss.step")),
                "Loops": ("Writing token by token", ("generation.loops",)),
                "Moves": ("A word between its neighbours", ("neighbours.between",)),
                "Paper": ("The paper’s figure", ("paper_figure.stacks",)),
                "Modern": (
                    "What later models changed",
                    ("modern.rotary", "modern.rms_norm", "modern.shared_keys", "modern.gate"),
                ),
                "Textbook": ("A textbook figure", ("textbook.own_weight",)),
            },
            earlier="Hard",
            newer=("All", "Tokens", "Loss", "Modern"),
            index="All",
        ),
        reads=("target",),
        as_trained=True,
        formula_first=True,
    ),
)
CLASS = (
    Tab(
        "classroom",
        "Class",
        words=("quiz", "answered"),
        nearest="heads",
        as_trained=True,
        is_step=False,
    ),
)

# By the names of their files in pages/.
PLACES = {
    "attention": Place("Attention", "visibility", ATTENTION, reads_together=True),
    "architecture": Place("Architecture", "account_tree", ARCHITECTURE, reads_together=True),
    "predict": Place("Predict", "text_fields", PREDICT, reads_together=True),
    "experiment": Place("Experiment", "science", EXPERIMENT),
    "training": Place("Training", "show_chart", TRAINING),
    "learn": Place("Learn", "menu_book", LEARN),
    "classroom": Place("Class", "", CLASS),
}
FIRST = "attention"  # it stands at "/"
TABS = {tab.id: tab for place in PLACES.values() for tab in place.tabs}
_TAB_OF = {row.id: tab for tab in TABS.values() for row in (tab, *tab.beside)}
ROWS = {row.id: row for tab in TABS.values() for row in (tab, *tab.beside)}
_PLACE_OF = {id: name for id, tab in _TAB_OF.items() for name in PLACES if tab in PLACES[name].tabs}


def place_of(row: str) -> str:
    """The place of a row. Raises KeyError for any other id."""
    return _PLACE_OF[row]


def tab_of(row: str) -> Tab:
    """The tab that shows a row. Raises KeyError for any other id."""
    return _TAB_OF[row]


def _panels(row: Tab) -> set[str]:
    """The names of the panels of a row, of its views and of its folds."""
    views = row.views.panels.values() if row.views else ()
    named = (
        row.panels,
        *(each.panels for each in row.folds.values()),
        *(names for _, names in views),
    )
    return {name for names in named for name in names}


# Panels whose formulas stand above their figures.
FORMULA_FIRST = {name for row in ROWS.values() if row.formula_first for name in _panels(row)}


def labels(tab: Tab) -> dict[str, str]:
    """The labels of the rows of a tab, by their ids; none of a tab of one."""
    return {tab.id: tab.label} | {each.id: each.title for each in tab.beside} if tab.beside else {}


def first_tab(place: str) -> str:
    """The tab that a place opens on."""
    return PLACES[place].tabs[0].id


def tab_in(place: str, word: str) -> str:
    """The row that a word of an address of a place names, also one of another place, where it may
    have stood before; the one that the place opens on where there is none of that name."""
    return word if word in ROWS else first_tab(place)


def title(row: str) -> str:
    """The title of a row, with its tab and its place."""
    tab = tab_of(row)
    place = PLACES[place_of(row)].title
    of_tab = tab.title if tab.title == place else f"{place}: {tab.title}"
    return of_tab if row == tab.id else f"{of_tab} ({ROWS[row].title})"


def address(row: str, choices: Mapping[str, str]) -> str:
    """The address, path and query, of a row under these choices."""
    place = place_of(row)
    parameters = dict(choices) if row == first_tab(place) else {"tab": row, **choices}
    query = urlencode(parameters)
    return f"/{'' if place == FIRST else place}{'?' + query if query else ''}"
