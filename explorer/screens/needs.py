"""The need that keeps a tab from being shown for a model: the sentence that says so, the model that
is shown instead, and the others that fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from explorer.text import places
from explorer.wording import templates
from explorer.wording.markdown_escape import literal
from models import model_names
from models.own import model_card
from models.runtime import host, registry
from models.runtime.caching import loaded

ADDRESS = templates.sentences("frame", "address")
PREFERRED = ("encoder", "decoder", "translator")  # for a tab that the chosen model does not fit


@dataclass(frozen=True)
class Need:
    """Requirement of tabs: which models fit, the first to show, and why another does not, in words
    that go on with "so this page shows"."""

    fits: Callable[[str], bool]
    fitting: Callable[[], tuple[str, ...]]
    first: Callable[[str], str]
    why: Callable[[str], str]


def _translates(model: str) -> bool:
    return model_card.facts(model)["kind"] == "encoder-decoder"


def _generates(model: str) -> bool:
    return _translates(model) and loaded(model).capabilities.writes


def _has_logits(model: str) -> bool:
    return bool(model_card.facts(model).get("readout", True))


def _predicts(model: str) -> bool:
    """True for a model that says words, or classes of a text."""
    return _has_logits(model) or bool(model_card.facts(model).get("classes"))


def _continues(model: str) -> bool:
    return model_card.facts(model)["kind"] == "decoder" and _has_logits(model)


def _has_checkpoints(model: str) -> bool:
    return bool(model_card.checkpoints(model)) or not model_card.with_checkpoints()


def _first_to_continue() -> str:
    """The model that continues a text where the chosen one does not."""
    is_there = registry.SMOLLM2 in registry.names() and not host.current.no_room(registry.SMOLLM2)
    return registry.SMOLLM2 if is_there else "decoder"


def _shipped(fits: Callable[[str], bool]) -> tuple[str, ...]:
    names = dict.fromkeys((*PREFERRED, *registry.names()))
    return tuple(name for name in names if name in registry.names() and fits(name))


def _why_not_written(model: str) -> str:
    if _translates(model):
        has_logits = bool(loaded(model).capabilities.logits)
        why = (
            "runs on the cluster and"
            if has_logits
            else f"{loaded(model).capabilities.no_readout} and"
        )
        return f"{why} cannot generate text here (Attention: Heads has its cross-attention)"
    return "does not translate"


def _why_not_continued(model: str) -> str:
    if _translates(model):
        return "writes translations alone"
    return "fills in masked words and writes no text" if _has_logits(model) else WORDS.why(model)


TRAINED = {"encoder": "encoder", "decoder": "decoder", "encoder-decoder": "translator-small"}
WORDS = Need(
    _has_logits,
    lambda: _shipped(_has_logits),
    lambda _: "encoder",
    lambda model: f"{loaded(model).capabilities.no_readout} and makes no predictions",
)
# By what a tab needs (`places.Tab.needs`); whatever else it may need, every model that runs has.
NEEDS: dict[places.Requirement, Need] = {
    "words": WORDS,
    "prediction": replace(WORDS, fits=_predicts),
    "generation": Need(
        _continues,
        lambda: _shipped(_continues),
        lambda _: _first_to_continue(),
        _why_not_continued,
    ),
    "translation": Need(
        _generates, lambda: _shipped(_translates), lambda _: "translator", _why_not_written
    ),
    # The model that is asked for the same on the same text: to fill in, to go on, or to translate.
    "trainings": Need(
        _has_checkpoints,
        model_card.with_checkpoints,
        lambda model: TRAINED[model_card.facts(model)["kind"]],
        lambda _: "has no training checkpoints",
    ),
}


@dataclass(frozen=True)
class Unmet:
    """A tab that cannot be shown for a model."""

    tab: str
    model: str

    @property
    def replacement(self) -> str:
        """The model that the tab is shown for instead; "" for none, where `sentence` stands in the
        place of the tab."""
        is_recorded = model_names.is_recorded(self.model)
        return "" if is_recorded else NEEDS[places.ROWS[self.tab].needs].first(self.model)

    @property
    def sentence(self) -> str:
        """The reason why there is nothing to show of a recording."""
        return templates.sentences("frame", "recorded")(self.tab)

    def instead(self, replacement: str) -> tuple[str, str]:
        """The reason why another model is shown than the chosen one, and which others fit."""
        need, name = NEEDS[places.ROWS[self.tab].needs], literal(model_names.title(self.model))
        why = f"{name} {need.why(self.model)}"
        title = literal(model_names.title(replacement))
        return (
            ADDRESS("fallback", why=why, replacement=title, name=name),
            ADDRESS("fitting", names=", ".join(map(model_names.title, need.fitting()))),
        )


def is_ready(model: str) -> bool:
    """True for a model of which it is known what it does."""
    return model_names.is_local(model) or host.current.is_loaded(model)


def title(tab: places.Tab, model: str) -> str:
    """The title of a tab for a model."""
    if not tab.titles or model_names.is_recorded(model) or not is_ready(model):
        return tab.title
    facts = model_card.facts(model)
    return tab.titles.get("classes" if facts.get("classes") else facts["kind"], tab.title)


def unmet(tab: str, model: str) -> Unmet | None:
    """The need that keeps a tab from being shown for a model, None where nothing does. A model that
    is not in memory yet is judged when it is."""
    needs = places.ROWS[tab].needs
    if model_names.is_recorded(model):
        return Unmet(tab, model) if needs else None
    if not is_ready(model) or needs not in NEEDS or NEEDS[needs].fits(model):
        return None
    return Unmet(tab, model)
