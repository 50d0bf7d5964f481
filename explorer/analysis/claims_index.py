"""Which function measures which claim, by the claim's id in `explorer/sentences/claims.toml`."""

from __future__ import annotations

from collections.abc import Callable

from explorer.analysis import claims_gradients as gradients
from explorer.analysis import claims_heads as heads
from explorer.analysis import claims_messages as messages
from explorer.analysis import claims_positions as positions
from explorer.analysis import claims_softmax as softmax
from explorer.analysis import claims_stream as stream
from explorer.analysis import claims_words as words
from explorer.analysis.evidence import Evidence, Measured

MEASURES: dict[str, Callable[[Evidence], Measured]] = {
    "convex": softmax.convex,
    "variance-grows": softmax.random_products,
    "variance-here": softmax.own_products,
    "mask-is-zero": messages.later_weight,
    "future-blind": messages.future_change,
    "start": positions.start,
    "balance": positions.balance,
    "product-is-distance": positions.by_distance,
    "left-is-right": positions.both_ways,
    "low-is-fast": positions.low_is_fast,
    "shift-is-rotation": positions.shift_turns,
    "heads-differ": heads.heads_apart,
    "near-and-far": heads.reach,
    "identity-plus": gradients.identity_plus,
    "gradient-with": gradients.gradient_with,
    "gradient-without": gradients.gradient_without,
    "norm-tames": positions.no_blow_up,
    "summed-axis": softmax.summed_axis,
    "naive-itself": heads.naive_on_itself,
    "asymmetric": heads.asymmetry,
    "messages": messages.messages,
    "alone": messages.alone,
    "adds": stream.adds,
    "order-matters": positions.with_positions,
    "offset-by-one": messages.offset,
    "soft-lookup": softmax.soft_to_hard,
    "concatenate": heads.concatenated,
    "unit-length": stream.unit_length,
    "sphere": stream.on_a_sphere,
    "only-rotations": stream.only_turns,
    "little-work": stream.little_work,
    "vocabulary-sphere": stream.vocabulary_sphere,
    "near-its-words": words.near_words,
    "distance-tells": words.distance_tells,
    "readable-blocks": words.readable,
    "recurrence-fades": gradients.recurrent_fades,
    "far-words-count": gradients.far_words,
    "order-blind": positions.without_positions,
    "blind-decoder": positions.mask_tells,
    "even-is-sine": positions.even_is_sine,
    "rows-sum": softmax.rows_sum,
    "looks-at-itself": heads.on_itself,
    "context-moves": words.context_moves,
    "steps-agree": messages.steps_agree,
    "reshape": heads.reshaped,
    "head-scale": softmax.head_width,
    "scale-keeps-soft": softmax.saturation,
    "zero-and-one": stream.mean_and_spread,
    "both-sides": messages.both_sides,
    "cross-from-encoder": messages.cross_keys,
}
