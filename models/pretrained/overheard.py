"""Everything that passes through a model's modules in a run, and the search for a value in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, nn

from models.pretrained.hooks import AttentionCall, Pass, Place, first_tensor, listening

# How far apart two computations of the same number may be, in relation to the largest.
SAME = 1e-5


@dataclass(frozen=True)
class Moment:
    """A tensor that came by on the probe: at which place, of a module of which name, and whether
    that module has none inside it."""

    place: Place
    name: str
    value: Tensor

    @property
    def leaf(self) -> bool:
        return not any(self.place.module.children())


@dataclass
class Seen:
    """The log with each moment's value as (token, d_model) where it has that shape, and the search
    for a value in it."""

    log: list[Moment | AttentionCall]
    n: int
    d_model: int
    values: list[Tensor | None] = field(init=False)

    def __post_init__(self) -> None:
        self.values = [self._as_vectors(moment) for moment in self.log]

    def _as_vectors(self, moment: Moment | AttentionCall) -> Tensor | None:
        if isinstance(moment, AttentionCall) or not moment.value.is_floating_point():
            return None
        value = (
            moment.value[0] if moment.value.dim() == 3 and len(moment.value) == 1 else moment.value
        )
        return value if value.shape == (self.n, self.d_model) else None

    def moment(self, at: int) -> Moment:
        """What came by at a time when a tensor did."""
        moment = self.log[at]
        assert isinstance(moment, Moment)
        return moment

    def vectors(self, at: int) -> Tensor:
        """The vectors (token, d_model) of a time when there were some."""
        value = self.values[at]
        assert value is not None
        return value

    def first(self, value: Tensor, begin: int, end: int) -> int | None:
        """When a value first comes by, from `begin` up to before `end`."""
        return next(
            (
                at
                for at in range(begin, end)
                if (found := self.values[at]) is not None and same(found, value)
            ),
            None,
        )

    def outs(self, begin: int, end: int) -> list[tuple[int, Moment]]:
        """What modules gave in a stretch of time, in order."""
        return [
            (at, moment)
            for at, moment in enumerate(self.log[begin:end], begin)
            if isinstance(moment, Moment)
            and self.values[at] is not None
            and moment.place.side == "out"
        ]

    def came(self, out: int) -> int | None:
        """When the module that gave something had read its input, None where it read no tensor."""
        place = self.moment(out).place
        wanted = Place(place.module, "in", place.call).key
        return next(
            (
                at
                for at in range(out, -1, -1)
                if isinstance(moment := self.log[at], Moment) and moment.place.key == wanted
            ),
            None,
        )

    def read_by(self, out: int) -> Tensor | None:
        """The vectors that the module read which gave something, None where these were none."""
        came = self.came(out)
        return None if came is None else self.values[came]

    def norm_of(self, value: Tensor, begin: int, end: int) -> int | None:
        """When a LayerNorm that had read this value gave its result."""
        for at, moment in self.outs(begin, end):
            if is_norm(moment) and (read := self.read_by(at)) is not None and same(read, value):
                return at
        return None


def everything(model: nn.Module, run: Callable[[], object]) -> list[Moment | AttentionCall]:
    """All that modules read and give during a run, in order, with the calls of our attention
    function in between."""
    log: list[Moment | AttentionCall] = []
    calls: Counter = Counter()

    def note(name: str, module: nn.Module, side: str, values: object) -> None:
        if (value := first_tensor(values)) is not None:
            log.append(Moment(Place(module, side, calls[name]), name, value.clone()))

    def before(name: str) -> Callable:
        return lambda module, args, kwargs: note(name, module, "in", (*args, *kwargs.values()))

    def after(name: str) -> Callable:
        def went(module: nn.Module, args: tuple, output: object) -> None:
            note(name, module, "out", output)
            calls[name] += 1

        return went

    hooks = []
    try:
        for name, module in model.named_modules():
            hooks += [
                module.register_forward_pre_hook(before(name), with_kwargs=True),
                module.register_forward_hook(after(name)),
            ]
        with listening(Pass(keeps=False, told=log.append)):
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return log


def is_norm(moment: Moment | AttentionCall) -> bool:
    """True for LayerNorm, RMSNorm and their kin: a module with none inside it and one gain for each
    dimension."""
    if isinstance(moment, AttentionCall) or not moment.leaf:
        return False
    weight = getattr(moment.place.module, "weight", None)
    return (
        isinstance(weight, Tensor)
        and weight.dim() == 1
        and weight.shape[0] == moment.value.shape[-1]
    )


def in_layer(moment: Moment) -> bool:
    """True where the module is one of a numbered layer's."""
    return any(part.isdigit() for part in moment.name.split("."))


def same(a: Tensor, b: Tensor) -> bool:
    """True where two computations of a number agree to `SAME` of the largest."""
    return a.shape == b.shape and bool((a - b).abs().max() <= SAME * b.abs().max().clamp(min=1e-3))
