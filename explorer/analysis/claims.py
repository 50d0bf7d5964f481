"""Claims: what lecture notes say of the Transformer, each with its test, and the verdicts as a table, a file and a page to print.

Statements are in our words; a claim is listed under the note whose subject it is. Where a note is loose, `remark` says how it is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from explorer.analysis import claims_attention as attention
from explorer.analysis import claims_positions as positions
from explorer.analysis import claims_stream as stream
from explorer.analysis import claims_words as words
from explorer.analysis import csv
from explorer.analysis.evidence import (
    AT_LEAST,
    AT_MOST,
    FAILS,
    HOLDS,
    UNTESTABLE,
    VERDICTS,
    Claim,
    Finding,
)
from models.recording import Recording

# A note by its theme: its short name and what it is about.
NOTES = {
    "The layer derived": "a note that derives the layer: attention, heads, positions, add & norm",
    "A graph of messages": "a note that reads attention as messages on a graph",
    "Lookups and rotations": "a note that asks why it works: soft lookups, and rotations on a sphere",
    "From first principles": "a note that starts from recurrent networks and their limits",
    "Heads, norm, two stacks": "a note on heads by reshaping, the scale, LayerNorm, encoder and decoder",
}
_DERIVED, _GRAPH, _LOOKUP, _FIRST, _BASICS = NOTES
# Files of the app's pages where a claim can be seen, and what they are called there.
PAGES = {
    "attention": "Attention",
    "positions": "Positions",
    "residual": "Residual stream",
    "embeddings": "Embeddings",
    "predictions": "Predictions",
    "translation": "Translation",
}
MARKS = {HOLDS: "✓", FAILS: "✗", UNTESTABLE: "–"}

CLAIMS: tuple[Claim, ...] = (
    # ---- the layer derived
    Claim(
        "convex",
        _DERIVED,
        "Each head’s output is a weighted mean of values: it never leaves their range.",
        "For every head and token: is any weight below 0, does a row not sum to 1, does z leave the range of the values in any dimension? The worst of the three counts.",
        "zᵢ = Σⱼ aᵢⱼ vⱼ,  aᵢⱼ ≥ 0,  Σⱼ aᵢⱼ = 1",
        AT_MOST,
        1e-4,
        "attention",
        attention.convex,
    ),
    Claim(
        "variance-grows",
        _DERIVED,
        "The variance of random vectors’ q·k grows with dₖ, and dividing by √dₖ brings it back to 1.",
        "Pairs of random vectors of this model’s width and of others, with independent components of variance 1: neither the text nor the weights play a part. How far is Var(q·k) from the width, relatively?",
        "Var(q·k) = dₖ σ⁴,  Var(q·k / √dₖ) = σ⁴",
        AT_MOST,
        0.12,
        "attention",
        attention.random_products,
    ),
    Claim(
        "variance-here",
        _DERIVED,
        "That law, Var(q·k) = dₖ σ⁴, predicts this model’s own q·k.",
        "Var(q·k) over all pairs of this text, before any scale, head by head, beside dₖ σ²(q) σ²(k) with σ² the mean square of a component. By what factor is the median head off?",
        "Var(q·k) / (dₖ σ²(q) σ²(k))",
        AT_MOST,
        1.5,
        "attention",
        attention.own_products,
        "×",
        remark="The note assumes independent components of mean 0. A fresh model has them; training is there to undo that.",
    ),
    Claim(
        "mask-is-zero",
        _DERIVED,
        "Adding −∞ before the softmax makes the weight on later tokens exactly 0.",
        "The largest weight above the diagonal, over all layers and heads of the decoder.",
        "max aᵢⱼ, j > i",
        AT_MOST,
        0.0,
        "attention",
        attention.later_weight,
    ),
    Claim(
        "future-blind",
        _DERIVED,
        "Under the mask, a token’s vectors do not depend on anything that comes later.",
        "A second pass with another last token. The largest change of any number of an earlier token’s vectors, at any place.",
        "max |hᵢ(text) − hᵢ(text with another end)|, i < n",
        AT_MOST,
        1e-4,
        "attention",
        attention.future_change,
    ),
    Claim(
        "start",
        _DERIVED,
        "The stream begins with √d times the embedding plus the position.",
        "√d · E[token] + p from the model’s weights, beside the recorded first state; the largest difference, of the largest number.",
        "h⁰_i = √d · eᵢ + pᵢ",
        AT_MOST,
        1e-5,
        "positions",
        positions.start,
    ),
    Claim(
        "balance",
        _DERIVED,
        "The factor √d makes words and positions comparable in size.",
        "The size of a component (root mean square over this text) of √d · e and of p; by what factor do they differ?",
        "rms(√d · e) / rms(p)",
        AT_MOST,
        4.0,
        "positions",
        positions.balance,
        "×",
    ),
    Claim(
        "product-is-distance",
        _DERIVED,
        "The product of two position encodings depends on their distance alone.",
        "All products of this text’s positions, gathered by distance; the largest difference within one distance, of the largest product.",
        "pᵢ · pⱼ = Σₘ cos(ωₘ (i − j))",
        AT_MOST,
        1e-4,
        "positions",
        positions.by_distance,
    ),
    Claim(
        "left-is-right",
        _DERIVED,
        "The product of two encodings is the same to the left and to the right.",
        "From every position as many places back as ahead: the largest difference, of the largest product.",
        "pᵢ · pᵢ₊ₖ = pᵢ · pᵢ₋ₖ",
        AT_MOST,
        1e-4,
        "positions",
        positions.both_ways,
        remark="So relative distance comes for free, and direction does not: the note’s |i − j| is to be taken literally.",
    ),
    Claim(
        "low-is-fast",
        _DERIVED,
        "Low dimensions of the encoding change fast with the position, high ones slowly.",
        "The angle by which each pair of dimensions turns from one position to the next. In what share of neighbouring pairs is the lower one faster?",
        "ωₘ = 10000^(−2m/d)",
        AT_LEAST,
        1.0,
        "positions",
        positions.low_is_fast,
        "%",
    ),
    Claim(
        "shift-is-rotation",
        _DERIVED,
        "Moving on by k positions is one rotation, wherever one starts.",
        "Each pair of dimensions turned by k ωₘ, beside the encoding k positions on, for three shifts; the largest difference.",
        "pᵢ₊ₖ = Rₖ pᵢ",
        AT_MOST,
        1e-4,
        "positions",
        positions.shift_turns,
    ),
    Claim(
        "heads-differ",
        _DERIVED,
        "Heads of one layer learn different patterns.",
        "How much of their weight two heads of a layer place on different tokens (total variation), in the mean of all pairs, layers and rows.",
        "½ Σⱼ |aᵢⱼ − a′ᵢⱼ|",
        AT_LEAST,
        0.2,
        "attention",
        attention.heads_apart,
        "%",
    ),
    Claim(
        "near-and-far",
        _DERIVED,
        "Some heads look nearby, others far away.",
        "Each head’s mean distance, weight times |i − j|. The furthest-looking head’s, divided by the nearest-looking head’s, up to 1,000 times.",
        "Σⱼ aᵢⱼ |i − j|",
        AT_LEAST,
        2.0,
        "attention",
        attention.reach,
        "×",
    ),
    Claim(
        "identity-plus",
        _DERIVED,
        "The Jacobian of a residual block is the identity plus that of what it adds.",
        "The last sub-layer as a function of the last word’s vector, the other words held: the Jacobian of x + f(x) and that of f(x), each by automatic differentiation; the largest entry of their difference less I. Differentiation applies the rule for sums itself, so what is tested is that the model’s code adds x.",
        "∂(x + f(x))/∂x = I + ∂f/∂x",
        AT_MOST,
        1e-4,
        "residual",
        stream.identity_plus,
    ),
    Claim(
        "gradient-with",
        _DERIVED,
        "With residual connections the gradient neither vanishes nor explodes on its way down.",
        "The gradient of the likeliest word’s score at the last word: its norm at the first state, of that at the last. By what factor is that from 1?",
        "‖∂y/∂h_first‖ / ‖∂y/∂h_last‖",
        AT_MOST,
        10.0,
        "residual",
        stream.gradient_with,
        "×",
        remark="The identity is one path of many. LayerNorm stands across it after every sum in this architecture, so the path is direct but not free of a scale.",
    ),
    Claim(
        "gradient-without",
        _DERIVED,
        "Without residual connections the gradient vanishes or explodes.",
        "The gradient’s norm at the first state, of that at the last, with every residual connection taken away from this trained model. By what factor is that from 1?",
        "‖∂y/∂h_first‖ / ‖∂y/∂h_last‖",
        AT_LEAST,
        10.0,
        "residual",
        stream.gradient_without,
        "×",
        remark="Deep stacks are meant. In few layers, with LayerNorm still in place, little may be lost.",
    ),
    Claim(
        "norm-tames",
        _DERIVED,
        "Without LayerNorm the vectors grow as the layers add up.",
        "A second pass with every LayerNorm left out and the same weights: the mean length of the last vectors, of what it is with LayerNorm.",
        "|h_last without| / |h_last with|",
        AT_LEAST,
        2.0,
        "residual",
        positions.no_blow_up,
        "×",
    ),
    # ---- a graph of messages
    Claim(
        "summed-axis",
        _GRAPH,
        "Weights are normalised over the tokens looked at, not over those that look.",
        "The sums over the other axis, the tokens that look: how far are they from 1, in the mean? 0 where a sum over the tokens looked at is off 1 by more than 10⁻⁵.",
        "Σᵢ aᵢⱼ ≠ 1, though Σⱼ aᵢⱼ = 1",
        AT_LEAST,
        0.05,
        "attention",
        attention.summed_axis,
        remark="That note writes the looking token second, so its columns are our rows. Both normalise the same thing.",
    ),
    Claim(
        "naive-itself",
        _GRAPH,
        "With x·x as the score, each token mostly finds itself: content and attention are entangled.",
        "Scores from the vectors that enter layer 0, multiplied with each other. What share of the tokens has its largest score with itself?",
        "sᵢⱼ = xᵢ · xⱼ",
        AT_LEAST,
        0.9,
        "attention",
        attention.naive_on_itself,
        "%",
    ),
    Claim(
        "asymmetric",
        _GRAPH,
        "x·x makes “a to b” and “b to a” equal; queries and keys apart do not.",
        "|S − Sᵀ| of |S| in the median head, S its scores before the mask; x·x gives 0.",
        "‖S − Sᵀ‖ / ‖S‖,  S = Q Kᵀ / √dₖ",
        AT_LEAST,
        0.1,
        "attention",
        attention.asymmetry,
        "%",
        remark="Symmetric are the scores alone: each row has its own sum below the softmax, so even the naive weights are not symmetric.",
    ),
    Claim(
        "messages",
        _GRAPH,
        "Attention passes messages on a graph in which every allowed pair of tokens has an edge.",
        "One token is exchanged before layer 0. At what share of the tokens does attention’s write change just where an edge is, and stay just where none is? Where the weight is lost in rounding (below 2⁻²⁴) nothing can be heard, and such edges are left out.",
        "Δ(attention at i) ≠ 0  ⇔  i may look at j",
        AT_LEAST,
        0.9,
        "attention",
        attention.messages,
        "%",
        remark="Fully connected is true of an encoder. Under a causal mask half of the edges are missing.",
    ),
    Claim(
        "alone",
        _GRAPH,
        "The feed-forward network acts on each position by itself.",
        "One token’s vector is exchanged just before the FFN of layer 0. The largest change of what the FFN writes at any other token.",
        "FFN(H)_i = FFN(hᵢ)",
        AT_MOST,
        1e-6,
        "residual",
        attention.alone,
    ),
    Claim(
        "adds",
        _GRAPH,
        "A sub-layer adds to the state: after = before + what it wrote.",
        "Every addition of this recording done again; the largest error, of the largest component.",
        "x + f(x)",
        AT_MOST,
        1e-5,
        "residual",
        stream.adds,
    ),
    Claim(
        "order-matters",
        _GRAPH,
        "With positions, the same words in another order get other vectors.",
        "A second pass with the tokens shuffled. How far do the last vectors of moved tokens move, of their length?",
        "|hᵢ − h′_π(i)| / |h|",
        AT_LEAST,
        0.05,
        "positions",
        positions.with_positions,
        "%",
    ),
    Claim(
        "offset-by-one",
        _GRAPH,
        "The decoder’s inputs are offset by one: each row says the token after the one it reads.",
        "At each row: the score of the token that follows minus that of the token just read, in the mean.",
        "log p(yᵢ₊₁) − log p(yᵢ) at row i",
        AT_LEAST,
        1.0,
        "predictions",
        attention.offset,
        " nats",
    ),
    Claim(
        "two-stacks",
        _GRAPH,
        "A Transformer is an encoder and a decoder.",
        "How many stacks does this model have?",
        "number of streams",
        AT_LEAST,
        2.0,
        "translation",
        words.both_halves,
        remark="True of the paper’s. Most models since are one half of it.",
    ),
    # ---- lookups and rotations
    Claim(
        "soft-lookup",
        _LOOKUP,
        "Attention is a soft lookup: as the temperature falls it becomes the hard one.",
        "All outputs worked out again with scores divided by a temperature. The mean distance to the best key’s value at 0.01, of that at 1.",
        "softmax(s / T) V → v_argmax(s), T → 0",
        AT_MOST,
        0.1,
        "attention",
        attention.soft_to_hard,
    ),
    Claim(
        "concatenate",
        _LOOKUP,
        "Heads side by side through W_O are the same as each head’s own write, added up.",
        "Each head’s z through its slice of W_O, all heads added, plus the bias; beside what attention wrote. The largest difference, of the largest number.",
        "[z¹ | … | z^H] W_O = Σₕ z^h W_O^h",
        AT_MOST,
        1e-4,
        "residual",
        attention.concatenated,
        remark="That note says: concatenated, not added. Both are true, since the matrix that follows is linear.",
    ),
    Claim(
        "unit-length",
        _LOOKUP,
        "After each add & norm the state is a unit vector.",
        "By what factor is the length of a state after a LayerNorm away from 1, longer or shorter, in the mean over all of them?",
        "max(|h|, 1/|h|),  h = LayerNorm(x + f(x))",
        AT_MOST,
        1.05,
        "residual",
        stream.unit_length,
        "×",
        remark="Unit variance, not unit length: the radius is √d. The picture of a sphere stands, with another radius.",
    ),
    Claim(
        "sphere",
        _LOOKUP,
        "Before gain and bias the states lie on one sphere, of radius √d.",
        "Gain and bias taken back from each state; how far is its length from √d, relatively, at the worst?",
        "| ‖(h − β)/γ‖ / √d − 1 |",
        AT_MOST,
        1e-3,
        "residual",
        stream.on_a_sphere,
    ),
    Claim(
        "only-rotations",
        _LOOKUP,
        "A block is two rotations of the vector and nothing else.",
        "A rotation keeps lengths: by what share does a sub-layer change the length, in the mean over words and sub-layers?",
        "| |after| / |before| − 1 |",
        AT_MOST,
        0.02,
        "residual",
        stream.only_turns,
        "%",
    ),
    Claim(
        "little-work",
        _LOOKUP,
        "Each step does only a little: it turns the vector by a modest angle.",
        "The angle between the vector before and after each sub-layer, in the mean over words and sub-layers.",
        "∠(before, after)",
        AT_MOST,
        60.0,
        "residual",
        stream.little_work,
        "°",
        remark="The note names no bound. 60° is our choice: up to there at least half of the vector still points the old way (cos 60° = ½), where a turn at random would be about 90°.",
    ),
    Claim(
        "vocabulary-sphere",
        _LOOKUP,
        "The vocabulary’s vectors lie on a sphere.",
        "The spread (standard deviation) of the lengths of all embeddings, of their mean. How many times that of random vectors of the same width, independent normal numbers, is it?",
        "σ(|e|) / μ(|e|) · √(2d)",
        AT_MOST,
        1.1,
        "embeddings",
        stream.vocabulary_sphere,
        "×",
        remark="In many dimensions any cloud of random vectors lies near a sphere: their spread is 1/√(2d). Only what is no wider than that is taken for one.",
    ),
    Claim(
        "near-its-words",
        _LOOKUP,
        "The last vector lies near the words that are likely.",
        "By angle: what share of the vocabulary is further from the last vector than its five likeliest words, in the mean over tokens?",
        "share of e with cos(h, e) < cos(h, e_likely)",
        AT_LEAST,
        0.99,
        "embeddings",
        words.near_words,
        "%",
    ),
    Claim(
        "distance-tells",
        _LOOKUP,
        "The last vector’s distance to each word says how likely that word is.",
        "All words sorted by the distance of their rows of the readout to the last vector, and by probability: the rank correlation, in the mean over tokens.",
        "rank correlation of −|h − e| and p,  e rows of the readout",
        AT_LEAST,
        0.9,
        "predictions",
        words.distance_tells,
        remark="The model takes a product, not a distance; the two agree where words are of one length.",
    ),
    Claim(
        "readable-blocks",
        _LOOKUP,
        "Every block’s output is in the space of words, and can be read there.",
        "Each block’s output through the model’s own readout. The median rank of the model’s final answer at the worst block, as a share of the vocabulary; by chance it is 0.5.",
        "median rank / vocabulary",
        AT_MOST,
        0.01,
        "predictions",
        words.readable,
        "%",
    ),
    # ---- from first principles
    Claim(
        "recurrence-fades",
        _FIRST,
        "A recurrent network’s gradient fades with each token back.",
        "An untrained tanh network reads this text’s embeddings, its recurrent weights normal numbers of variance 1/width (a gain of 1); a gradient is followed back from the last state. By what factor does it change a token, in the mean?",
        "∂hₙ/∂hₙ₋ₖ = Π diag(1 − h²) W",
        AT_MOST,
        0.9,
        "residual",
        stream.recurrent_fades,
        "× a token",
        remark="True of weights of that size: with larger ones the same network fades less, which the numbers beside it show.",
    ),
    Claim(
        "far-words-count",
        _FIRST,
        "Attention reaches far words as directly as near ones.",
        "The gradient from the last word’s answer to each token’s start, its norm by distance, a line through the logarithms. How many times weaker is it at the line’s far end than at its near end? 10 over a whole text is our choice of what still counts as direct.",
        "‖∂yₙ/∂h⁰_near‖ / ‖∂yₙ/∂h⁰_far‖",
        AT_MOST,
        10.0,
        "residual",
        stream.far_words,
        "×",
    ),
    Claim(
        "order-blind",
        _FIRST,
        "Attention without positions does not know word order.",
        "A second pass without positions and one more with the tokens shuffled. How far do the vectors of moved tokens move, of their length?",
        "f(πX) = π f(X)",
        AT_MOST,
        1e-4,
        "positions",
        positions.without_positions,
        remark="The note says invariant; the word is equivariant: each token keeps its vector and takes it along to its new place.",
    ),
    Claim(
        "blind-decoder",
        _FIRST,
        "A decoder without positions does not know word order either.",
        "Two passes of a decoder without positions, one with the tokens shuffled, its causal mask left in place. How far do the vectors of moved tokens move, of their length?",
        "f(πX) = π f(X), under a mask",
        AT_MOST,
        1e-4,
        "positions",
        positions.mask_tells,
        remark="It needs attention without a mask. A mask breaks the symmetry, which is why decoders without positions can work at all.",
    ),
    Claim(
        "even-is-sine",
        _FIRST,
        "Even dimensions of the encoding are sines, odd ones cosines.",
        "The encoding that the model adds, beside the formula; dimensions count from 0. The largest difference.",
        "p(i, 2m) = sin(ωₘ i),  p(i, 2m+1) = cos(ωₘ i)",
        AT_MOST,
        1e-5,
        "positions",
        positions.even_is_sine,
        remark="So says the note’s formula. The sentence under it has it the other way round, and calls 0, 2, 4 odd.",
    ),
    Claim(
        "rows-sum",
        _FIRST,
        "Each token’s weights sum to 1.",
        "The sum of every row of every head; the largest distance from 1.",
        "Σⱼ aᵢⱼ = 1",
        AT_MOST,
        1e-5,
        "attention",
        attention.rows_sum,
    ),
    Claim(
        "looks-at-itself",
        _FIRST,
        "Every token pays most attention to itself.",
        "In what share of all rows, over all heads, is the largest weight on the token itself?",
        "argmaxⱼ aᵢⱼ = i",
        AT_LEAST,
        0.9,
        "attention",
        attention.on_itself,
        "%",
        remark="The note reads it off one drawn example, which it calls an approximation.",
    ),
    Claim(
        "context-moves",
        _FIRST,
        "Context moves a word’s vector.",
        "Words of this text read once more alone. The cosine of a word’s last vector here and there, in the mean.",
        "cos(h(word in text), h(word alone))",
        AT_MOST,
        0.95,
        "embeddings",
        words.context_moves,
    ),
    Claim(
        "steps-agree",
        _FIRST,
        "One pass over the whole text gives what reading token by token gives.",
        "The scores for the next token when the text is read at once, and when it is read one token at a time; the largest difference, of the largest score.",
        "f(x₁ … xₙ)_i = f(x₁ … xᵢ)_i",
        AT_MOST,
        1e-4,
        "predictions",
        attention.steps_agree,
    ),
    # ---- heads, norm, two stacks
    Claim(
        "reshape",
        _BASICS,
        "Cutting Q, K, V into heads by reshaping and transposing loses nothing.",
        "The model’s scores, head by head, the scale and what it adds for a distance taken back, added up over the heads; beside the one long q·k of the pieces put together. The largest difference, of the largest product.",
        "Σₕ q^h · k^h = q · k",
        AT_MOST,
        1e-5,
        "attention",
        attention.reshaped,
    ),
    Claim(
        "head-scale",
        _BASICS,
        "With heads, the scale is √(d/h), the width of one head.",
        "q·k / √(d/h) worked out again, beside the model’s scores; the largest difference, of the largest score.",
        "s = q·k / √(d/h)",
        AT_MOST,
        1e-5,
        "attention",
        attention.head_width,
    ),
    Claim(
        "scale-keeps-soft",
        _BASICS,
        "Without the scale the softmax saturates, and its gradients shrink.",
        "How much the weights of a row can still move, with the scale and without; the first divided by the second.",
        "Σⱼ aⱼ (1 − aⱼ)",
        AT_LEAST,
        1.5,
        "attention",
        attention.saturation,
        "×",
    ),
    Claim(
        "zero-and-one",
        _BASICS,
        "LayerNorm sets each vector’s mean to 0 and its spread to 1, before gain and bias.",
        "Each vector before a LayerNorm normalised again by its own mean and variance: the largest |mean|, |variance − 1|, or difference to what the model has.",
        "(x − μ) / √(σ² + ε) · γ + β",
        AT_MOST,
        1e-3,
        "residual",
        stream.mean_and_spread,
        remark="The note writes “unit mean”; its formula has mean 0.",
    ),
    Claim(
        "both-sides",
        _BASICS,
        "An encoder is the same stack without the mask: it looks to both sides.",
        "The share of all weight that rests on later tokens.",
        "mean of Σ(j > i) aᵢⱼ",
        AT_LEAST,
        0.1,
        "attention",
        attention.both_sides,
        "%",
    ),
    Claim(
        "cross-from-encoder",
        _BASICS,
        "In cross-attention keys and values come from the encoder, queries from the decoder.",
        "A second pass in which the decoder reads another text: the largest change of any key or value.",
        "kⱼ = K hⱼ^(x),  vⱼ = V hⱼ^(x),  qᵢ = Q hᵢ^(y)",
        AT_MOST,
        1e-6,
        "translation",
        attention.cross_keys,
    ),
)
BY_ID = {claim.id: claim for claim in CLAIMS}


def counts(findings: Sequence[Finding | None]) -> dict[str, int]:
    """How many findings have each verdict; one that is still to come (None) has none."""
    return {
        verdict: sum(finding is not None and finding.verdict == verdict for finding in findings)
        for verdict in VERDICTS
    }


def chosen(note: str, verdict: str, findings: Sequence[Finding | None]) -> tuple[int, ...]:
    """The places of the claims of a note ("" for all) with a verdict ("" for any; one still to come has none)."""
    return tuple(
        at
        for at, (claim, finding) in enumerate(zip(CLAIMS, findings, strict=True))
        if note in ("", claim.note)
        and (not verdict or finding is not None and finding.verdict == verdict)
    )


def table(findings: Sequence[Finding]) -> dict[str, list]:
    """All claims as named columns, a row each."""
    rows = list(zip(CLAIMS, findings, strict=True))
    return {
        "claim": [claim.id for claim, _ in rows],
        "note": [claim.note for claim, _ in rows],
        "statement": [claim.statement for claim, _ in rows],
        "verdict": [finding.verdict for _, finding in rows],
        "value": [finding.value for _, finding in rows],
        "holds where": [claim.rule for claim, _ in rows],
        "measured": [claim.how for claim, _ in rows],
        "formula": [claim.formula for claim, _ in rows],
        "why": [finding.why for _, finding in rows],
    }


def to_csv(findings: Sequence[Finding], about: Sequence[str]) -> str:
    """All claims as CSV, a row for each, see `explorer.analysis.csv`."""
    return csv.to_csv(table(findings), about)


# ---- to print -------------------------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light; }
body { font: 11pt/1.45 system-ui, sans-serif; color: #15110d; background: #fff; max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; border-bottom: 1px solid #999; }
blockquote { margin: .75rem 0; padding: .5rem .75rem; border-left: 4px solid #9a4a06; background: #f5f0e6; overflow-wrap: anywhere; white-space: pre-wrap; unicode-bidi: isolate; }
.card, .note { color: #4a4036; margin: .25rem 0; } .counts { font-size: 1.25rem; }
article { break-inside: avoid; margin: 1rem 0; } article p { margin: .125rem 0; }
.head { display: flex; gap: .75rem; align-items: baseline; } .head b { flex: 1; } .head output { font-size: 1.15rem; font-weight: 700; white-space: nowrap; }
.verdict { white-space: nowrap; border: 1px solid; border-radius: 1rem; padding: 0 .5rem; font-size: .85rem; }
.holds { color: #1c6137; } .fails { color: #8a1f3d; font-weight: 700; } .open { color: #555; border-style: dashed; }
code { font: .9em ui-monospace, monospace; background: #f5f0e6; padding: 0 .25rem; overflow-wrap: anywhere; }
.how, .remark { font-size: .92em; color: #4a4036; }
"""
_CLASSES = {HOLDS: "holds", FAILS: "fails", UNTESTABLE: "open"}


def about(recording: Recording) -> tuple[str, ...]:
    """What a file of verdicts must say when it stands alone: model, weights, edits, text."""
    model = recording.model
    return (
        f"Headlight · model {model.name} ({model.kind}, {model.n_layer} layers of {model.n_head} heads, {model.n_parameters:,} parameters, weights {model.fingerprint}, {model.weights}) · edits: {', '.join(map(str, recording.edits)) or 'none'}",
        "Text: " + " ".join(recording.text.split()),
        *(("Output: " + " ".join(recording.target.split()),) if recording.target else ()),
    )


def said(found: dict[str, int]) -> str:
    """Counts in words: "27 hold, 3 do not, 4 cannot be tested here"."""
    holds, fails, none = (found[verdict] for verdict in VERDICTS)
    return f"{holds} hold{'s' if holds == 1 else ''}, {fails} do{'es' if fails == 1 else ''} not, {none} cannot be tested here"


def report(recording: Recording, findings: Sequence[Finding]) -> str:
    """All verdicts on a text as one HTML page that needs nothing else: no script, no font, no picture from anywhere."""
    model_line, *_ = about(recording)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Claims, tested on one sentence</title><style>{_STYLE}</style></head><body>",
        "<h1>Does what textbooks say hold here?</h1>",
        f'<p class="card">{escape(model_line)}</p><blockquote dir="auto">{escape(recording.text) or "(no text)"}</blockquote>',
        f'<p class="card">Output:</p><blockquote dir="auto">{escape(recording.target)}</blockquote>'
        if recording.target
        else "",
        f'<p class="counts">{said(counts(findings))}.</p>',
    ]
    for note, theme in NOTES.items():
        parts.append(f'<h2>{escape(note)}</h2><p class="note">From {escape(theme)}.</p>')
        parts += [
            _article(claim, finding)
            for claim, finding in zip(CLAIMS, findings, strict=True)
            if claim.note == note
        ]
    return "\n".join([*parts, "</body></html>"])


def _article(claim: Claim, finding: Finding) -> str:
    verdict = f'<span class="verdict {_CLASSES[finding.verdict]}">{MARKS[finding.verdict]} {finding.verdict}</span>'
    remark = f'<p class="remark">On the note: {escape(claim.remark)}</p>' if claim.remark else ""
    return (
        f'<article id="{claim.id}"><div class="head">{verdict}<b>{escape(claim.statement)}</b><output>{escape(finding.shown)}</output></div>'
        f'<p>{escape(finding.why)}</p><p class="how">{escape(claim.how)} <code>{escape(claim.formula)}</code> Holds where the number is {escape(claim.rule)}.</p>{remark}</article>'
    )
