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

from explorer.wording.templates import sentences
from models.contract.edits import InputEdit
from models.runtime.run import Run

REFUSALS = sentences("selection", "refusals")
KINDS = sentences("selection", "kinds")
Options = Sequence[Any] | Mapping[Any, str]
# What a run and the choices made so far (by their arguments) leave to choose from, and whether they
# leave a choice at all.
OptionsOf = Callable[[Run, Mapping[str, Any]], Options]
Condition = Callable[[Run, Mapping[str, Any]], bool]
TRUE, FALSE = "1", "0"  # the words of yes and no in an address

# The selection: what every tab shows a part of, in the order in which one is chosen in another.
SELECTION = ("attention", "stream", "layer", "head", "token", "source")
EVERY = "every"  # of a selection: all heads, or no word
# The default of an argument of the selection: what the text opens on, or EVERY, as it `suits`.
OPENS: Any = None


@dataclass(frozen=True)
class Choice:
    """Way in which a reader makes a choice of a panel.

    options: its values, or their labels by value, or a function that gives them; () for any value
    of its type; where a function leaves less than two there is no widget. label: what its widget is
    called, "" for one that is made by a press in a picture. name: its name in an address, "" for
    that of the argument. of: it is forgotten with the "text" or the "model", with neither where "".
    suits: the value that the panel takes where it is given its default, or a function that gives it
    of the run and the choices made so far. takes_every: EVERY is a value too, for which the panel's
    function gets None. checked: gives the value of one that is there, in one way of writing it, and
    raises ValueError for any other. spelled: the word of a value in an address, "" for what such an
    address means without one. named: gives the value of a word of the text that is said in its
    place, and raises ValueError for one that is not there. accepts: what a value must pass that is
    no option. typed: the value of what is typed into its field, or into its menu in the place of an
    option, and a sentence on it. when: where there is such a choice; elsewhere it has its default.
    clears: names of choices that end where another value is chosen. menu: its widget stands in the
    View menu. help: what its widget explains.
    made_by: of an argument that is another run, the function that makes it of the run on screen and
    of choices of its own, which stand in the address in the place of this one. reads: of one that
    says what is read, gives of a run and the choices, of which those that are not made are left
    out, the run that is read and the arguments that are known by that.
    """

    options: Options | OptionsOf = ()
    label: str = ""
    name: str = ""
    of: str = ""
    suits: Any = None
    takes_every: bool = False
    checked: Callable[[Run, Mapping[str, Any], Any], Any] | None = None
    spelled: Callable[[Run, Any], str] | None = None
    named: Callable[[Run, Mapping[str, Any], str], Any] | None = None
    accepts: Callable[[Any], bool] | None = None
    typed: Callable[[Run, str], tuple[Any, str]] | None = None
    when: Condition | None = None
    clears: tuple[str, ...] = ()
    menu: bool = False
    help: str = ""
    made_by: Callable[..., Run] | None = None
    reads: Callable[[Run, Mapping[str, Any]], tuple[Run, dict[str, Any]]] | None = None


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

    @property
    def takes_words(self) -> bool:
        """True for a number in whose place a word may be said: of the text, or of the
        vocabulary."""
        choice = self.choice if self.kind is int else None
        return choice is not None and bool(choice.named or choice.typed)

    @property
    def is_selected(self) -> bool:
        """True for a part of the selection."""
        return self.choice is not None and self.name in SELECTION

    def is_there(self, run: Run, chosen: Mapping[str, Any]) -> bool:
        """True where there is such a choice."""
        when = self.choice.when if self.choice else None
        return when is None or when(run, as_taken(chosen))

    def values(self, run: Run, chosen: Mapping[str, Any]) -> Options:
        """The values to choose from, as the choice declares it."""
        options = self.choice.options if self.choice else ()
        return options(run, as_taken(chosen)) if callable(options) else options

    def suited(self, run: Run, chosen: Mapping[str, Any]) -> Any:
        """The value that the panel takes where it is given its default."""
        suits = self.choice.suits if self.choice else None
        if callable(suits):
            return suits(run, as_taken(chosen))
        return self.default if suits is None else suits

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

    def spelled(self, run: Run, value: Any) -> str:
        """A value as the word of an address, "" for what an address of this run means without
        one."""
        if self.choice is not None and self.choice.spelled is not None:
            return self.choice.spelled(run, value)
        suits = self.choice.suits if self.is_selected and self.choice else None
        return "" if not callable(suits) and value == suits else self.word(value)

    def is_first(self, run: Run, value: Any) -> bool:
        """True for the value that an address of this run means which does not name it."""
        made_by = self.choice.made_by if self.choice else None
        if made_by is None or value is None:
            is_spelled = self.is_selected or (self.choice and self.choice.spelled)
            return not self.spelled(run, value) if is_spelled else value == self.default
        try:
            return bool(value == made_by(run))
        except ValueError:  # nothing stands beside such a run by itself
            return False

    def parse(self, word: str) -> Any:
        """The value of a word. Raises ValueError for one that is none of its type."""
        if word == "" and (self.is_optional or self.is_selected):
            return None
        if word == EVERY and self.choice is not None and self.choice.takes_every:
            return EVERY
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
        return self._number(word) if self.kind in (int, float) else word

    def _number(self, word: str) -> Any:
        """The number that a word is, or the word where one may be said in its place."""
        try:
            return self.kind(word)
        except ValueError:
            if self.takes_words:
                return word
            raise ValueError(f"{self.argument} is {word!r}; it must be a number") from None

    def expect(self, value: Any) -> None:
        """Raises TypeError for a value of another type, and ValueError for one that is none of the
        options, where these are the same for every run."""
        if value is not self.default and not self._is_of_kind(value):
            kind = KINDS("int_or_word" if self.takes_words else self.kind.__name__)
            raise TypeError(REFUSALS("no_kind", name=self.argument, kind=kind, value=value))
        options = self.choice.options if self.choice else ()
        if value == self.default or not options or callable(options):
            return
        accepts = self.choice.accepts if self.choice else None
        if value not in options and (accepts is None or not accepts(value)):
            names = ", ".join(listed(options))
            raise ValueError(REFUSALS("no_choice", name=self.argument, value=value, names=names))

    def _is_of_kind(self, value: Any) -> bool:
        """True for a value of its type, for None where it may be left open, and for EVERY where it
        takes that. A truth value is no number."""
        if value is None:
            return self.is_optional
        if isinstance(value, str) and value == EVERY and self.choice and self.choice.takes_every:
            return True
        if isinstance(value, str) and self.takes_words:
            return bool(value)
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


def as_taken(chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Choices as a panel's function takes them: None for EVERY."""
    if EVERY not in chosen.values():
        return chosen
    every = (name for name in SELECTION if chosen.get(name) == EVERY)
    return {**chosen, **dict.fromkeys(every)}


def completed(
    parameters: Sequence[Parameter],
    run: Run,
    chosen: Mapping[str, Any],
    refused: dict[str, str] | None = None,
) -> dict[str, Any]:
    """The selection among some arguments: what is chosen of it, and of the rest what suits. Raises
    ValueError for what is not there, unless such go into `refused`, by their names in an address
    with a sentence on each; then what a panel cannot open on is None, for which it says why."""
    now = dict(chosen)
    selection = [each for each in parameters if each.is_selected]
    selection.sort(key=lambda each: SELECTION.index(each.name))
    # The attention and the stream come first: the rest is checked in them before any of it follows.
    for each in selection:
        now[each.argument] = _checked(each, run, now, refused)
        if each.kind is str:
            now[each.argument] = _suited(each, run, now, refused)
    for each in selection:
        now[each.argument] = _suited(each, run, now, refused)
    return {each.argument: now[each.argument] for each in selection}


def with_numbers(
    parameters: Sequence[Parameter],
    run: Run,
    chosen: Mapping[str, Any],
    refused: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Choices with the numbers of the words that are said in the place of some. Raises ValueError
    for a word that is not there, unless such go into `refused`, by their names in an address with a
    sentence on each; then it is not chosen."""
    now = dict(chosen)
    for each in parameters:
        value = now.get(each.argument)
        if not each.takes_words or not isinstance(value, str) or value == EVERY:
            continue
        try:
            now[each.argument] = _number_of(each, run, now, value)
        except ValueError as why:
            if refused is None:
                raise
            refused[each.name] = str(why)
            now[each.argument] = each.default
    return now


def _number_of(parameter: Parameter, run: Run, chosen: Mapping[str, Any], word: str) -> Any:
    choice = parameter.choice
    if choice is not None and choice.named is not None:
        return choice.named(run, as_taken(chosen), word)
    number, why = choice.typed(run, word) if choice and choice.typed else (None, "")
    if number is None:
        raise ValueError(f"{parameter.argument} is {word!r}. {why}".strip())
    return number


def _checked(
    parameter: Parameter, run: Run, chosen: Mapping[str, Any], refused: dict[str, str] | None
) -> Any:
    """The chosen value of a part of the selection, None for nothing and for what is refused."""
    value = chosen.get(parameter.argument)
    if value is None or value == EVERY or not (parameter.choice and parameter.choice.checked):
        return value
    try:
        return parameter.choice.checked(run, as_taken(chosen), value)
    except ValueError as why:
        if refused is None:
            raise
        refused[parameter.name] = str(why)
    return None


def parsed(
    parameters: Sequence[Parameter],
    words: Mapping[str, str],
    refused: dict[str, str],
    lenient: bool = False,
) -> dict[str, Any]:
    """The values of those arguments that words of an address name. What is no value goes into
    `refused`, and so does a place that is counted from the end, but where lenient."""
    values = dict[str, Any]()
    for each in parameters:
        if (word := words.get(each.name, each.first)) == each.first:
            continue
        try:
            value = each.parse(word)
            if each.is_selected and isinstance(value, int) and value < 0 and not lenient:
                raise ValueError(REFUSALS("no_choice", name=each.name, value=value, names="0 …"))
            values[each.argument] = value
        except ValueError as why:
            refused[each.name] = str(why)
    return values


def as_read(
    parameters: Sequence[Parameter], run: Run, chosen: Mapping[str, Any]
) -> tuple[Run, dict[str, Any]]:
    """The run that is read of a run where some arguments are chosen, and those known by that."""
    known = dict[str, Any]()
    for each in parameters:
        if each.choice is not None and each.choice.reads is not None:
            run, more = each.choice.reads(run, {**chosen, **known})
            known |= more
    return run, known


def as_opened(
    parameters: Sequence[Parameter], run: Run, chosen: Mapping[str, Any]
) -> tuple[Run, dict[str, Any]]:
    """The same of a panel that is asked for by itself. A recording that was handed in and a run
    whose edits change its input are read as they are, and so is any where something of the
    selection is chosen, but not what is read."""
    if run.contents or any(isinstance(each, InputEdit) for each in run.edits):
        return run, {}
    is_chosen = any(
        chosen.get(each.argument) is not None for each in parameters if each.is_selected
    )
    says = lambda each: chosen.get(each.argument, each.default) != each.default
    asked = [each for each in parameters if not is_chosen or says(each)]
    return as_read(asked, run, chosen)


def _suited(
    parameter: Parameter, run: Run, chosen: Mapping[str, Any], refused: dict[str, str] | None
) -> Any:
    """The chosen value of a part of the selection, else the one that suits."""
    if chosen[parameter.argument] is not None:
        return chosen[parameter.argument]
    try:
        return parameter.suited(run, chosen)
    except ValueError:
        if refused is None:
            raise
    return None


def resolve(
    parameters: Sequence[Parameter],
    run: Run,
    words: Mapping[str, str],
    known: Mapping[str, Any] | None = None,
    lenient: bool = False,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments of a panel function, each from its word among those of an address, or from what
    suits, and sentences on the words that are refused, by their names. known: arguments that no
    word is asked for. lenient: what is none of the options, or counts from the end, is let through,
    for the function to refuse."""
    chosen, refused = dict(known or {}), dict[str, str]()
    asked = [each for each in parameters if each.argument not in chosen]
    chosen |= {each.argument: each.default for each in asked}
    chosen |= parsed(asked, words, refused, lenient)
    chosen = with_numbers(asked, run, chosen, refused)
    chosen |= completed(asked, run, chosen, refused)
    for each in (each for each in asked if not each.is_selected):
        value = chosen[each.argument]
        if value == each.default or lenient:
            continue
        is_there = each.is_there(run, chosen)
        _checked(each, run, chosen, refused)
        if is_there and not each.allows(run, chosen, value):
            names = ", ".join(listed(each.values(run, chosen)))
            why = "no_choice" if names else "nothing"
            refused[each.name] = REFUSALS(why, name=each.name, value=value, names=names)
        if not is_there or each.name in refused:
            chosen[each.argument] = each.default
    return chosen, refused


def resolved(
    parameters: Sequence[Parameter],
    run: Run,
    words: Mapping[str, str],
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The arguments as `resolve` gives them to a function that refuses what it does not take.
    Raises ValueError for a word that is refused."""
    arguments, refused = resolve(parameters, run, words, known, lenient=True)
    for why in refused.values():
        raise ValueError(why)
    return arguments


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
