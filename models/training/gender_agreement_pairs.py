"""Pairs of sentences in which "it" becomes il or elle by the noun that is meant, put together from
parts: an animal does not do something, because it is tired or because what it meets is wide.

Tatoeba has few such pairs, and a translator that goes on learning from it alone takes to elle.
"""

from __future__ import annotations

from random import Random

Noun = tuple[str, str, bool]  # English, French with its article, feminine

ACTORS: tuple[Noun, ...] = (
    ("dog", "le chien", False),
    ("cat", "le chat", False),
    ("horse", "le cheval", False),
    ("bird", "l'oiseau", False),
    ("rabbit", "le lapin", False),
    ("fox", "le renard", False),
    ("wolf", "le loup", False),
    ("lion", "le lion", False),
    ("bear", "l'ours", False),
    ("elephant", "l'éléphant", False),
    ("monkey", "le singe", False),
    ("donkey", "l'âne", False),
    ("animal", "l'animal", False),
    ("squirrel", "l'écureuil", False),
    ("cow", "la vache", True),
    ("mouse", "la souris", True),
    ("goat", "la chèvre", True),
    ("hen", "la poule", True),
    ("bee", "l'abeille", True),
    ("frog", "la grenouille", True),
    ("turtle", "la tortue", True),
    ("spider", "l'araignée", True),
    ("ant", "la fourmi", True),
)
PLACES: tuple[Noun, ...] = (
    ("road", "la route", True),
    ("river", "la rivière", True),
    ("bridge", "le pont", False),
    ("field", "le champ", False),
    ("garden", "le jardin", False),
    ("forest", "la forêt", True),
    ("square", "la place", True),
    ("valley", "la vallée", True),
    ("desert", "le désert", False),
    ("street", "la rue", True),
    ("lake", "le lac", False),
    ("tunnel", "le tunnel", False),
)
# English, French masculine, French feminine: said of the one who acts, and of what it meets
ACTOR_ADJECTIVES = (
    ("tired", "fatigué", "fatiguée"),
    ("weak", "faible", "faible"),
    ("small", "petit", "petite"),
    ("old", "vieux", "vieille"),
    ("slow", "lent", "lente"),
    ("sick", "malade", "malade"),
    ("lazy", "paresseux", "paresseuse"),
    ("young", "jeune", "jeune"),
)
PLACE_ADJECTIVES = (
    ("wide", "large", "large"),
    ("long", "long", "longue"),
    ("dark", "sombre", "sombre"),
    ("dangerous", "dangereux", "dangereuse"),
    ("noisy", "bruyant", "bruyante"),
    ("narrow", "étroit", "étroite"),
    ("dirty", "sale", "sale"),
    ("cold", "froid", "froide"),
)
# English and French of what is not done, in the past and in the present
VERBS = (
    (("didn't cross", "n'a pas traversé"), ("doesn't cross", "ne traverse pas")),
    (("did not cross", "n'a pas traversé"), ("does not cross", "ne traverse pas")),
    (("couldn't cross", "n'a pas pu traverser"), ("can't cross", "ne peut pas traverser")),
    (("didn't leave", "n'a pas quitté"), ("doesn't leave", "ne quitte pas")),
    (("didn't look at", "n'a pas regardé"), ("doesn't look at", "ne regarde pas")),
)
COPULAS = (("it was", "était"), ("it is", "est"))
ADVERBS = (("too", "trop"), ("too", "trop"), ("very", "très"))


def pair(rng: Random) -> tuple[str, str]:
    """One English sentence and its French."""
    who, what = rng.choice(ACTORS), rng.choice(PLACES)
    deed, tense = rng.choice(VERBS), rng.randrange(2)
    noun, adjectives = (who, ACTOR_ADJECTIVES) if rng.random() < 0.5 else (what, PLACE_ADJECTIVES)
    adjective, masculine, feminine = rng.choice(adjectives)
    (does, fait), (it_is, est), (very, très) = deed[tense], COPULAS[tense], rng.choice(ADVERBS)
    elle = f"qu'{'elle' if noun[2] else 'il'} {est} {très} {feminine if noun[2] else masculine}"
    return (
        f"The {who[0]} {does} the {what[0]} because {it_is} {very} {adjective}.",
        f"{who[1][0].upper()}{who[1][1:]} {fait} {what[1]} parce {elle}.",
    )
