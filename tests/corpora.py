"""Small corpora, written as the downloaded ones lie in their folders."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from random import Random

BOOK = (
    "Junk\r\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\r\n\r\nCHAPTER I\r\n\r\n"
    + "".join(
        (
            f"The {i} rabbits went over the hill and\r\nthey saw number {i} of the old houses "
            "there.\r\n\r\n"
        )
        for i in range(400)
    )
    + (
        "They wanted to murder the king, which was a thing that nobody should ever read "
        "about.\r\n\r\n"
    )
    + (
        "*** END OF THIS PROJECT GUTENBERG EBOOK X ***\r\n\r\nLicence text that nobody should "
        "ever learn by heart, not even once.\r\n"
    )
)


# Another edition of the same book, and a second one; a file holds several.
MORE = (
    BOOK.replace("\r", "").split("***")[2].replace("went over", "climbed")
    + "End of the Project Gutenberg EBook of X, by Nobody, who wrote it all in one single night\n\n"
    + "".join(
        f"In the {i} villages of the valley nobody\nhad ever heard of {i} bears that talk.\n\n"
        for i in range(400)
    )
    + "[Illustration: a bear that stands on its hind legs in front of the town hall.]\n\n"
)


def unlike(n: int) -> list[str]:
    """Sentences of six words drawn from many, hardly ever near one another."""
    rng = Random(9)
    return [
        " ".join("".join(rng.choice("aeioulmnrst") for _ in range(5)) for _ in range(6)) + "."
        for _ in range(n)
    ]


def written(root: Path) -> Path:
    """The folder, with every corpus in it."""
    for pair in ("fra", "deu"):
        folder = root / f"tatoeba_{pair}"
        folder.mkdir()
        rows = (
            "".join(f"Tom has {i} {pair} cats and Tom likes Mary.\tx\n" for i in range(300))
            + "I love to eat pizza.\ty\nHe killed it.\tz\n"
        )
        if pair == "fra":
            rows += "".join(f"{text}\tLe {text.upper()}\n" for text in unlike(900))
        with zipfile.ZipFile(folder / f"{pair}-eng.zip", "w") as file:
            file.writestr("_about.txt", "about")
            file.writestr(f"{pair}-eng/{pair}.txt", rows)
    (root / "commonvoice_en_cc0").mkdir()
    (root / "commonvoice_en_cc0" / "a.txt").write_text("A clear sentence.\n\nA clear sentence.\n")
    (root / "gutenberg").mkdir()
    (root / "gutenberg" / "1.txt").write_text(BOOK, "utf-8")
    (root / "gutenberg_more").mkdir()
    (root / "gutenberg_more" / "a.txt.gz").write_bytes(gzip.compress(MORE.encode()))
    return root
