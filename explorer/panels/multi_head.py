"""The panels on the matrices of multi-head attention: what is multiplied with what and in which
shapes, the heads side by side before the output matrix, and the gradient that each head gets
through it."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from explorer.analysis import anatomy, gradients, logit_lens
from explorer.analysis.measure import MeasureContext
from explorer.analysis.soft_lookup import attention_input
from explorer.figures.formatting import Written, fixed, plural, power
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Factor,
    Frame,
    Matrix,
    Product,
    Steps,
    Strip,
    Strips,
    factor,
)
from explorer.figures.kinds import matrix as matrix_values
from explorer.panels import flow_way, spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    FirstAttention,
    Head,
    Layer,
    LookupHead,
    LookupLayer,
    LookupQuery,
    OpenedAttention,
    Query,
    Selection,
    expect_vectors,
    select,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.edits import HideToken
from models.runtime.caching import loaded
from models.runtime.run import Run

CONCEPT = "multi_head"
LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")  # below the line
PRODUCTS = {  # the symbols that each is of
    "token": ("q_i", "v_j", "W_Q", "W_V"),
    "tokens": ("q_i", "v_j", "W_Q", "W_V"),
    "scores": ("S", "Q", "K"),
    "outputs": ("Z", "A", "V"),
}
PRODUCT_FORMULAS = {"scores": ("matrices", "dot"), "outputs": ("matrices",)}
PRODUCT_STEP = Choice(name="shapes_step", help="the product that is shown")


# ---- shapes --------------------------------------------------------------------------------------


@spec.panel
def shapes(
    run: Run,
    layer: Layer = OPENS,
    head: Head = OPENS,
    token: Query = OPENS,
    step: Annotated[str, PRODUCT_STEP] = "",
    attention: OpenedAttention = OPENS,
) -> Panel:
    """The matrix products of one head with their shapes: one token's, all tokens', the scores, and
    the head's output.

    step: the product on show, such as "Q Kᵀ"; the first one where there is none of that name.
    Raises ValueError for what is not there, and for a model that does not give its queries, keys
    and values.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, token = selection.at
    expect_vectors(selection)
    words, of = sentences(CONCEPT, "shapes"), selection.attention
    made_by = ("cross",) if selection.is_across else ("projections", "values")
    (n, m), d, d_v = of.pattern.shape[2:], of.q.shape[-1], of.v.shape[-1]
    d_model = selection.recording.model.d_model
    slots = {
        **{"n": n, "m": m, "d": d, "d_v": d_v, "d_model": d_model},
        **{"vectors": plural(n, "vector"), "queries": plural(n, "query", "queries")},
        **{"keys": plural(m, "key"), "scores": plural(n * m, "score")},
        "products": plural(n * m, "dot product"),
        **selection.slots,
    }
    drawn = {
        "token": _projected(selection, [token]),
        "tokens": _projected(selection, range(n)),
        "scores": _scores(selection),
        "outputs": _outputs(selection),
    }
    frames = tuple(
        Frame(
            words(name),
            (Product(words(f"{name}_title", **slots), words(f"{name}_note", **slots), factors),),
            formulas=made_by if name in ("token", "tokens") else PRODUCT_FORMULAS[name],
            focus=PRODUCTS[name],
        )
        for name, factors in drawn.items()
    )
    rows = [
        (frame.label, each) for frame, factors in zip(frames, drawn.values()) for each in factors
    ]
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(Steps.opened(frames, step, "shapes_step"),),
        table={
            "product": [name for name, _ in rows],
            "matrix": [each.name for _, each in rows],
            "rows": [each.shape[0] for _, each in rows],
            "columns": [each.shape[1] for _, each in rows],
        },
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}H{head}-shapes",
        formulas=(*made_by, "matrices", "dot"),
        numbers={"scores": Written.count(n * m), "width": Written.count(d_model)},
    )


def _projected(selection: Selection, rows: range | list[int]) -> tuple[Factor, ...]:
    """The vectors of some tokens times W_Q, or W_V where queries are turned before they are used;
    boxes without numbers where the model does not give these."""
    of, layer, head = selection.attention, selection.layer, selection.head
    x = attention_input(selection.recording, of, layer)
    try:
        matrices = loaded(selection.recording).projections(of.name, layer)
    except (ValueError, AttributeError):
        matrices = {}
    letter = "q" if "q" in matrices or "v" not in matrices else "v"
    one = len(rows) == 1 and selection.attention.pattern.shape[2] > 1
    names = ("x" if one else "X", f"W_{letter.upper()}", letter if one else letter.upper())
    width = of.q.shape[-1] if letter == "q" else of.v.shape[-1]
    if x is None or letter not in matrices:
        sizes = (len(rows), selection.recording.model.d_model), (0, width)
        return (
            Factor(names[0], sizes[0]),
            Factor(names[1], (sizes[0][1], width), "·"),
            Factor(names[2], (len(rows), width), "=", selected=True),
        )
    w, bias = matrices[letter]
    groups = w.shape[1] // width  # of heads that share keys and values
    own = slice(width * (head * groups // of.q.shape[1]), None)
    w, bias = w[:, own][:, :width].astype(np.float64), bias[own][:width].astype(np.float64)
    inputs = x[list(rows)].astype(np.float64)
    biased = (factor("b", bias, "+"),) if bias.any() else ()
    product = factor(names[2], inputs @ w + bias, "=", selected=True)
    return factor(names[0], inputs), factor(names[1], w, "·"), *biased, product


def _scores(selection: Selection) -> tuple[Factor, ...]:
    """Q times K transposed: the dot products of a head, before scale and mask."""
    of, at = selection.attention, (selection.layer, selection.head)
    q, k = of.q[at].astype(np.float64), of.k[at].astype(np.float64)
    product = factor("Q Kᵀ", q @ k.T, "=", selected=True)
    return factor("Q", q), factor("Kᵀ", k.T, "·"), product


def _outputs(selection: Selection) -> tuple[Factor, ...]:
    """The weights of a head times its values."""
    of, at = selection.attention, (selection.layer, selection.head)
    a, v = of.pattern[at].astype(np.float64), of.v[at].astype(np.float64)
    allowed = np.nan_to_num(matrix_values(a, of.allowed[selection.layer]))
    return factor("A", allowed), factor("V", v, "·"), factor("Z", a @ v, "=", selected=True)


# ---- concatenation -------------------------------------------------------------------------------


@spec.panel
def concatenation(
    run: Run,
    layer: Layer = OPENS,
    head: Head = OPENS,
    token: Query = OPENS,
    attention: OpenedAttention = OPENS,
) -> Panel:
    """The outputs z of all heads at one query side by side, the output matrix, and the one vector
    that comes of both.

    Raises ValueError for what is not there, and for a model that does not give its values and W_O.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, token = selection.at
    expect_vectors(selection)
    words = sentences(CONCEPT, "concatenation")
    try:
        w_o, bias = loaded(selection.recording).outputs()[selection.attention.name]
    except (ValueError, AttributeError, KeyError):
        raise ValueError(words("no_output", model=selection.model)) from None
    of = selection.recording, selection.attention, layer, token
    outputs = anatomy.head_outputs(*of, (w_o, bias))
    if outputs is None:
        raise ValueError(words("other_text"))
    heads, d_v, d_model = w_o.shape[1:]
    names = tuple(str(each) for each in range(heads))
    slots = {
        **selection.slots,
        **{"heads": heads, "d_v": d_v, "wide": f"{heads * d_v:,}", "d_model": f"{d_model:,}"},
        "size": f"{heads * d_v * d_model:,}",
    }
    matrix = factor("W_O", w_o[layer].reshape(heads * d_v, d_model), "·", parts=names, down=True)
    biased = (factor("b", outputs.bias, "+"),) if outputs.bias.any() else ()
    z = factor(
        words("z", last=str(heads - 1).translate(LOW)), outputs.z.reshape(1, -1), parts=names
    )
    y = factor("y", outputs.total, "=", selected=True)
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(Product("", words("note", **slots), (z, matrix, *biased, y)),),
        table=_numbers(outputs),
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}-concatenation-q{token}",
        formulas=("concatenation",),
        focus=("W_O",),
        numbers={"side_by_side": Written.count(heads * d_v), "width": Written.count(d_model)},
    )


def _numbers(outputs: anatomy.HeadOutputs) -> spec.Columns:
    """z by head and dimension, and y by dimension, one below the other."""
    head, dimension = np.indices(outputs.z.shape)
    n = len(outputs.total)
    return {
        "vector": ["z"] * outputs.z.size + ["y"] * n,
        "head": [*head.ravel().tolist(), *[""] * n],
        "dimension": [*dimension.ravel().tolist(), *range(n)],
        "number": [*outputs.z.ravel().tolist(), *outputs.total.tolist()],
    }


# ---- backwards -----------------------------------------------------------------------------------


@spec.panel
def head_gradients(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQuery = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """The gradient of the loss that each head of a layer gets through its rows of W_O: its length,
    and its cosine with that of every other head.

    A model that fills in words has the selected word hidden, and its loss is of that word. Raises
    ValueError for what is not there, for one head alone, and for a model without a readout or in
    its own code.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, token = selection.at
    words = sentences(CONCEPT, "head_gradients")
    capabilities = loaded(selection.recording).capabilities
    if capabilities.no_readout or not capabilities.weights:
        why = "own_code" if not capabilities.weights else "no_loss"
        raise ValueError(words(why, model=selection.model))
    n_heads = selection.attention.pattern.shape[1]
    if n_heads < 2:
        raise ValueError(words("one_head"))
    hides = flow_way.can_hide(run, {"token": token})
    read = run.under((*run.edits, HideToken(token))) if hides else run
    context = MeasureContext.of(read)
    if not context.targets:
        raise ValueError(words("short"))
    of = context.head_gradients(selection.attention.name, layer)
    lengths = np.linalg.norm(of.heads.astype(np.float64), axis=(1, 2))
    if not lengths.all():
        raise ValueError(words("none"))
    cosines = gradients.cosines(of.heads)
    pairs = cosines[np.triu_indices(n_heads, 1)]
    nearest = np.where(np.eye(n_heads, dtype=bool), -2, cosines)[head]
    other = int(nearest.argmax())
    slots = {
        **selection.slots,
        **{"heads": n_heads, "mean": fixed(float(pairs.mean())), "loss": power(of.loss)},
        **{"other": other, "nearest": fixed(float(nearest[other]))},
        "ratio": f"{lengths.max() / lengths.min():.1f}",
        "tokens": plural(len(context.targets), "token"),
    }
    goes_on = logit_lens.predicts_next(read.recording())
    loss = "next" if goes_on else "hidden" if hides else "seen"
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(
            _lengths(lengths, head),
            _cosines(cosines, head),
            _gradients(of.heads[:, token], head, str(slots["query"])),
        ),
        table={
            "head": list(range(n_heads)),
            "length of the gradient": lengths,
            **{f"cosine with head {at}": row for at, row in enumerate(cosines)},
        },
        details=(words(f"loss_{loss}", **slots), *words.lines("details", **slots)),
        caption=(words("caption", **slots),),
        file=f"L{layer}-head-gradients-q{token}",
        formulas=("output-gradient",),
        focus=("W_O^h",),
        at={"run": read},
    )


def _gradients(own: np.ndarray, head: int, query: str) -> Strips:
    """The gradient of each head's output at one token. own: (head, d_head)."""
    words = sentences(CONCEPT, "head_gradients")
    return Strips(
        title=words("gradients", query=query),
        strips=tuple(
            Strip(words("head", head=at), each, selected=at == head) for at, each in enumerate(own)
        ),
        high=float(np.abs(own).max()) or 1.0,
    )


def _lengths(lengths: np.ndarray, head: int) -> Bars:
    """The length of each head's gradient."""
    words = sentences(CONCEPT, "head_gradients")
    return Bars(
        title=words("lengths"),
        select=("head",),
        columns=(words("length"),),
        rows=tuple(
            BarRow(
                words("head", head=at),
                (float(each),),
                (power(float(each)),),
                key=str(at),
                selected=at == head,
            )
            for at, each in enumerate(lengths)
        ),
    )


def _cosines(cosines: np.ndarray, head: int) -> Matrix:
    """The cosine of each head's gradient with each other's."""
    words = sentences(CONCEPT, "head_gradients")
    names = tuple(words("head", head=at) for at in range(len(cosines)))
    return Matrix(
        title=words("cosines"),
        select=("head",),
        rows=names,
        columns=names,
        values=cosines,
        signed=True,
        selected=head,
    )
