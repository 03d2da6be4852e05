"""All distinct strings of a trace in one block of bytes, decoded to `str` only when looked at."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt


class Strings(Sequence[str]):
    """Strings by id. `blob` holds them end to end in UTF-8, `offsets` (n + 1) where each begins. Bad UTF-8 decodes to U+FFFD."""

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

    @cached_property
    def all(self) -> list[str]:
        """Every string, decoded once."""
        bounds = self.offsets.tolist()
        blob = self.blob.tobytes()
        return [blob[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(bounds)]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self.all)}

    def find(self, text: str) -> int:
        """Id of a string, -1 if the trace has none such."""
        return self._index.get(text, -1)
