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
    dealt = f"ways to deal these {n_words} words into two such groups"
    if n_splits < 2:
        return f"There are no other {dealt}, so chance cannot be told."
    others = "none sets" if as_far < 2 else "1 sets" if as_far == 2 else f"{as_far - 1} set"
    return (
        f"Of the {n_splits - 1} other {dealt} {others} the texts this far apart; with so few "
        f"words chance is at least 1 in {n_splits}."
    )


QUESTION = "Where does a word travel, layer by layer, and what does context change?"
ABOUT = (
    "Each token is a vector that every sub-layer moves. All of them are drawn in one fixed plane, "
    "from the embedding to the last layer."
)
UNMOVED = 0.95  # a cosine between two contexts above which a word has hardly moved
# What a sub-layer does to x, by where the norm, called {0}, stands and whether there is a residual
# connection.
STEP = {
    ("post", True): ("adds what it wrote", "{0}(x + sublayer(x))", ""),
    ("pre", True): (
        "reads it through {1} and adds what it wrote",
        "x + sublayer({0}(x))",
        ", with one more {0} at the end",
    ),
    (None, True): ("adds what it wrote", "x + sublayer(x)", ", with no {0}"),
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
        return headline, "Choose the token there that it should be compared with."
    if mate is None:
        return _travelled(scene, token)
    if anchors is None:
        return _in_two_contexts(scene, token, mate)
    return _compared(scene, anchors, token, mate)


def _travelled(scene: Scene, token: int) -> tuple[str, str]:
    way = embeddings.path_summary(scene.path(0, token))
    word, n = quoted(scene, 0, token), len(scene.sites) - 1
    return (
        f"{word} travels {way.length:.2f} and ends {way.straight:.2f} from where it began",
        f"It takes {n} steps; the longest, {way.longest:.2f}, is at {scene.titles[way.site]}. "
        "The cosine between start and end is "
        f"{fixed(way.cosine, 3)}. All in {len(scene.basis.centre)} dimensions, not in the "
        "picture’s two.",
    )


def _in_two_contexts(scene: Scene, token: int, mate: int) -> tuple[str, str]:
    near = cosine(scene.path(0, token, raw=True), scene.path(1, mate, raw=True))
    others = embeddings.mean_cross_cosine(scene.texts)
    word = quoted(scene, 0, token)
    does = "hardly moves" if near[-1] > UNMOVED else "moves"
    start, end = fixed(float(near[0]), 2), fixed(float(near[-1]), 2)
    beside = "" if others is None else f" Different words of both: {fixed(float(others[-1]), 2)}."
    return (
        f"Context {does} {word}: from cosine {start} to {end}",
        f"The same word in both texts: the cosine between its two vectors is {start} at the "
        f"{scene.titles[0]} and {end} at {scene.titles[-1]}.{beside}",
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
            f"{word} does not move between these two groups",
            f"The leans differ by {gap:.3f}. {own}",
        )
    headline = {
        "apart": f"{word} moves with its context",
        "chance": f"{word} moves, but not clearly between these two groups",
    }[found.verdict]
    chance = splits(found.splits_as_far, found.n_splits, len(anchors.group))
    return headline, (
        f"Text 1 draws it more towards *{towards}*, text 2 more towards *{away}*: its lean, the "
        "cosine to one group minus the "
        f"cosine to the other, differs by **{gap:.3f}**. {chance} {own}"
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
        f"Cosines at the end: {said}. Centred cosines {does}: there the leans differ by "
        f"{fixed(found.centred_gap, 3)}, "
        f"here by {fixed(found.gap, 3)}."
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
    step = "each layer adds what its attention and FFN wrote, which its code gives as one sum"
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
        "**The plane.** All shown vectors of all sites give one mean m and the directions u₁, "
        "u₂ of the picture; a vector v stands at "
        "(u₁ · (v − m), u₂ · (v − m)). The plane never changes along the way, so a dot that "
        f"moves has moved. It holds {one} + {other} = **{both}** of the spread.  \n"
        f"**The error.** Two of {d} directions cannot show everything. A dot’s projection error "
        "is the share of ‖v − m‖² outside the "
        f"plane: 1 − (x² + y²) / ‖v − m‖². For {word} at {scene.titles[stage]}: x = "
        f"{fixed(x, 3)}, y = {fixed(y, 3)}, error "
        f"**{error:.1%}**. Two dots that touch may be far apart."
    )


def of_anchors() -> str:
    """What anchors are and what their cosines can say."""
    return (
        f"**Anchors.** Each anchor word is read alone, in “{embeddings.frame_word('…')}”, by "
        "the same model; its vector is the mean over its "
        "tokens at the site, a group’s vector c the mean over its words, and cos(v, c) = v · c "
        "/ (‖v‖ ‖c‖). All vectors of a model "
        "share directions, and a word that stands elsewhere in its sentence has another "
        "position added, so a high cosine alone says "
        "little. The control is the difference: lean = cosine to the first group − cosine to "
        "the second, compared between the texts. "
        "At the embedding both texts have the same lean, because they have the same vector."
    )


def of_nearest(stream: str) -> str:
    """What nearest words are, and their caution."""
    said = (
        "Nearest words: the cosine to every row of the model’s own embedding matrix. Later "
        "vectors were not made to lie near "
        "embeddings, so far-off neighbours say little."
    )
    if stream == "decoder":
        said += (
            " In a decoder a vector starts as the token read and ends as a forecast of the next "
            "one."
        )
    return said


def in_pieces(words: Sequence[str]) -> str:
    """Which anchor words the model reads in pieces."""
    return f" Read in pieces, the mean taken: {literal(', '.join(words))}." if words else ""
