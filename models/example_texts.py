"""Sentences that the app offers, the lecture notes' own among them. Training keeps them out, so
that an example shows more than memory."""

from __future__ import annotations

EXAMPLES = {
    "It was too tired": "The animal didn't cross the street because it was too tired.",
    "Pizza": "I love to eat pizza.",
    "Apple devices": "Explain me about the new apple devices.",
    "Apple and juice": "She ate the apple with some fruit juice.",
    "Ram pushed Hari": "Ram pushed Hari",
    "Herbivores": "Herbivores eat plants",
    "Shyam from Nepal": (
        "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks "
        "fluent"
    ),
    "Red car": "The red car is in front of the white house.",
    "Repeated sentence": " ".join(2 * ["The red fox saw a small bird near the river."]),
}
DEFAULT_TEXT = next(iter(EXAMPLES.values()))  # what the app opens on
CONTINUED_TEXT = (
    "Paris is the capital of France. Rome is the capital of"  # for a model that goes on
)
# Other orders of the same words, for experiments with positions.
REORDERED_TEXTS = ("Hari pushed Ram", "Plants eat herbivores")
