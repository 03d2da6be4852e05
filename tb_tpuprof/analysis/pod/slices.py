"""Name of a TPU → the slices in which it is offered: their shapes, which axes close to rings, and the rate of
a link.

Sources, read in 2026:

* shapes: the pages "TPU v2" … "TPU7x" of the Cloud TPU documentation (docs.cloud.google.com/tpu/docs/v4 …);
  v2 and v3 are squares, or two squares side by side, up to the pod's 16 × 16 and 32 × 32;
* rings: v4, v5p and TPU7x close an axis by optical switches, which only whole cubes of 4 × 4 × 4 chips have;
  v5e and v6e have wires that close an axis of 16 chips (both: jax-ml.github.io/scaling-book/tpus). v2 and v3
  have them along a whole side of the pod;
* rates of a link, one way: v3 70 GB/s and v4 50 GB/s (Jouppi et al., ISCA 2023,
  doi:10.1145/3579371.3589350, table 4), v2 496 Gbit/s (Jouppi et al., CACM 63(7), 2020); v5e, v6e, v5p and
  TPU7x: the documentation's rate of a chip, both ways, divided by its 4 or 6 links and by 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod

Shape = tuple[int, int, int]
_CUBE = 4


@dataclass(frozen=True)
class Generation:
    """A generation of TPUs. `n_axes`: 2 or 3; `shapes`: of its slices, (x, y, z), by number of chips, the
    default one first; `ring`: the size from which on an axis is closed, 0 if whole cubes are; `hosts`: the
    blocks of chips of its hosts; `link_bytes_per_s`: of one link in one direction.
    """

    name: str
    n_axes: int
    shapes: tuple[Shape, ...]
    ring: int
    hosts: tuple[Shape, ...]
    link_bytes_per_s: float

    def shapes_of(self, n_chips: int) -> Iterator[Shape]:
        """The shapes of slices of so many chips, the default one first, then the same ones turned."""
        offered = [shape for shape in self.shapes if prod(shape) == n_chips]
        yield from offered
        for shape in offered:
            axes = permutations(shape[: self.n_axes])
            turned = {(*sizes, *shape[self.n_axes :]) for sizes in axes} - set(offered)
            yield from sorted((x, y, z) for x, y, z in turned)

    def sizes_with(self, n_chips: int) -> list[int]:
        """Chips of the slices of at least so many, the smallest first."""
        return sorted({size for shape in self.shapes if (size := prod(shape)) >= n_chips})

    def wraps(self, shape: Shape) -> tuple[bool, bool, bool]:
        """Whether the ends of each axis are linked."""
        if not self.ring:
            is_whole = all(size % _CUBE == 0 for size in shape)
            return is_whole, is_whole, is_whole
        x, y, z = (size == self.ring for size in shape)
        return x, y, z

    def host_of(self, n_chips: int) -> Shape | None:
        """The block of a host with so many chips; None if no host has."""
        return next((block for block in self.hosts if prod(block) == n_chips), None)


def _flat(*sizes: tuple[int, int]) -> tuple[Shape, ...]:
    return tuple((x, y, 1) for x, y in sizes)


_SMALL = ((2, 2), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_LITE = _flat((1, 1), (2, 2), (2, 4), *_SMALL[1:])
_BELOW_A_CUBE: tuple[Shape, ...] = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))


def _cubes(most_chips: int) -> tuple[Shape, ...]:
    """Slices of whole cubes, A ≤ B ≤ C, those most like a cube first."""
    sides = range(_CUBE, most_chips // _CUBE**2 + 1, _CUBE)
    shapes = [
        (a, b, c)
        for a in sides
        for b in range(a, most_chips // (a * a) + 1, _CUBE)
        for c in range(b, most_chips // (a * b) + 1, _CUBE)
    ]
    return (*_BELOW_A_CUBE, *sorted(shapes, key=lambda shape: (prod(shape), sum(shape))))


_CUBES = _cubes(9216)
_OF_FOUR = ((2, 2, 1), (1, 1, 1))
_OF_EIGHT = ((2, 2, 1), (2, 4, 1), (1, 1, 1))
_GENERATIONS = (
    (r"TPU ?v2\b", Generation("TPU v2", 2, _flat(*_SMALL), 16, _OF_FOUR, 62e9)),
    (r"TPU ?v3\b", Generation("TPU v3", 2, _flat(*_SMALL, (16, 32), (32, 32)), 32, _OF_FOUR, 70e9)),
    (r"TPU ?v4\b(?! ?(?:i|lite))", Generation("TPU v4", 3, _CUBES, 0, _OF_FOUR, 50e9)),
    (r"TPU ?v5 ?(?:e|lite)\b", Generation("TPU v5e", 2, _LITE, 16, _OF_EIGHT, 50e9)),
    (r"TPU ?v5p?\b(?! ?(?:e|lite))", Generation("TPU v5p", 3, _CUBES, 0, _OF_FOUR, 100e9)),
    (r"TPU ?v6 ?(?:e|lite)\b", Generation("TPU v6e", 2, _LITE, 16, _OF_EIGHT, 100e9)),
    (r"TPU ?v?7x?\b", Generation("TPU7x", 3, _CUBES, 0, _OF_FOUR, 100e9)),
)


def generation_of(device: str) -> Generation | None:
    """The generation of a TPU by its name, such as `TPU v6e` or `TPU v5 lite`; None if it is not known."""
    for pattern, generation in _GENERATIONS:
        if re.match(pattern, device, re.IGNORECASE):
            return generation
    return None
