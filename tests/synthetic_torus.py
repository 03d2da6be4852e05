"""Synthetic slices of TPUs whose chips pass blocks to their neighbors along each axis, with planted late
hosts and latencies. Nothing here was measured on a device.

Each step on each core; a core sends along the next axis as soon as it has received along the one before:

    XLA Ops   ■■ fusion ■■ ▫start▫──done──▫ ▫start▫──done──▫ …
                            x                y
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.ingest.hlo_protos import TUPLE, array, computation, instruction, proto
from tests.synthetic import PS_PER_US, PlaneWriter, Stat, core_details, field

Int64s = npt.NDArray[np.int64]
PROGRAM = 7
BLOCK_BYTES = 2048 * 512 * 4
COMPUTE_US, LATENCY_US, AXIS_US, LATE_US, REST_US = 400, 90, 20, 150, 25


@dataclass(frozen=True)
class Slice:
    """`shape`: chips along x, y, z; `block`: those of a host, one core on each; `device`: the TPU's name as
    traces write it. `late_host` computes LATE_US longer from the step `late_from` on, -1 none. Without
    `has_numbers` the trace does not number the chips in the slice.
    """

    shape: tuple[int, int, int] = (4, 4, 4)
    block: tuple[int, int, int] = (2, 2, 1)
    device: str = "TPU v4"
    n_steps: int = 6
    late_host: int = -1
    late_from: int = 0
    has_numbers: bool = True

    @property
    def n_chips(self) -> int:
        """Of the slice."""
        return prod(self.shape)

    @property
    def axes(self) -> list[int]:
        """The axes with more than one chip."""
        return [axis for axis in range(3) if self.shape[axis] > 1]

    def places(self) -> Int64s:
        """(x, y, z) of each chip by number, which counts along x first."""
        return np.array(
            [
                (x, y, z)
                for z in range(self.shape[2])
                for y in range(self.shape[1])
                for x in range(self.shape[0])
            ],
            np.int64,
        )

    def hosts(self) -> list[list[int]]:
        """The chips of each host."""
        place = self.places()
        block = place // np.array(self.block)
        grid = [size // part for size, part in zip(self.shape, self.block, strict=True)]
        host = block[:, 0] + grid[0] * (block[:, 1] + grid[1] * block[:, 2])
        return [np.flatnonzero(host == i).tolist() for i in range(prod(grid))]

    def next_along(self, axis: int) -> Int64s:
        """The chip that each chip sends to."""
        place = self.places()
        place[:, axis] = (place[:, axis] + 1) % self.shape[axis]
        return place @ np.array([1, self.shape[0], self.shape[0] * self.shape[1]])

    def latency_us(self, axis: int) -> Int64s:
        """By chip that sends."""
        return LATENCY_US + AXIS_US * axis + np.arange(self.n_chips) % 7


def program(torus: Slice) -> bytes:
    """A permutation to the next chip along each axis."""
    block = array(2048, 512)
    halves = {2: TUPLE, 4: [block, block]}
    ops = [instruction(1, "parameter", block)]
    last = 1
    for axis in torus.axes:
        pairs = [{1: chip, 2: int(to)} for chip, to in enumerate(torus.next_along(axis).tolist())]
        start = 10 + 2 * axis
        ops.append(instruction(start, "collective-permute-start", halves, [last], f26=axis + 1, f52=pairs))
        ops.append(instruction(start + 1, "collective-permute-done", block, [start]))
        last = start + 1
    return proto([computation(1, "main", ops, last)])


def times_us(torus: Slice, step: int) -> tuple[Int64s, list[tuple[Int64s, Int64s]], int]:
    """In µs: compute time of each chip, when each axis's permutation begins on the chip and when it has
    received, and the step's length.
    """
    compute = np.full(torus.n_chips, COMPUTE_US, np.int64)
    if torus.late_host >= 0 and step >= torus.late_from:
        compute[torus.hosts()[torus.late_host]] += LATE_US
    ready, transfers = compute.copy(), []
    for axis in torus.axes:
        to = torus.next_along(axis)
        end = np.empty_like(ready)
        end[to] = np.maximum(ready, ready[to]) + torus.latency_us(axis)
        transfers.append((ready, end))
        ready = end
    return compute, transfers, int(ready.max()) + REST_US


def torus_hosts(torus: Slice) -> dict[str, bytes]:
    """The files of the slice by host."""
    steps = [times_us(torus, step) for step in range(torus.n_steps)]
    hlo = program(torus)
    result = {}
    for host, chips in enumerate(torus.hosts()):
        space = xspace_class()()
        for local, chip in enumerate(chips):
            plane = PlaneWriter(space, f"/device:TPU:{local}")
            stats: dict[str, Stat] = {"device_type_string": torus.device}
            if torus.has_numbers:
                # The last of several values of a field counts.
                stats["core_details"] = core_details(local, local) + field(5, chip) + field(6, chip)
            plane.stats(plane.plane, stats)
            _chip(plane, [_ops(torus, chip, *times) for times in steps])
        PlaneWriter(space, "/host:metadata").metadata(f"jit_train({PROGRAM})", {"Hlo Proto": hlo})
        space.hostnames.append(f"synthetic-{host}".encode())
        result[f"synthetic-{host}"] = bytes(space.SerializeToString())
    return result


def _ops(
    torus: Slice, chip: int, compute: Int64s, transfers: list[tuple[Int64s, Int64s]], step_us: int
) -> tuple[list[tuple[str, str, int, int]], int]:
    """What a chip runs in a step (name, category, begin, end), and the step's length."""
    ops = [("fusion.9", "convolution fusion", 0, int(compute[chip]))]
    for axis, times in zip(torus.axes, transfers, strict=True):
        number, (begin, end) = 10 + 2 * axis, (int(time[chip]) for time in times)
        ops.append((f"collective-permute-start.{number}", "collective-permute-start", begin, begin + 1))
        ops.append((f"collective-permute-done.{number + 1}", "collective-permute-done", begin + 1, end))
    return ops, step_us


def _chip(plane: PlaneWriter, steps: list[tuple[list[tuple[str, str, int, int]], int]]) -> None:
    names = {}
    for symbol, (name, category, _, _) in enumerate(steps[0][0], 1):
        names[name] = f"%{name} = {category}()"
        stats: dict[str, Stat] = {"program_id": PROGRAM, "symbol_id": symbol, "hlo_category": category}
        plane.metadata(names[name], stats, name)
    markers, line = (plane.line(name, i + 1, 1_000_000) for i, name in enumerate(("Steps", "XLA Ops")))
    at = 0
    for step, (ops, step_us) in enumerate(steps):
        plane.event(markers, str(step), at * PS_PER_US, step_us * PS_PER_US)
        for name, _, begin, end in ops:
            plane.event(line, names[name], (at + begin) * PS_PER_US, (end - begin) * PS_PER_US)
        at += step_us
