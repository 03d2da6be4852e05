"""Tables of what a snapshot's allocator did until it was saved, and what they are filled from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.memory.heap import frame_text
from tb_tpuprof.analysis.memory.heap_history import (
    Contents,
    Kept,
    Levels,
    contents,
    drawn_events,
    ooms,
)
from tb_tpuprof.tools.memory_snapshot import history_tables as declared
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Texts, known_texts
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.heap_history import ACTIONS, ALLOC, DeviceHistory, Recording
from tb_tpuprof.units import counted, format_bytes

Int64s = npt.NDArray[np.int64]
N_ROWS = 2000
BEFORE = "(allocated before the history)"
OLDER = -2  # the place of blocks of which only the sum of their sizes is known
N_FAILURES = 100
_MOST_LOOKED_AT = 20_000_000  # events, to find what was in use when allocations failed


@dataclass(frozen=True)
class Device:
    """A device's history with what was computed of it."""

    history: DeviceHistory
    levels: Levels
    kept: Kept

    @property
    def peak_bytes(self) -> int:
        """The most memory in use."""
        return int(self.levels.used_bytes[self.levels.peak])


@dataclass(frozen=True)
class Window:
    """The part of the history that is drawn, the moment that the tables show and how it is named."""

    start_ps: int
    end_ps: int
    width_px: int
    event: int
    moment: str


@dataclass(frozen=True)
class Failure:
    """An allocation that failed: the place that requested it, what the device had left (−1 unknown), and the
    place with most memory in use then (−1 bytes if it was not looked up).
    """

    start_ps: int
    frame: int
    requested_bytes: int
    device_free_bytes: int
    used_bytes: int
    reserved_bytes: int
    holder: int
    holder_bytes: int

    @property
    def unused_bytes(self) -> int:
        """Held memory that no block requested; −1 unknown, where more is in use than held."""
        return max(-1, self.reserved_bytes - self.used_bytes)


class Places:
    """Places of the program by frame, as texts."""

    def __init__(self, recording: Recording, frames: Int64s) -> None:
        self.stacks = recording.stacks
        self.of_stack = frames

    def text(self, frame: int) -> str:
        """A place as the page names it."""
        return BEFORE if frame == OLDER else frame_text(self.stacks, frame)

    def texts(self, frames: Int64s) -> Texts:
        """Many places."""
        distinct, codes = np.unique(frames, return_inverse=True)
        return Texts(codes.reshape(-1).astype(np.int32), [self.text(frame) for frame in distinct.tolist()])


def failures_of(device: Device, places: Places) -> list[Failure]:
    """The last allocations that failed, in the order of time."""
    history, level = device.history, device.levels
    rows = ooms(history)[-N_FAILURES:].tolist()
    n_looked_up = max(1, _MOST_LOOKED_AT // len(history))
    failures = []
    for i, row in enumerate(rows):
        holder, holder_bytes = -1, -1
        if len(rows) - i <= n_looked_up:
            frame, size, *_ = by_place(contents(history, level, row), places)
            holder, holder_bytes = (int(frame[0]), int(size[0])) if len(frame) else (-1, 0)
        failures.append(
            Failure(
                int(history.time_ps[row]),
                int(places.of_stack[history.stack[row]]),
                int(history.size_bytes[row]),
                int(history.address[row]),
                int(level.used_bytes[row]),
                int(level.reserved_bytes[row]),
                holder,
                holder_bytes,
            )
        )
    return failures


def timeline_table(device: Device, window: Window, places: Places) -> Table:
    """The levels of a device in the window."""
    history, level = device.history, device.levels
    rows = drawn_events(history, level, window.start_ps, window.end_ps, window.width_px)
    low, high = np.searchsorted(history.time_ps, [window.start_ps, window.end_ps + 1]).tolist()
    noted = counted(high - low, "event")
    return declared.TIMELINE.fill(
        {
            "start_ps": history.time_ps[rows],
            "used_bytes": level.used_bytes[rows],
            "pending_bytes": level.pending_bytes[rows],
            "reserved_bytes": level.reserved_bytes[rows],
            "action": Texts(history.action[rows].astype(np.int32), ACTIONS),
            "size_bytes": history.size_bytes[rows],
            "place": places.texts(places.of_stack[history.stack[rows]]),
        },
        noted if len(rows) >= high - low else f"{len(rows):,} of {noted} drawn",
    )


def contents_tables(device: Device, window: Window, places: Places) -> dict[str, Table]:
    """Blocks in use at the moment, by place and by size."""
    shown = contents(device.history, device.levels, window.event)
    return {
        "at_places": _at_places(shown, window.moment, places),
        "at_sizes": _at_sizes(shown, window.moment, places),
    }


def by_place(shown: Contents, places: Places) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """(frame, bytes, blocks, largest block) of each place, most bytes first; of blocks that are not known, −1
    blocks.
    """
    frame, group = np.unique(places.of_stack[shown.stack], return_inverse=True)
    size, n_blocks, largest = (np.zeros(len(frame), np.int64) for _ in range(3))
    np.add.at(size, group.reshape(-1), shown.size_bytes)
    np.add.at(n_blocks, group.reshape(-1), 1)
    np.maximum.at(largest, group.reshape(-1), shown.size_bytes)
    if shown.unknown_bytes:
        frame, size = np.append(frame, OLDER), np.append(size, shown.unknown_bytes)
        n_blocks, largest = np.append(n_blocks, -1), np.append(largest, -1)
    order = np.lexsort((frame, -size))
    return frame[order].astype(np.int64), size[order], n_blocks[order], largest[order]


def _at_places(shown: Contents, moment: str, places: Places) -> Table:
    frame, size, n_blocks, largest = (column[:N_ROWS] for column in by_place(shown, places))
    return declared.AT_PLACES.fill(
        {
            "place": places.texts(frame),
            "size_bytes": size,
            "fraction": size / (shown.total_bytes or 1),
            "n_blocks": known(n_blocks),
            "largest_bytes": known(largest),
        },
        f"{format_bytes(shown.total_bytes)} {moment}",
        title=f"In use {moment}, by place",
    )


def known(values: Int64s) -> npt.NDArray[np.float64] | Int64s:
    """Numbers with NaN for negative ones, which are unknown."""
    return np.where(values < 0, np.nan, values) if (values < 0).any() else values


def _at_sizes(shown: Contents, moment: str, places: Places) -> Table:
    frames = places.of_stack[shown.stack]
    pairs, group = distinct_rows(shown.size_bytes, frames)
    n_blocks = np.bincount(group, minlength=len(pairs)).astype(np.int64)
    total = pairs[:, 0] * n_blocks
    order = np.lexsort((pairs[:, 1], -pairs[:, 0], -total))
    rows = order[:N_ROWS]
    return declared.AT_SIZES.fill(
        {
            "block_bytes": pairs[rows, 0],
            "n_blocks": n_blocks[rows],
            "size_bytes": total[rows],
            "fraction": total[rows] / (shown.total_bytes or 1),
            "place": places.texts(pairs[rows, 1]),
        },
        _cut(len(order)) or f"{format_bytes(int(total.sum()))} in {counted(len(frames), 'block')}",
        title=f"In use {moment}, by size of block",
    )


def _cut(n_rows: int) -> str:
    return f"the first {N_ROWS:,} of {n_rows:,}" if n_rows > N_ROWS else ""


def kept_table(device: Device, places: Places) -> Table:
    """What was allocated and not freed."""
    stays, time = device.kept, device.history.time_ps
    is_kept = np.flatnonzero(stays.n_kept > 0)
    rows = is_kept[:N_ROWS]
    return declared.KEPT.fill(
        {
            "place": places.texts(stays.frame[rows]),
            "kept_bytes": stays.kept_bytes[rows],
            "n_kept": stays.n_kept[rows],
            "allocated_bytes": stays.allocated_bytes[rows],
            "n_allocated": stays.n_allocated[rows],
            "first_ps": time[stays.first[rows]],
            "last_ps": time[stays.last[rows]],
            "is_steady": stays.is_steady[rows],
        },
        _cut(len(is_kept)) or f"{format_bytes(int(stays.kept_bytes.sum()))} at the end of the history",
    )


def failures_table(failures: Sequence[Failure], n_failures: int, places: Places) -> Table:
    """Allocations that failed."""

    def column(values: Iterable[int]) -> Int64s:
        return np.array([*values], np.int64)

    return declared.FAILURES.fill(
        {
            "start_ps": column(one.start_ps for one in failures),
            "place": places.texts(column(one.frame for one in failures)),
            "requested_bytes": column(one.requested_bytes for one in failures),
            "device_free_bytes": known(column(one.device_free_bytes for one in failures)),
            "used_bytes": column(one.used_bytes for one in failures),
            "reserved_bytes": column(one.reserved_bytes for one in failures),
            "unused_bytes": known(column(one.unused_bytes for one in failures)),
            "holder": known_texts(
                [places.text(one.holder) if one.holder_bytes >= 0 else "" for one in failures]
            ),
            "holder_bytes": known(column(one.holder_bytes for one in failures)),
        },
        f"the last {len(failures):,} of {n_failures:,}" if n_failures > len(failures) else "",
    )


def devices_table(devices: list[Device]) -> Table:
    """A row per device with a history."""
    most_held = [int(np.argmax(device.levels.reserved_bytes)) for device in devices]
    reserved = [int(device.levels.reserved_bytes[i]) for device, i in zip(devices, most_held, strict=True)]
    used = [int(device.levels.used_bytes[i]) for device, i in zip(devices, most_held, strict=True)]
    shares = [1 - u / r if r and u <= r else np.nan for u, r in zip(used, reserved, strict=True)]
    histories = [device.history for device in devices]
    return declared.DEVICES.fill(
        {
            "device": [history.device for history in histories],
            "peak_bytes": np.array([device.peak_bytes for device in devices], np.int64),
            "peak_ps": np.array([device.history.time_ps[device.levels.peak] for device in devices], np.int64),
            "reserved_peak_bytes": np.array(reserved, np.int64),
            "unused_fraction": np.array(shares, np.float64),
            "n_allocations": np.array([(history.action == ALLOC).sum() for history in histories], np.int64),
            "kept_bytes": np.array([device.kept.kept_bytes.sum() for device in devices], np.int64),
            "n_failures": np.array([len(ooms(history)) for history in histories], np.int64),
        }
    )
