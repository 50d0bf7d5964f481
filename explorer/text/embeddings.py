"""Where a word travels and what context changes, in words."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis import embeddings
from explorer.analysis.embeddings import Anchors, Scene, cosine
from explorer.analysis.formatting import fixed, percent_texts
from explorer.analysis.terminology import with_article
from explorer.text.markdown_escape import literal

# What two groups of anchor words say of a word in two texts, in words.


def splits(as_far: int, n_splits: int, n_words: int) -> str:
    """How many ways to deal the anchor words into two groups set the texts as far apart; the groups
    as given are one of the ways."""
    dealt = f"ways to split these {n_words} words into two such groups"
    if n_splits < 2:
        return f"There are no other {dealt}, so there is no baseline."
    others = "none gives" if as_far < 2 else "1 gives" if as_far == 2 else f"{as_far - 1} give"
    return (
        f"Of the {n_splits - 1} other {dealt}, {others} as large a difference. With so few words "
        f"the p-value is at least 1 in {n_splits}."
    )


QUESTION = "How does a word’s vector change from layer to layer, and with its context?"
ABOUT = "Each sub-layer changes the vector of each token. The plane is the same for all layers."
UNMOVED = 0.95  # a cosine between two contexts above which a word has hardly moved
# What a sub-layer does to x, by where the norm, called {0}, stands and whether there is a residual
# connection.
STEP = {
    ("post", True): ("adds its output", "{0}(x + sublayer(x))", ""),
    ("pre", True): (
        "reads it through {1} and adds its output",
        "x + sublayer({0}(x))",
        ", with one more {0} at the end",
    ),
    (None, True): ("adds its output", "x + sublayer(x)", ", with no {0}"),
    ("post", False): ("replaces it", "{0}(sublayer(x))", ", with no residual connection"),
    ("pre", False): ("replaces it", "sublayer({0}(x))", ", with no residual connection"),
    (None, False): ("replaces it", "sublayer(x)", ", with no residual connection and no {0}"),
}


def quoted(scene: Scene, text: int, place: int) -> str:
    """A token of a text, as it stands in a sentence."""
    group = scene.texts[text]
    return f"“{literal(group.labels[group.places.index(place)])}”"


def told(scene: Scene, anchors: Anchors | None, token: int, mate: int | None) -> tuple[str, str]:
    """What the followed word does, as a headline and the numbers behind it, all in the full
    space."""
    if len(scene.texts) == 2 and mate is None:
        headline = f"{quoted(scene, 0, token)} is not in the second text"
        return headline, "Select a token there for the comparison."
    if mate is None:
        return _travelled(scene, token)
    if anchors is None:
        return _in_two_contexts(scene, token, mate)
    return _compared(scene, anchors, token, mate)


def _travelled(scene: Scene, token: int) -> tuple[str, str]:
    way = embeddings.path_summary(scene.path(0, token))
    word, n = quoted(scene, 0, token), len(scene.sites) - 1
    return (
        f"The last vector of {word} has distance {way.straight:.2f} from its embedding",
        f"The path of {n} steps has length {way.length:.2f}. Its longest, {way.longest:.2f}, is "
        f"at {scene.titles[way.site]}. The cosine between start and end is "
        f"{fixed(way.cosine, 3)}. All numbers are in {len(scene.basis.centre)} dimensions.",
    )


def _in_two_contexts(scene: Scene, token: int, mate: int) -> tuple[str, str]:
    near = cosine(scene.path(0, token, raw=True), scene.path(1, mate, raw=True))
    others = embeddings.mean_cross_cosine(scene.texts)
    word = quoted(scene, 0, token)
    start, end = fixed(float(near[0]), 2), fixed(float(near[-1]), 2)
    beside = "" if others is None else f" Baseline, different words: {fixed(float(others[-1]), 2)}."
    return (
        f"The similarity of {word} in two contexts falls from {start} to {end}"
        if near[-1] <= UNMOVED
        else f"{word} has nearly the same vector in both contexts (cosine {end})",
        f"The cosine between its two vectors is {start} at the {scene.titles[0]} and {end} at "
        f"{scene.titles[-1]}.{beside}",
    )


def _shift(scene: Scene, anchors: Anchors, token: int, mate: int) -> embeddings.ContextShift:
    paths = [scene.path(0, token, raw=True), scene.path(1, mate, raw=True)]
    return embeddings.context_shift(paths, anchors, [group.raw for group in scene.texts])


def _compared(scene: Scene, anchors: Anchors, token: int, mate: int) -> tuple[str, str]:
    found = _shift(scene, anchors, token, mate)
    one, other = (literal(", ".join(words)) for words in anchors.words)
    towards, away = (one, other) if found.gap > 0 else (other, one)
    word, gap = quoted(scene, 0, token), abs(found.gap)
    own = (
        f"The cosine between the word’s two vectors is {fixed(found.own[0], 3)} at the embedding "
        f"and {fixed(found.own[-1], 3)} at {scene.titles[-1]}."
    )
    if found.verdict == "still":
        return (
            f"{word} has the same similarity to these two groups in both contexts",
            f"The leans differ by {gap:.3f}. {own}",
        )
    headline = {
        "apart": f"The context changes which group {word} is similar to",
        "chance": f"{word} changes with its context, but not clearly between these two groups",
    }[found.verdict]
    chance = splits(found.splits_as_far, found.n_splits, len(anchors.group))
    return headline, (
        f"In text 1 it is more similar to *{towards}*, in text 2 to *{away}*. Its lean, the cosine "
        f"to one group minus the cosine to the other, differs by **{gap:.3f}**. {chance} {own}"
    )


def leans(scene: Scene, anchors: Anchors, token: int, mate: int) -> str:
    """The figures behind the verdict on two contexts."""
    found = _shift(scene, anchors, token, mate)
    one, other = (literal(", ".join(words)) for words in anchors.words)
    does = "agree" if found.centred_gap * found.gap > 0 else "do not agree"
    said = "; ".join(
        f"text {at + 1} has {fixed(near[0], 3)} to *{one}* and {fixed(near[1], 3)} to *{other}*, "
        f"a lean of **{fixed(lean, 3)}**"
        for at, (near, lean) in enumerate(zip(found.near, found.lean))
    )
    return (
        f"Cosines at the last layer: {said}. Centred cosines {does}: their leans differ by "
        f"{fixed(found.centred_gap, 3)}, those above by {fixed(found.gap, 3)}."
    )


def note(
    scene: Scene, built: embeddings.StreamStructure, begins: str, norm: str, token: int, stage: int
) -> str:
    """The path, the plane and the error, with the formulas and this sentence's numbers. begins:
    what a token starts as; norm: what the model's norms are called."""
    d, word = len(scene.basis.centre), quoted(scene, 0, token)
    row = embeddings.path_table(scene.titles, scene.path(0, token), scene.basis)
    x, y, error = (row[name][stage] for name in ("x", "y", "error in 2-D"))
    one, other, both = percent_texts(*map(float, scene.basis.explained[:2]))
    step = "each layer adds the sum of its attention and FFN outputs"
    if not built.layers:
        does, formula, more = (
            each.format(norm, with_article(norm)) for each in STEP[built.norm, built.adds]
        )
        step = f"each sub-layer {does}: x ← {formula}{more}"
    position = ", the position is added" if built.positions else "; this model adds no positions"
    follows = f", {with_article(norm)} follows" if built.normed else ""
    return (
        f"**The path.** A token starts as {begins.replace('√d', f'√{d}')}{position}{follows}, and "
        f"{step}. At each of the {len(scene.sites)} sites {word} is a vector of {d} numbers.  \n"
        "**The plane.** All shown vectors of all layers give one mean m and the directions u₁, "
        "u₂ of the plane. A vector v has the coordinates (u₁ · (v − m), u₂ · (v − m)). The plane "
        f"is the same for all layers. It explains {one} + {other} = **{both}** of the variance.  \n"
        "**Projection error.** It is the share of ‖v − m‖² outside the plane: "
        f"1 − (x² + y²) / ‖v − m‖². For {word} at {scene.titles[stage]}: x = {fixed(x, 3)}, y = "
        f"{fixed(y, 3)}, error **{error:.1%}**. Two dots that touch may be far apart in {d} "
        "dimensions."
    )


def of_anchors() -> str:
    """What anchors are and what their cosines can say."""
    return (
        f"**Anchors.** The same model reads each anchor word in “{embeddings.frame_word('…')}”. "
        "Its vector is the mean over its tokens, and a group’s vector c is the mean over its "
        "words. cos(v, c) = v · c / (‖v‖ ‖c‖). All vectors of a model have common directions, so "
        "a high cosine alone is not meaningful. The control is the lean: cosine to the first "
        "group − cosine to the second. At the embedding both texts have the same lean, because "
        "they have the same vector."
    )


def of_nearest(stream: str) -> str:
    """What nearest words are, and their caution."""
    said = (
        "Nearest words: cosine to every row of the model’s embedding matrix. Later vectors need "
        "not be similar to embeddings, so low similarities are not meaningful."
    )
    if stream == "decoder":
        said += (
            " In a decoder the first vector represents the current token, and the last one "
            "predicts the next."
        )
    return said


def in_pieces(words: Sequence[str]) -> str:
    """Which anchor words the model reads in pieces."""
    return f" Mean over several tokens: {literal(', '.join(words))}." if words else ""
