"""A choice of a panel, declared once: in the panel's signature.

    @spec.panel
    def heads(run: Run, measure: Annotated[str, Choice(MEASURES, "Show", name="writer")] = "Length")

What follows from it: the name in the address with its default and scope, the refusal of a value
that is no option, the widget of the tab, `--choose` of the command line, the row of the
reference."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from explorer.text.templates import sentences
from models.run import Run

REFUSALS = sentences("selection", "refusals")
KINDS = sentences("selection", "kinds")
Options = Sequence[Any] | Mapping[Any, str]
# What a run and the choices made so far (by their arguments) leave to choose from, or suggest, and
# whether they leave a choice at all.
OptionsOf = Callable[[Run, Mapping[str, Any]], Options]
Suggestion = Callable[[Run, Mapping[str, Any]], Any]
Condition = Callable[[Run, Mapping[str, Any]], bool]
TRUE, FALSE = "1", "0"  # the words of yes and no in an address


@dataclass(frozen=True)
class Choice:
    """Way in which a reader makes a choice of a panel.

    options: its values, or their labels by value, or a function that gives them; () for any value
    of its type; where a function leaves less than two there is no widget. label: what its widget is
    called, "" for one that is made by a press in a picture. name: its name in an address, "" for
    that of the argument. of: it is forgotten with the "text" or the "model", with neither where "".
    suits: the value that the panel takes where it is given its default, where it depends on the
    run. accepts: what a value must pass that is no option. typed: the value of what is typed into
    its field, or into its menu in the place of an option, and a sentence on it. when: where there
    is such a choice; elsewhere it has its default. clears: names of choices that end where another
    value is chosen. menu: its widget stands in the View menu. help: what its widget explains.
    made_by: of an argument that is another run, the function that makes it of the run on screen and
    of choices of its own, which stand in the address in the place of this one.
    """

    options: Options | OptionsOf = ()
    label: str = ""
    name: str = ""
    of: str = ""
    suits: Suggestion | None = None
    accepts: Callable[[Any], bool] | None = None
    typed: Callable[[Run, str], tuple[Any, str]] | None = None
    when: Condition | None = None
    clears: tuple[str, ...] = ()
    menu: bool = False
    help: str = ""
    made_by: Callable[..., Run] | None = None


@dataclass(frozen=True)
class Parameter:
    """An argument of a panel function: its name, its type, its default, and how it is chosen, None
    for one that no reader chooses."""

    argument: str
    kind: type
    is_optional: bool
    default: Any
    choice: Choice | None

    @property
    def name(self) -> str:
        """Its name in an address."""
        return (self.choice.name if self.choice else "") or self.argument

    @property
    def of(self) -> str:
        """With what it is forgotten: the "text", the "model", or neither, ""."""
        return self.choice.of if self.choice else ""

    @cached_property
    def first(self) -> str:
        """The word that an address means which does not name it."""
        return self.word(self.default)

    def is_there(self, run: Run, chosen: Mapping[str, Any]) -> bool:
        """True where there is such a choice."""
        when = self.choice.when if self.choice else None
        return when is None or when(run, chosen)

    def values(self, run: Run, chosen: Mapping[str, Any]) -> Options:
        """The values to choose from, as the choice declares it."""
        options = self.choice.options if self.choice else ()
        return options(run, chosen) if callable(options) else options

    def allows(self, run: Run, chosen: Mapping[str, Any], value: Any) -> bool:
        """True for a value that can be chosen."""
        if self.choice is not None and self.choice.options:
            return value in self.values(run, chosen)
        accepts = self.choice.accepts if self.choice else None
        return accepts is None or accepts(value)

    def options(self, run: Run, chosen: Mapping[str, Any]) -> Mapping[Any, str]:
        """The labels by value that there are to choose from."""
        options = self.values(run, chosen)
        if isinstance(options, Mapping):
            return options
        return {value: value if isinstance(value, str) else f"{value:g}" for value in options}

    def word(self, value: Any) -> str:
        """A value as a word of an address."""
        if value is None:
            return ""
        if self.kind is bool:
            return "" if value == self.default else TRUE if value else FALSE
        if self.kind is tuple:
            return ".".join(map(str, value))
        return f"{value:g}" if self.kind is float else str(value)

    def parse(self, word: str) -> Any:
        """The value of a word. Raises ValueError for one that is none of its type."""
        if word == "" and self.is_optional:
            return None
        if self.choice is not None and self.choice.made_by is not None:
            names = ", ".join(each.name for each in choices_of(self.choice.made_by))
            raise ValueError(f"{self.argument} is {word!r}; it is made of {names}")
        if self.kind is bool:
            if word not in ("", TRUE, FALSE, "True", "False"):
                raise ValueError(f"{self.argument} is {word!r}; it must be {TRUE} or {FALSE}")
            return word in (TRUE, "True") if word else self.default
        if self.kind is tuple:
            numbers = word.split(".")
            if len(numbers) != 2 or not all(each.isdecimal() for each in numbers):
                raise ValueError(f"{self.argument} is {word!r}; it must be two numbers, as in 1.3")
            return int(numbers[0]), int(numbers[1])
        if self.kind in (int, float):
            try:
                return self.kind(word)
            except ValueError:
                raise ValueError(f"{self.argument} is {word!r}; it must be a number") from None
        return word

    def expect(self, value: Any) -> None:
        """Raises TypeError for a value of another type, and ValueError for one that is none of the
        options, where these are the same for every run."""
        if value is not self.default and not self._is_of_kind(value):
            kind = KINDS(self.kind.__name__)
            raise TypeError(REFUSALS("no_kind", name=self.argument, kind=kind, value=value))
        options = self.choice.options if self.choice else ()
        if value == self.default or not options or callable(options):
            return
        accepts = self.choice.accepts if self.choice else None
        if value not in options and (accepts is None or not accepts(value)):
            names = ", ".join(listed(options))
            raise ValueError(REFUSALS("no_choice", name=self.argument, value=value, names=names))

    def _is_of_kind(self, value: Any) -> bool:
        """True for a value of its type, and for None where it may be left open. A truth value is no
        number."""
        if value is None:
            return self.is_optional
        if self.kind is tuple:
            return (
                isinstance(value, (tuple, list)) and len(value) == 2 and all(map(_is_whole, value))
            )
        if self.kind is int:
            return _is_whole(value)
        if self.kind is float:
            return isinstance(value, Real) and not isinstance(value, bool)
        return isinstance(value, self.kind)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def listed(options: Options) -> list[str]:
    """Options in words, a range by its ends: ["2", "4 … 1024"]."""
    if not isinstance(options, range):
        return [str(each) for each in options]
    *first, last = map(str, options[: 1 + (options.step > 1)])
    return [*first, f"{last} … {options[-1]}"]


@cache
def parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The arguments of a panel function, or of a tab that is drawn by hand, but its run."""
    hints = get_type_hints(function, include_extras=True)
    return tuple(
        _parameter(name, hints[name], each.default)
        for name, each in inspect.signature(function).parameters.items()
        if name != "run"
    )


def declared(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The choices that a function declares."""
    return tuple(each for each in parameters(function) if each.choice is not None)


def by_name(declared: Mapping[str, Sequence[Parameter]]) -> dict[str, dict[str, Parameter]]:
    """Choices by their names in an address, of each by who declares it. Raises ValueError where two
    mean different things by one name."""
    declarers: dict[str, dict[str, Parameter]] = {}
    for who, choices in declared.items():
        for each in choices:
            others = declarers.setdefault(each.name, {})
            if any((other.first, other.of) != (each.first, each.of) for other in others.values()):
                raise ValueError(
                    f"{who} means something else by {each.name} than {', '.join(others)}"
                )
            others[who] = each
    return declarers


def arguments_of(function: Callable[..., Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some choices that a panel function takes."""
    arguments = {each.argument for each in parameters(function)}
    return {name: value for name, value in chosen.items() if name in arguments}


def choices_of(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The choices of an address that a panel function declares; in the place of another run those
    of which it is made."""
    choices: list[Parameter] = []
    for each in declared(function):
        made_by = each.choice.made_by if each.choice else None
        choices += [each] if made_by is None else choices_of(made_by)
    return tuple(choices)


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    choice = None
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        choice = next((each for each in notes if isinstance(each, Choice)), None)
    of_union = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [get_origin(each) or each for each in of_union if each is not NoneType]
    return Parameter(name, kinds[0], NoneType in of_union, default, choice)


MANY_LAYERS = 12  # beyond which a model is shown by whole layers at first


def is_deep(run: Run) -> bool:
    """True for a model of so many layers that they are shown whole at first."""
    return run.recording().model.n_layer > MANY_LAYERS


# The choice between whole layers and their sub-layers; None: what suits the model.
WHOLE_LAYERS = Choice((True, False), "Whole layers", name="blocks", menu=True)
