"""QR codes of addresses: as a picture of its own, and as a path that stands in another picture."""

from __future__ import annotations

import io
from itertools import groupby

import segno

BORDER = 4  # modules of white that a reader of codes needs around one


def svg(address: str) -> bytes:
    """The code of an address as an SVG."""
    picture = io.BytesIO()
    segno.make(address, error="m", micro=False).save(
        picture, kind="svg", border=BORDER, dark="#000", light="#fff", omitsize=True, xmldecl=False
    )
    return picture.getvalue()


def path(address: str) -> tuple[int, str]:
    """The modules of an address's code, its border too: how many a side has, and the dark ones as
    the path of an SVG; (0, "") for an address that no code holds."""
    try:
        code = segno.make(address, error="l", micro=False)
    except segno.DataOverflowError:
        return 0, ""
    runs = []
    for y, row in enumerate(code.matrix_iter(border=BORDER)):
        x = 0
        for is_dark, run in groupby(row):
            wide = len(tuple(run))
            if is_dark:
                runs.append(f"M{x} {y}h{wide}v1h-{wide}z")
            x += wide
    return int(code.symbol_size(border=BORDER)[0]), "".join(runs)
