"""Arrays of an .npz file, read so that a file from anywhere does no harm.

Nothing in it is run. What it says of itself (how many arrays, of which types and shapes, how many
bytes) is checked before anything is unpacked, and no more is unpacked than it said."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from math import prod

import numpy as np

MOST_ARRAYS = 256
MOST_DIRECTORY = 2**16  # bytes of the list of what is in the file
MOST_AXES = 8
MOST_OF_NOTHING = 2**20  # along an axis of an array without numbers, which takes no bytes of a file
NUMBERS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
# The end of a ZIP file, and the end before it of one that is too large for the first.
END, END_OF_LARGE = struct.Struct("<4s4H2LH"), struct.Struct("<4sLQL")
# What numpy writes before an array: its type, the order of its numbers and its shape.
MAGIC = {b"\x93NUMPY\x01\x00": struct.Struct("<H"), b"\x93NUMPY\x02\x00": struct.Struct("<L")}
HEADER = re.compile(
    rb"\{'descr': '([<|][biufU]\d{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,15}, ?)*\d{0,15}),?\), \} *\n"
)
MOST_HEADER = 2**12
NO_FILE = "this is no .npz file, or a damaged one"
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, UnicodeDecodeError),
)


def read(data: bytes, most_bytes: int | None = None) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by their names: numbers and texts, read-only.

    most_bytes: that all arrays together may take, None for no limit. Raises ValueError, one
    sentence, for a file that is none, is damaged, holds anything else, or takes more."""
    if most_bytes is not None or not _is_large(data):
        _expect_small_directory(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            entries = file.infolist()
            _expect_plain(entries)
            size = sum(each.file_size for each in entries)
            if most_bytes is not None and size > most_bytes:
                raise ValueError(
                    f"this file holds {size / 2**20:,.1f} MiB of numbers, and at most "
                    f"{most_bytes / 2**20:,.1f} MiB are read"
                )
            return {each.filename.removesuffix(".npy"): _array(file, each) for each in entries}
    except DAMAGE as error:
        raise ValueError(NO_FILE) from error


def _expect_small_directory(data: bytes) -> None:
    """Raises ValueError where the list of what is in the file is not as short as numpy writes
    it."""
    if len(data) < END.size:
        raise ValueError(NO_FILE)
    mark, _, _, _, n, size, _, comment = END.unpack(data[-END.size :])
    if mark != b"PK\x05\x06" or comment or _is_large(data):
        raise ValueError(NO_FILE)
    if n > MOST_ARRAYS or size > MOST_DIRECTORY:
        raise ValueError(f"this file lists {n:,} arrays, and at most {MOST_ARRAYS} are read")


def _is_large(data: bytes) -> bool:
    """True for a file with the list of one of more than 4 GiB, which says its length elsewhere."""
    return data[-END.size - END_OF_LARGE.size : -END.size].startswith(b"PK\x06\x07")


def _expect_plain(entries: list[zipfile.ZipInfo]) -> None:
    """Raises ValueError where an entry is no array, stands there twice or is packed otherwise than
    numpy does it."""
    names = [each.filename for each in entries]
    if len({*names}) != len(names) or not all(name.endswith(".npy") for name in names):
        raise ValueError("this file holds something else than arrays, or one of them twice")
    packings = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(each.flag_bits & 1 or each.compress_type not in packings for each in entries):
        raise ValueError("this file is packed in a way in which numpy packs none")


def _array(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """One array. Raises ValueError where its bytes are not those of the type and the shape that
    stand before them."""
    with file.open(entry) as member:
        magic = member.read(8)
        length = MAGIC.get(magic)
        (n,) = length.unpack(_exactly(member.read(length.size), length.size)) if length else (0,)
        match = HEADER.fullmatch(member.read(n)) if 0 < n <= MOST_HEADER else None
        if length is None or match is None:
            raise ValueError("this file holds an array that is neither of numbers nor of text")
        written, shape = match[1].decode(), _shape(match[3])
        item = int(written[2:]) * (4 if written[1] == "U" else 1)
        size = prod(shape) * item
        if written[1] != "U" and written[1:] not in NUMBERS:
            raise ValueError(f"this file holds numbers of {8 * item:,} bits ({written})")
        if item > entry.file_size or (not size and max(shape, default=0) > MOST_OF_NOTHING):
            raise ValueError("this file holds an array of another size than it says")
        if len(magic) + length.size + n + size != entry.file_size:
            raise ValueError("this file holds an array of another size than it says")
        kind, content = np.dtype(written), _exactly(member.read(size), size)
        if member.read(1):
            raise ValueError(NO_FILE)
    order = "F" if match[2] == b"True" else "C"
    if not size:
        return np.zeros(shape, kind)
    return np.frombuffer(content, kind).reshape(shape, order=order)  # type: ignore[call-overload]


def _shape(written: bytes) -> tuple[int, ...]:
    shape = tuple(int(each) for each in written.split(b",") if each.strip())
    if len(shape) > MOST_AXES:
        raise ValueError(f"this file holds an array of {len(shape)} axes")
    return shape


def _exactly(content: bytes, size: int) -> bytes:
    """The bytes. Raises ValueError where there are fewer."""
    if len(content) != size:
        raise ValueError(NO_FILE)
    return content
