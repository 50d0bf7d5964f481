"""Words of a link: the tab that it leads to, the text and the model that it opens, and its choices,
as people write them, as they were shared before today's names, and as the app has them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl, urlsplit

from explorer.analysis.findings import word_groups
from explorer.panels.choice import EVERY
from explorer.text import places
from explorer.wording.templates import sentences
from models.contract.recording import Recording
from models.contract.spelling import there_are
from models.example_texts import ASKED_TEXT, DEFAULT_MODEL, DEFAULT_TEXT, OPENING_TEXT
from models.runtime import registry

SCREEN = sentences("selection", "screen")

# Names and words of links that were shared before the choices of panels had their own.
EARLIER_NAMES = {
    "seen": "masked",
    "anatomy_cell": "weight_at",
    "att_word": "selected",
    "att_right": "verify",
    "other_what": "compare",
}
EARLIER_WORDS = {
    ("verify", "Open"): "1",
    ("tone", "Linear"): "",
    ("tone", "Log"): "1",
    ("att_sum", "As they are"): "",
    ("att_sum", "Renormalised"): "1",
    ("grid", "Grid"): "",
    ("grid", "List"): "1",
    ("lag", "8"): "",
    ("masked", "yes"): "0",
    ("brush", "Zero"): "zero",
    ("brush", "Mean"): "mean",
    ("brush", "Even"): "uniform",
    ("other_tone", "Linear"): "",
    ("other_tone", "Log"): "1",
    ("write", "Turned"): "Rotation angle",
    ("write", "Written"): "Update norm",
    ("write", "Norm"): "State norm",
    ("spread", "Linear"): "",
    ("spread", "Log"): "1",
    ("blocks", "Sub-layers"): "0",
    ("blocks", "Layers"): "1",
    ("look_temperature", "∞"): "inf",
    ("look_layout", "Arcs"): "arcs",
    ("look_layout", "Circle"): "circle",
    ("look_heads", "One"): "",
    ("look_heads", "Mean"): "1",
    ("claim", "convex"): "weighted-sum",
    ("claim", "variance-grows"): "variance",
    ("claim", "mask-is-zero"): "mask",
    ("claim", "future-blind"): "mask",
    ("claim", "start"): "embedding",
    ("claim", "product-is-distance"): "position-products",
    ("claim", "left-is-right"): "position-products",
    ("claim", "low-is-fast"): "sinusoids",
    ("claim", "shift-is-rotation"): "shift",
    ("claim", "identity-plus"): "jacobian",
    ("claim", "gradient-with"): "jacobian-product",
    ("claim", "gradient-without"): "jacobian-product",
    ("claim", "summed-axis"): "rows",
    ("claim", "asymmetric"): "scorings",
    ("claim", "alone"): "ffn",
    ("claim", "adds"): "added",
    ("claim", "order-matters"): "permutation",
    ("claim", "concatenate"): "concatenation",
    ("claim", "sphere"): "layer-norm",
    ("claim", "order-blind"): "permutation",
    ("claim", "blind-decoder"): "permutation",
    ("claim", "even-is-sine"): "sinusoids",
    ("claim", "rows-sum"): "rows",
    ("claim", "steps-agree"): "chain",
    ("claim", "reshape"): "width",
    ("claim", "head-scale"): "score",
    ("claim", "zero-and-one"): "layer-norm",
    ("claim", "both-sides"): "mask",
    ("claim", "cross-from-encoder"): "cross",
    ("order", "Shuffle"): "Shuffled",
    ("order", "Retype"): "Typed",
    ("plane", "PCA"): "",
    ("plane", "Words"): "1",
    ("length", "Kept"): "",
    ("length", "Removed"): "1",
    ("sums", "States"): "",
    ("sums", "Sums"): "1",
    ("specials", "Hidden"): "",
    ("specials", "Shown"): "1",
    ("trails", "Chosen"): "",
    ("trails", "All"): "1",
    ("frame", "All"): "",
    ("frame", "Close"): "1",
    ("against", "none"): "-1",
}
# How people write a head: layer 1, head 5 is "1.5".
HEAD_OF_LAYER = re.compile(r"(\d+)\.(\d+)")
EDITS = ("edits", "other_edits")  # the words that hold edits
# A head that is switched off, as `edits` has it; a link says "off=1.5".
SWITCHED_OFF = re.compile(r"ZeroHead:(\d+):(\d+):self")
# Choices that opened a part of their tab before a link named the part: the part's choice and name.
EARLIER_PARTS = dict.fromkeys(("plane", "curve", "anchors"), ("space", "Anchors"))


WORD = "word:"  # before a word of the text that is also a word of addresses, as in "word:every"
OF_TEXT = ("token", "source")  # which a link may say as words of the text
EVERY_OF = ("layer", "head", "token")  # which an empty word meant all of


def tab_and_words(address: str) -> tuple[str, dict[str, str]]:
    """The id of the tab and the other words of an address: "/predict?tab=lens&word=it", of the
    query alone "?tab=lens&word=it", or below any server. Raises ValueError for a tab that is not
    there."""
    parts = urlsplit(address)
    words = dict(reversed(parse_qsl(parts.query, keep_blank_values=True)))
    place = parts.path.rstrip("/").rpartition("/")[2]
    if place not in places.PLACES:
        return tab_of(words.pop("tab", "")), words
    return tab_of(words.pop("tab", "") or places.first_tab(place)), words


def no_place(address: str) -> str:
    """A sentence on the path of an address that leads to no place, "" for one that does, for one
    whose query names the tab, and for that of a server."""
    parts = urlsplit(address)
    place = parts.path.rpartition("/")[2]
    if not place or place in places.PLACES or "tab" in dict(parse_qsl(parts.query)):
        return ""
    there = there_are(place, places.PLACES)
    return SCREEN("no_place", place=place, there=there, shown=places.title(tab_of("")))


def tab_of(word: str) -> str:
    """The id of a tab, that of the first one where "". Raises ValueError for one that is not
    there."""
    tab = word or places.first_tab(places.FIRST)
    if tab not in places.ROWS:
        raise ValueError(SCREEN("no_tab", tab=tab, there=there_are(tab, places.ROWS)))
    return tab


def opening(tab: str) -> tuple[str, str]:
    """The text and the model that a bare address of a tab opens."""
    row = places.ROWS[tab]
    if row.needs == "generation" and registry.SMOLLM2 in registry.names():
        return ASKED_TEXT, registry.SMOLLM2
    return OPENING_TEXT if row.text == DEFAULT_TEXT else row.text, DEFAULT_MODEL


def text_and_model(
    words: Mapping[str, str], tab: str, bare: tuple[str, str] | None = None
) -> tuple[str, str]:
    """The text and the model that an address of a tab asks for. bare: those that one means which
    says nothing, or a newer view alone, as `opening` where None."""
    row = places.ROWS[tab]
    more = {name: word for name, word in words.items() if name != "tab"}
    is_newer = row.views is not None and more in [{row.views.choice: to} for to in row.views.newer]
    text, model = (row.text, DEFAULT_MODEL) if more and not is_newer else bare or opening(tab)
    return words.get("text", text), words.get("model", model)


def with_key(parameters: Mapping[str, str]) -> dict[str, str]:
    """Parameters that say the key of the selected row by itself: a cell is a row and its key; one
    of another row, or without one, says nothing. So they do a head of two runs."""
    named = dict(parameters)
    if pair := HEAD_OF_LAYER.fullmatch(named.get("head_of_a", "")):
        del named["head_of_a"]
        named["layer"], named["head"] = pair.groups()
    query, _, key = named.pop("weight_at", "").partition(".")
    if key and query == named.get("token") and not named.get("source"):
        named["source"] = key
    return named


def as_followed(
    parameters: Mapping[str, str], refused: Collection[str], asked: Collection[str]
) -> dict[str, str]:
    """Parameters without those of the names `asked` that are refused, and without a cell of another
    row."""
    followed = {
        name: word for name, word in parameters.items() if not (name in refused and name in asked)
    }
    if "source" in asked and ("source" in refused or not with_key(followed).get("source")):
        followed.pop("weight_at", None)
    return followed


def in_todays_words(parameters: Mapping[str, str], tab: str = "") -> dict[str, str]:
    """Parameters of a link, by the names and in the words of today; without the tab where that is
    known, `tab`."""
    named = {
        EARLIER_NAMES.get(name, name): word
        for name, word in parameters.items()
        if not tab or name != "tab"
    }
    views = places.ROWS[tab].views if tab else None
    if views and views.earlier and named:
        named = {views.choice: views.earlier} | named
    for part, open_part in {EARLIER_PARTS[name] for name in EARLIER_PARTS.keys() & named.keys()}:
        named.setdefault(part, open_part)
    if "tour" in named:  # whose steps are those of a lesson
        named = {"lesson": "lecture", **named}
    numbers = named.pop("other_pair", "").split(".")  # of a head of A, and of one of B
    if len(numbers) in (2, 4):
        named |= {"layer": numbers[0], "head": numbers[1], "head_of_b": ".".join(numbers[2:])}
    if "train_pair" in named:  # both models with a slash between them
        named["train_pair"] = named["train_pair"].rpartition(" / ")[2]
    pair = HEAD_OF_LAYER.fullmatch(named.get("head", ""))
    if pair and "layer" not in named:
        named["layer"], named["head"] = pair.groups()
    heads = [HEAD_OF_LAYER.fullmatch(each) for each in named.get("off", "").split(",")]
    edits = ",".join(f"ZeroHead:{each[1]}:{each[2]}:self" for each in heads if each)
    if all(heads) and named.get("edits", edits) == edits:
        del named["off"]
        named["edits"] = edits
    if not named.get("word", "0").isdecimal() and "token" not in named:  # a number is a word's id
        named["token"] = named.pop("word")
    if named.pop("selected", "") == "none":
        named.setdefault("token", "")
    named |= {name: EVERY for name in EVERY_OF if named.get(name) == ""}
    return {name: EARLIER_WORDS.get((name, word), word) for name, word in named.items()}


def written(parameters: Mapping[str, str]) -> dict[str, str]:
    """Parameters of the app as a link has them: where the edits are heads that are switched off,
    these heads alone."""
    named = dict(parameters)
    heads = [SWITCHED_OFF.fullmatch(each) for each in named.get("edits", "").split(",")]
    if all(heads):
        del named["edits"]
        named["off"] = ",".join(f"{each[1]}.{each[2]}" for each in heads if each)
    return named


def followed(recording: Recording, words: Mapping[str, str]) -> dict[str, str]:
    """The words of a link with the places of the words of the text that it names: among those of
    the attention, or of the stream, that it asks for, else of the first. A name that no word has
    stays."""
    first = recording.streams[0].name
    between = {each.name: (each.query, each.key) for each in recording.attention}
    query, key = between.get(
        words.get("attention", ""), next(iter(between.values()), (first, first))
    )
    if words.get("stream", "") in [each.name for each in recording.streams]:
        query = words["stream"]
    now = dict(words)
    for name, stream in zip(OF_TEXT, (query, key)):
        word = words.get(name, "")
        if word and not word.isdecimal() and word != EVERY:
            at = token_of_word(word, recording, stream)
            now[name] = word if at is None else str(at)
    return now


def token_of_word(word: str, recording: Recording, stream: str) -> int | None:
    """The first token of the first word of a stream that is spelled so, else of the first that is
    so in other capitals, None for none."""
    spelled = word.removeprefix(WORD)
    groups = word_groups(recording, stream)
    there = list(zip(groups.labels, groups.starts))
    alike = [at for word, at in there if word.casefold() == spelled.casefold()]
    exact = [at for word, at in there if word == spelled]
    return next(iter(exact or alike), None)
