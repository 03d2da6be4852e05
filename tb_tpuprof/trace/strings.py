"""All distinct strings of a trace in one block of bytes, decoded to `str` on demand."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native import joined

_DAMAGED = "\ufffd"  # invalid UTF-8 decodes to this
_MANY = 500  # lookups above which a dict of all strings is cheaper
_SMALL = 4096  # number of strings up to which a dict is always cheaper
_FEW = 4  # candidates that are few enough to be compared one by one


class Strings(Sequence[str]):
    """Strings by id. `blob` holds them end to end in UTF-8, `offsets` (n + 1) the start of each. Invalid
    UTF-8 decodes to U+FFFD.
    """

    def __init__(self, blob: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> None:
        self.blob = blob
        self.offsets = offsets

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> Strings:
        """Strings from byte strings, in their order."""
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
        """Several strings, decoded together. Raises IndexError."""
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
        """Id of a string, -1 if the trace does not have it. Decodes no other strings, unless it is called
        very often.
        """
        index = self._ids.get(text)
        if index is None:
            index = self._ids[text] = self._search(text)
        return index

    def _search(self, text: str) -> int:
        if len(self.offsets) <= _SMALL or len(self._ids) > _MANY or _DAMAGED in text:
            return self._index.get(text, -1)
        return find_bytes(self.blob, self.offsets[:-1], self.sizes, text.encode("utf-8", "surrogatepass"))

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {}

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Bytes of each string."""
        return np.diff(self.offsets)

    @cached_property
    def _index(self) -> dict[str, int]:
        # Reversed, so that of equal strings the first one wins.
        return dict(zip(reversed(self.all), range(len(self) - 1, -1, -1), strict=True))


def _decoded(blob: bytes, offsets: npt.NDArray[np.int64]) -> list[str]:
    """Splits byte strings that are stored end to end and decodes each."""
    bounds = itertools.pairwise(offsets.tolist())
    if blob.isascii():  # the common case: a character is a byte
        text = blob.decode("ascii")
        return [text[a:b] for a, b in bounds]
    return [blob[a:b].decode("utf-8", "replace") for a, b in bounds]


def find_bytes(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], sought: bytes
) -> int:
    """Index of the byte string data[start:start + size] that equals `sought`, -1 if none. Compares only those
    of its length.
    """
    candidates = np.flatnonzero(sizes == len(sought))
    # From the end: names are numbered, so their last bytes differ most.
    for offset in range(len(sought) - 1, -1, -1):
        if len(candidates) < _FEW:
            break
        candidates = candidates[data[starts[candidates] + offset] == sought[offset]]
    spans = zip(candidates.tolist(), starts[candidates].tolist(), strict=True)
    return next((i for i, start in spans if data[start : start + len(sought)].tobytes() == sought), -1)
