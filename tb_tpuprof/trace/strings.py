"""All distinct strings of a trace in one block of bytes, decoded to `str` only when looked at."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import joined

_DAMAGED = "\ufffd"  # what bad UTF-8 decodes to
_MANY = 500  # texts sought, from which on a dict of all is cheaper
_SMALL = 4096  # strings, up to which it always is
_FEW = 4


class Strings(Sequence[str]):
    """Strings by id. `blob` holds them end to end in UTF-8, `offsets` (n + 1) where each begins. Bad UTF-8
    decodes to U+FFFD.
    """

    def __init__(self, blob: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        self.blob = blob
        self.offsets = offsets

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> Strings:
        """Strings from a list of byte strings, in that order."""
        parts = list(texts)
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return cls(np.frombuffer(b"".join(parts), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def bytes_at(self, index: int) -> bytes:
        """The UTF-8 bytes of one string."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.blob[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        return self.bytes_at(int(index)).decode("utf-8", "replace")

    def get(self, index: int) -> str:
        """The string, or "" for -1 (none)."""
        return self[index] if index >= 0 else ""

    def take(self, indexes: npt.NDArray[np.integer]) -> list[str]:
        """Some of the strings, decoded together. Raises IndexError."""
        rows = np.asarray(indexes, np.int64)
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(self):
            raise IndexError(f"strings {int(rows.min())} to {int(rows.max())} of {len(self)}")
        blob, offsets = joined(self.blob, self.offsets[rows], self.sizes[rows])
        return _decoded(blob.tobytes(), offsets)

    @cached_property
    def all(self) -> list[str]:
        """Every string, decoded once."""
        return _decoded(self.blob.tobytes(), self.offsets)

    def find(self, text: str) -> int:
        """Id of a string, -1 if the trace has none such. Decodes no others, unless very many are
        asked for.
        """
        known = self._found.get(text)
        if known is None:
            known = self._found[text] = self._sought(text)
        return known

    def _sought(self, text: str) -> int:
        if len(self.offsets) <= _SMALL or len(self._found) > _MANY or _DAMAGED in text:
            return self._index.get(text, -1)
        return find_bytes(self.blob, self.offsets[:-1], self.sizes, text.encode("utf-8", "surrogatepass"))

    @cached_property
    def _found(self) -> dict[str, int]:
        return {}

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Bytes of each."""
        return np.diff(self.offsets)

    @cached_property
    def _index(self) -> dict[str, int]:
        return dict(
            zip(reversed(self.all), range(len(self) - 1, -1, -1), strict=True)
        )  # of equal ones the first


def _decoded(blob: bytes, offsets: npt.NDArray[np.int64]) -> list[str]:
    """Byte strings that stand end to end as texts."""
    bounds = itertools.pairwise(offsets.tolist())
    if blob.isascii():  # as most are: then a character is a byte
        text = blob.decode("ascii")
        return [text[a:b] for a, b in bounds]
    return [blob[a:b].decode("utf-8", "replace") for a, b in bounds]


def find_bytes(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], wanted: bytes
) -> int:
    """Which of the byte strings data[start:start + size] is the wanted one, -1 if none; looks at those of its
    length only.
    """
    found = np.flatnonzero(sizes == len(wanted))
    # The last bytes tell most: names are numbered.
    for at in range(len(wanted) - 1, -1, -1):
        if len(found) < _FEW:
            break
        found = found[data[starts[found] + at] == wanted[at]]
    places = zip(found.tolist(), starts[found].tolist(), strict=True)
    return next((i for i, start in places if data[start : start + len(wanted)].tobytes() == wanted), -1)
