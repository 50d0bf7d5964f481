"""A class's code, the words of teacher and students, and the wait after a wrong code.

All of them are derived from the store's secret and the teacher's key: a class that was evicted has
the same ones when its teacher is back, and nothing is stored for a student who joins."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time

from itsdangerous import Signer, base64_decode

from explorer.app.classroom.store import TooMany
from explorer.wording.templates import sentences

REFUSALS = sentences("classroom", "refusals")

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # none that is read as another
CODE_LENGTH = 7
# The answer to a wrong code waits, the longer the more of them came from one address within
# `WINDOW` seconds; a right code never does, and nobody is shut out. The first `FREE` cost nothing.
WINDOW, FREE_TRIES, WAIT_EACH, LONGEST_WAIT = 600.0, 30, 0.1, 5.0
MOST_WAITING = 500  # wrong codes that wait at once; what comes beyond is refused at once
MOST_ADDRESSES = 10_000  # whose wrong codes are counted


def normalized_code(code: object) -> str:
    """A code as it is kept, of one as it was typed; "" for what cannot be one."""
    if not isinstance(code, str) or len(code) > 4 * CODE_LENGTH:
        return ""
    plain = "".join(sign for sign in code.upper() if sign.isalnum())
    return plain if len(plain) == CODE_LENGTH and set(plain) <= set(ALPHABET) else ""


def signer(secret: str, purpose: str) -> Signer:
    """Signer of texts for one purpose: only a holder of the secret makes or checks its
    signatures."""
    return Signer(secret, salt=purpose, digest_method=hashlib.sha256)


def signature(secret: str, purpose: str, text: str) -> str:
    """The signature of a text alone."""
    return signer(secret, purpose).get_signature(text).decode()


def new_key(ends: int) -> str:
    """A key that rules a class until it ends."""
    return f"{ends:x}-{secrets.token_urlsafe(24)}"


def watch_of(key: str) -> str:
    """The watch word of a class, derived from its key. It can be stored: the key cannot be derived
    from it."""
    return f"{key.partition('-')[0]}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def ends_of(watch: str) -> int:
    """The time at which the class of a teacher's watch word ends, in seconds."""
    return int(watch.partition("-")[0], 16)


def code_of(secret: str, watch: str) -> str:
    """The code of the class that a teacher's word watches."""
    number = int.from_bytes(base64_decode(signature(secret, "code", watch)))
    return "".join(
        ALPHABET[number // len(ALPHABET) ** at % len(ALPHABET)] for at in range(CODE_LENGTH)
    )


def student_of(secret: str, code: str) -> str:
    """The word of a new student of a class: a random name, signed."""
    return signer(secret, f"student of {code}").sign(secrets.token_urlsafe(12)).decode()


def is_student(secret: str, code: str, word: str) -> bool:
    """True for the word of a student of the class of this code."""
    return bool(code) and signer(secret, f"student of {code}").validate(word)


def same(first: str, second: str) -> bool:
    """True for two equal words, compared in constant time."""
    return hmac.compare_digest(first.encode(), second.encode())


class WrongCodes:
    """Counts of wrong codes from each address, and the requests that wait for their delayed
    answer."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, float]] = {}
        self._waiting = 0

    async def wait(self, address: str) -> None:
        """Count a wrong code, and wait. Raises TooMany where very many wait already."""
        now = time.monotonic()
        number, ends = self._counts.pop(address, (0, 0.0))
        number, ends = (number + 1, ends) if ends > now else (1, now + WINDOW)
        self._counts[address] = number, ends
        if len(self._counts) > MOST_ADDRESSES:
            del self._counts[next(iter(self._counts))]
        if number <= FREE_TRIES:
            return
        if self._waiting >= MOST_WAITING:
            raise TooMany(REFUSALS("wrong_codes"))
        self._waiting += 1
        try:
            await asyncio.sleep(min(LONGEST_WAIT, (number - FREE_TRIES) * WAIT_EACH))
        finally:
            self._waiting -= 1
