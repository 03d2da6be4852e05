"""A pod of TPUs → the place of each chip in its slice, and the links between two places.

    chip numbers of the trace, x first         places (x, y, z)
    0  1  2  3                                 (0,0,0) (1,0,0) (2,0,0) (3,0,0)
    4  5  6  7                                 (0,1,0) …

Traces state no coordinates. They state each chip's number in its slice (`core_details`), and runtimes number
chips along x, then y, then z: JAX's devices show both (`id=4 … coords=(0,1,0)` in a slice of 4 × 4). The
slice's shape is the one offered for so many chips in which each host's chips are a block. Without numbers,
hosts are taken in their order, block after block.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.pod.join import Pod
from tb_tpuprof.analysis.pod.slices import Generation, Shape, generation_of

Int64s = npt.NDArray[np.int64]
AXES = "xyz"


class PlacedBy(Enum):
    """The source of the chips' places."""

    NUMBERS = "the chips' numbers in the trace"
    ORDER = "assumed order: hosts and chips as they are listed"


@dataclass(frozen=True)
class Topology:
    """A slice. `place`: (x, y, z) of each core's chip, [n_cores, 3]; `wraps`: whether an axis is known to be
    a ring; `n_missing`: chips of the slice that were not captured.
    """

    generation: Generation
    shape: Shape
    wraps: tuple[bool, bool, bool]
    place: Int64s
    placed_by: PlacedBy
    n_missing: int

    @property
    def name(self) -> str:
        """`4 × 4 × 4 torus`, `2 × 4 mesh`; a torus is closed along all axes."""
        sizes = self.shape[: self.generation.n_axes]
        shape = " × ".join(map(str, sizes))
        wraps = self.wraps[: self.generation.n_axes]
        return f"{shape} {'torus' if all(wraps) else 'mesh' if not any(wraps) else 'partial torus'}"

    @property
    def may_be_twisted(self) -> bool:
        """Whether slices of this shape are also offered twisted: K × K × 2K or K × 2K × 2K whole cubes. The
        wrap links of a twisted torus lead to the other half of the long axis.
        """
        short, middle, long = sorted(self.shape)
        is_of_cubes = self.wraps[0] and not self.generation.ring
        return is_of_cubes and long == 2 * short and middle in (short, long)


@dataclass(frozen=True)
class Links:
    """How two places are linked. `steps`: signed moves along each axis the shorter way, [n, 3]; `is_wrapped`:
    whether the way leads over the ring's end, [n, 3].
    """

    steps: Int64s
    is_wrapped: npt.NDArray[np.bool_]

    @property
    def hops(self) -> Int64s:
        """Links on the shortest way; 0 on one chip."""
        result: Int64s = np.abs(self.steps).sum(axis=1)
        return result

    def names(self) -> list[str]:
        """`x`, `z wrap`, `x + 2 y`, `same chip`."""
        rows = np.concatenate((np.abs(self.steps), self.is_wrapped.astype(np.int64)), axis=1)
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        texts = [_link_name(row[:3], row[3:]) for row in distinct.tolist()]
        return [texts[i] for i in inverse.reshape(-1).tolist()]


def _link_name(steps: list[int], wrapped: list[int]) -> str:
    parts = [
        (f"{n} " if n > 1 else "") + axis + (" wrap" if is_wrapped else "")
        for axis, n, is_wrapped in zip(AXES, steps, wrapped, strict=True)
        if n
    ]
    return " + ".join(parts) or "same chip"


def links(topology: Topology, sources: Int64s, targets: Int64s) -> Links:
    """The links between the chips of cores, by rows of the pod's cores."""
    steps = topology.place[targets] - topology.place[sources]
    size, is_ring = np.array(topology.shape), np.array(topology.wraps)
    around = steps - np.sign(steps) * size
    is_wrapped = is_ring & (np.abs(around) < np.abs(steps))
    return Links(np.where(is_wrapped, around, steps).astype(np.int64), is_wrapped)


def topology(pod: Pod) -> Topology | str:
    """The slice of a pod's chips, or the reason why their places are unknown, as the end of a sentence."""
    if pod.kind != "TPU" or not pod.cores:
        return "only TPUs are linked as a mesh"
    generation = generation_of(pod.device)
    if generation is None:
        return f"the slices of {pod.device} are not known"
    ids = np.array([core.chip_id for core in pod.cores], np.int64)
    if ids.min() >= 0:
        return _by_numbers(generation, ids, pod.host_of)
    return _by_order(generation, np.array([core.chip for core in pod.cores], np.int64), pod.host_of)


def _by_numbers(generation: Generation, ids: Int64s, host_of: Int64s) -> Topology | str:
    chips, first = np.unique(ids, return_index=True)
    if (host_of[first[np.searchsorted(chips, ids)]] != host_of).any():
        return "several hosts have chips with the same number, as in runs on several slices"
    least = int(chips[-1]) + 1
    sizes = [least] if least == len(chips) else generation.sizes_with(least)
    for size in sizes:
        for shape in generation.shapes_of(size):
            place = _unravelled(ids, shape)
            if _are_blocks(place[first], host_of[first], generation):
                n_missing = size - len(chips)
                wraps = (False, False, False) if n_missing else generation.wraps(shape)
                return Topology(generation, shape, wraps, place, PlacedBy.NUMBERS, n_missing)
    chips_text = f"{least:,} chip" + ("" if least == 1 else "s")
    return f"no slice of {generation.name} has {chips_text} in which each host's chips are a block"


def _by_order(generation: Generation, chip: Int64s, host_of: Int64s) -> Topology | str:
    """Hosts in their order, each a block."""
    pairs, inverse = np.unique(np.column_stack((host_of, chip)), axis=0, return_inverse=True)
    per_host = np.bincount(pairs[:, 0])
    block = generation.host_of(int(per_host[0]))
    if block is None or (per_host != per_host[0]).any():
        return "the trace does not number the chips, and the hosts differ in how many they have"
    within = np.arange(len(pairs)) % int(per_host[0])
    for shape in generation.shapes_of(len(pairs)):
        if any(size % part for size, part in zip(shape, block, strict=True)):
            continue
        grid = shape[0] // block[0], shape[1] // block[1], shape[2] // block[2]
        place = _unravelled(pairs[:, 0], grid) * np.array(block) + _unravelled(within, block)
        return Topology(
            generation, shape, generation.wraps(shape), place[inverse.reshape(-1)], PlacedBy.ORDER, 0
        )
    return f"no slice of {generation.name} has {len(pairs):,} chips"


def _unravelled(numbers: Int64s, shape: Shape) -> Int64s:
    """Places of numbers that count along x, then y, then z."""
    z, y, x = np.unravel_index(numbers, shape[::-1])
    return np.column_stack((x, y, z)).astype(np.int64)


def _are_blocks(place: Int64s, host_of: Int64s, generation: Generation) -> bool:
    """Whether the chips of each host fill a block, of the host's shape if that is known."""
    count = np.bincount(host_of)
    low, high = np.full((len(count), 3), np.iinfo(np.int64).max), np.zeros((len(count), 3), np.int64)
    np.minimum.at(low, host_of, place)
    np.maximum.at(high, host_of, place)
    extent = high - low + 1
    if (extent.prod(axis=1) != count).any():
        return False
    blocks = {int(n): generation.host_of(int(n)) for n in np.unique(count).tolist()}
    return all(
        (block := blocks[n]) is None or sorted(block) == sorted(size)
        for n, size in zip(count.tolist(), extent.tolist(), strict=True)
    )
