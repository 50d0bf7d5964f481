"""Texts that ask something, in the forms of several European languages."""

from __future__ import annotations

import re

from models.tokens.chat import messages

MOST_CHARACTERS, MOST_SENTENCES, LEAST_WORDS = 300, 3, 3
CLOSING = "\"'”’»«)*_ \n"
MARKS = "?？؟"
# How a question begins that has no mark at its end: a question word and a verb, or a verb and the
# word that it asks about.
BEGINS = re.compile(
    r"(?:what|who|where|when|why|how|which|whose)(?:'s|’s| (?:is|are|was|were|do|does|did|can|"
    r"could|will|would|should|has|have|many|much|long|far|old|big|tall|high))\b"
    r"|(?:is|are|was|were|does|did|can|could|will|would|should) (?:there|it|you|u|he|she|they|we|i|"
    r"a|an|the|my|your|his|her|our|their|this|that)\b"
    r"|(?:qui|où|quand|pourquoi|comment|combien|quel|quelle|quels|quelles) (?:est|sont|était|a|ont|"
    r"peut|fait|faut|se|de|d'|va|vont)|est-ce que\b|qu['’]est-ce\b|que (?:veut|peut|fait|faut)\b"
    r"|(?:wer|was|wo|wann|warum|wie|wohin|woher|welche[rs]?) (?:ist|sind|war|hat|haben|heißt|kann|"
    r"können|viele?|lange?|macht|wird|werden|liegt|geht)\b"
    r"|¿|(?:qué|quién|quiénes|cuál|cuáles|dónde|cuándo|cómo|cuántos|cuántas|por qué)\b",
    re.IGNORECASE,
)
# How one begins who asks for something to be written.
REQUESTS = re.compile(
    r"(?:please )?(?:(?:tell|give|show|help|teach) me|explain|summari[sz]e|translate|describe|"
    r"(?:write|make) (?:me )?(?:a|an|some|the)|list (?:the|all|some)|"
    r"name (?:a|an|the|some|two|three|four|five|six|seven|eight|nine|ten))\b"
    r"|(?:dis|donne|raconte|explique|montre)-moi\b|(?:explique|traduis|résume|écris)\b"
    r"|(?:erzähle?|erkläre?|gib|zeige?|nenne?) (?:mir|uns)\b|(?:erkläre?|übersetze|schreibe?) \b"
    r"|(?:dime|dame|cuéntame|explícame|explica|traduce|resume|escribe)\b",
    re.IGNORECASE,
)


def is_question(text: str) -> bool:
    """True for a text of a few sentences that ends in a question, with or without its mark, and for
    a sentence that asks for something to be told or written."""
    if messages(text):  # it is asked already, in a chat
        return False
    bare = text.strip().rstrip(CLOSING)
    ends = re.findall(r"[.!?？؟。！…]+(?=\s|$)", bare)
    if not bare or len(bare) > MOST_CHARACTERS or len(ends) > MOST_SENTENCES:
        return False
    if bare[-1] in MARKS:
        return len(bare.strip(f"{MARKS} ")) > 1
    if len(bare.split()) < LEAST_WORDS:
        return False
    if REQUESTS.match(bare) and len(ends) <= 1:
        return True
    return not ends and bool(BEGINS.match(bare)) and bare[-1].isalnum()
