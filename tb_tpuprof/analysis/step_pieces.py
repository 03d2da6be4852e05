"""Stretches of time within steps, each with its class and with the event that says so: what classes of steps are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
_SAME = np.empty(0, np.uint8)


@dataclass(frozen=True)
class Pieces:
    """One row per stretch; times in ps. `klass`: of TimeClass; `step`: index of the step that it lies in.

    `named`: the metadata row that names it, on the steps' own threads; -1 for work of other threads and of devices.
    `event`: the innermost event on the steps' own threads, elsewhere the event that is counted.
    `said`: what the thread says that it does. The same as `klass`, but for time in which devices are idle: that has no class of its own.
    """

    start: Int64s
    end: Int64s
    klass: npt.NDArray[np.uint8]
    step: Int64s
    named: Int64s
    event: Int64s
    said: npt.NDArray[np.uint8] = field(default_factory=lambda: _SAME)

    def __post_init__(self) -> None:
        if self.said is _SAME:
            object.__setattr__(self, "said", self.klass)

    def __len__(self) -> int:
        return len(self.start)

    def of_steps(self, number: Int64s, kept: Int64s) -> Pieces:
        """Those of the steps whose numbers are in `kept`, in that order. `number`: of each step that `step` counts."""
        place = {value: at for at, value in enumerate(kept.tolist())}
        at = np.array([place.get(value, -1) for value in number.tolist()], np.int64)
        rows = np.flatnonzero(at[self.step] >= 0)
        step = at[self.step[rows]]
        return Pieces(self.start[rows], self.end[rows], self.klass[rows], step, self.named[rows], self.event[rows], self.said[rows])


def joined(parts: Sequence[Pieces]) -> Pieces:
    """All rows of several."""
    return Pieces(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Pieces)))


def no_pieces() -> Pieces:
    """No rows."""
    none = np.empty(0, np.int64)
    return Pieces(none, none, none.astype(np.uint8), none, none, none)
