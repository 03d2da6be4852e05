"""Places of chips in slices, wrap links and ways between chips, each from numbers written down by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.host import PodCore
from tb_tpuprof.analysis.pod.join import Pod, join
from tb_tpuprof.analysis.pod.slices import generation_of
from tb_tpuprof.analysis.pod.topology import PlacedBy, Topology, links, topology
from tests.synthetic_pod import Pod as SyntheticPod
from tests.synthetic_pod import analysed

# What JAX prints of a v5e slice of 16 chips: number of the device, process, coordinates.
JAX_4X4 = """
0 0 (0,0,0) | 1 0 (1,0,0) | 4 0 (0,1,0) | 5 0 (1,1,0) | 2 1 (2,0,0) | 3 1 (3,0,0) | 6 1 (2,1,0) |
7 1 (3,1,0) | 8 2 (0,2,0) | 9 2 (1,2,0) | 12 2 (0,3,0) | 13 2 (1,3,0) | 10 3 (2,2,0) | 11 3 (3,2,0) |
14 3 (2,3,0) | 15 3 (3,3,0)
"""


@cache
def any_pod() -> Pod:
    return join(analysed(SyntheticPod(n_hosts=1, n_chips=1, n_steps=2)))


def pod(device: str, hosts: list[list[int]], has_numbers: bool = True) -> Pod:
    """A pod of chips with one core each; `hosts`: the chips' numbers in the slice."""
    cores = tuple(
        PodCore(f"TPU:{local}", local, local, chip if has_numbers else -1, chip if has_numbers else -1)
        for chips in hosts
        for local, chip in enumerate(chips)
    )
    host_of = np.repeat(np.arange(len(hosts)), [len(chips) for chips in hosts])
    names = tuple(f"h{i}" for i in range(len(hosts)))
    return replace(any_pod(), device=device, cores=cores, host_of=host_of.astype(np.int64), hosts=names)


def blocks(shape: tuple[int, int, int], block: tuple[int, int, int]) -> list[list[int]]:
    """The chips of each host, chips counted along x, then y, then z; hosts too."""
    by_host: dict[tuple[int, int, int], list[int]] = {}
    for chip in range(shape[0] * shape[1] * shape[2]):
        x, y, z = chip % shape[0], chip // shape[0] % shape[1], chip // (shape[0] * shape[1])
        by_host.setdefault((z // block[2], y // block[1], x // block[0]), []).append(chip)
    return [by_host[key] for key in sorted(by_host)]


def placed(device: str, hosts: list[list[int]], has_numbers: bool = True) -> Topology:
    result = topology(pod(device, hosts, has_numbers))
    assert isinstance(result, Topology), result
    return result


def reason(device: str, hosts: list[list[int]], has_numbers: bool = True) -> str:
    result = topology(pod(device, hosts, has_numbers))
    assert isinstance(result, str)
    return result


def test_numbers_count_along_x_first_as_jax_s_coordinates_show() -> None:
    rows = [row.split() for row in JAX_4X4.replace("\n", " ").split("|")]
    hosts: list[list[int]] = [[], [], [], []]
    for chip, process, _ in rows:
        hosts[int(process)].append(int(chip))
    result = placed("TPU v5 lite", hosts)
    by_chip = {int(chip): tuple(map(int, text.strip("()").split(","))) for chip, _, text in rows}
    chips = [chip for host in hosts for chip in host]
    assert [tuple(place) for place in result.place.tolist()] == [by_chip[chip] for chip in chips]
    assert (result.name, result.placed_by, result.n_missing) == ("4 × 4 mesh", PlacedBy.NUMBERS, 0)
    assert result.wraps == (False, False, False)


@pytest.mark.parametrize(
    ("device", "shape", "block", "wraps", "name"),
    [
        ("TPU v2", (8, 16, 1), (2, 2, 1), (False, True, False), "8 × 16 partial torus"),
        ("TPU v2", (16, 16, 1), (2, 2, 1), (True, True, False), "16 × 16 torus"),
        ("TPU v3", (16, 16, 1), (2, 2, 1), (False, False, False), "16 × 16 mesh"),
        ("TPU v3", (16, 32, 1), (2, 2, 1), (False, True, False), "16 × 32 partial torus"),
        ("TPU v3", (32, 32, 1), (2, 2, 1), (True, True, False), "32 × 32 torus"),
        ("TPU v4", (2, 2, 1), (2, 2, 1), (False, False, False), "2 × 2 × 1 mesh"),
        ("TPU v4", (2, 2, 4), (2, 2, 1), (False, False, False), "2 × 2 × 4 mesh"),
        ("TPU v4", (2, 4, 4), (2, 2, 1), (False, False, False), "2 × 4 × 4 mesh"),
        ("TPU v4", (4, 4, 4), (2, 2, 1), (True, True, True), "4 × 4 × 4 torus"),
        ("TPU v5p", (4, 4, 12), (2, 2, 1), (True, True, True), "4 × 4 × 12 torus"),
        ("TPU v5", (8, 8, 16), (2, 2, 1), (True, True, True), "8 × 8 × 16 torus"),
        ("TPU7x", (4, 8, 8), (2, 2, 1), (True, True, True), "4 × 8 × 8 torus"),
        ("TPU v5e", (2, 4, 1), (2, 4, 1), (False, False, False), "2 × 4 mesh"),
        ("TPU v5e", (8, 8, 1), (2, 4, 1), (False, False, False), "8 × 8 mesh"),
        ("TPU v6e", (8, 16, 1), (2, 2, 1), (False, True, False), "8 × 16 partial torus"),
        ("TPU v6 lite", (16, 8, 1), (2, 2, 1), (True, False, False), "16 × 8 partial torus"),
        ("TPU v6e", (16, 16, 1), (2, 4, 1), (True, True, False), "16 × 16 torus"),
        ("TPU v5e", (8, 16, 1), (2, 4, 1), (False, True, False), "8 × 16 partial torus"),
        ("TPU v5 lite", (16, 16, 1), (2, 4, 1), (True, True, False), "16 × 16 torus"),
    ],
)
def test_an_axis_wraps_only_where_its_generation_closes_it(
    device: str,
    shape: tuple[int, int, int],
    block: tuple[int, int, int],
    wraps: tuple[bool, bool, bool],
    name: str,
) -> None:
    """v4 and later 3-D slices only as whole cubes of 4 × 4 × 4, v5e and v6e only axes of 16."""
    result = placed(device, blocks(shape, block))
    assert (result.shape, result.wraps, result.name) == (shape, wraps, name)


def test_the_hosts_blocks_decide_between_shapes_of_one_size() -> None:
    """64 chips of v4 are 4 × 4 × 4 by default; hosts whose second row begins 8 chips later show another
    one.
    """
    assert placed("TPU v4", blocks((4, 8, 16), (2, 2, 1))).shape == (4, 8, 16)
    assert placed("TPU v4", blocks((8, 8, 8), (2, 2, 1))).shape == (8, 8, 8)
    assert placed("TPU v5e", blocks((8, 4, 1), (2, 2, 1))).shape == (8, 4, 1)
    assert placed("TPU v5e", blocks((4, 8, 1), (2, 2, 1))).shape == (4, 8, 1)


def test_a_part_of_a_slice_lies_in_the_smallest_slice_that_fits_and_wraps_nowhere() -> None:
    """As in a real trace of four of a host's eight v6e chips, numbered 4 to 7."""
    half = placed("TPU v6e", [[4, 5, 6, 7]])
    assert half.place.tolist() == [[0, 2, 0], [1, 2, 0], [0, 3, 0], [1, 3, 0]]
    assert (half.shape, half.n_missing, half.name) == ((2, 4, 1), 4, "2 × 4 mesh")
    cube = blocks((4, 4, 4), (2, 2, 1))
    part = placed("TPU v4", [host for i, host in enumerate(cube) if i != 5])
    assert (part.shape, part.n_missing, part.wraps) == ((4, 4, 4), 4, (False, False, False))
    # Chips 0, 1, 16 and 17 on one host lie in rows of 16, whatever else was captured.
    assert placed("TPU v6e", [[0, 1, 16, 17]]).shape == (16, 8, 1)


def test_two_cores_of_a_chip_have_one_place() -> None:
    chips = pod("TPU v3", [[0, 1, 2, 3]])
    cores = tuple(replace(core, core_id=2 * core.chip_id + half) for core in chips.cores for half in (0, 1))
    both = topology(replace(chips, cores=cores, host_of=np.zeros(8, np.int64)))
    assert isinstance(both, Topology)
    assert both.place.tolist() == [[0, 0, 0]] * 2 + [[1, 0, 0]] * 2 + [[0, 1, 0]] * 2 + [[1, 1, 0]] * 2
    assert both.n_missing == 0


def test_without_numbers_hosts_are_blocks_in_their_order() -> None:
    four = placed("TPU v6e", blocks((4, 4, 1), (2, 2, 1)), has_numbers=False)
    assert four.placed_by is PlacedBy.ORDER
    assert four.place[4:8].tolist() == [[2, 0, 0], [3, 0, 0], [2, 1, 0], [3, 1, 0]]
    assert four.place[8].tolist() == [0, 2, 0]
    stacked = placed("TPU v4", blocks((2, 2, 4), (2, 2, 1)), has_numbers=False)
    assert stacked.place[[0, 4, 9, 15]].tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 2], [1, 1, 3]]
    eights = placed("TPU v5e", [list(range(8)), list(range(8))], has_numbers=False)
    assert (eights.shape, eights.place[8].tolist()) == ((4, 4, 1), [2, 0, 0])
    cube = placed("TPU v4", blocks((4, 4, 4), (2, 2, 1)), has_numbers=False)
    assert (cube.wraps, cube.n_missing) == ((True, True, True), 0)


def test_places_are_unknown_with_a_reason() -> None:
    assert "several hosts have chips with the same number" in reason("TPU v4", [[0, 1, 2, 3], [0, 1, 2, 3]])
    assert "no slice of TPU v4 has 12 chips" in reason("TPU v4", [list(range(12))])
    # Hosts of four chips in one row are no blocks of 2 × 2.
    assert "no slice of TPU v3 has 16 chips" in reason(
        "TPU v3", [list(range(i, i + 4)) for i in (0, 4, 8, 12)]
    )
    mixed = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert "no slice of TPU v5e has 16 chips" in reason("TPU v5e", mixed)
    assert "TPU v4i are not known" in reason("TPU v4i", [[0]])
    assert "the hosts differ in how many" in reason("TPU v4", [[0, 1, 2, 3], [0]], has_numbers=False)
    assert "the hosts differ in how many" in reason("TPU v4", [[0, 1, 2]], has_numbers=False)
    assert "no slice of TPU v5e has 12 chips" in reason("TPU v5e", [[0, 1, 2, 3]] * 3, has_numbers=False)
    assert topology(replace(any_pod(), kind="GPU")) == "only TPUs are linked as a mesh"
    assert topology(replace(any_pod(), cores=())) == "only TPUs are linked as a mesh"


def ways(result: Topology, pairs: list[tuple[int, int]]) -> list[tuple[str, int]]:
    """Link and hops between chips, by number."""
    sources, targets = (np.array(ends, np.int64) for ends in zip(*pairs, strict=True))
    between = links(result, sources, targets)
    return list(zip(between.names(), between.hops.tolist(), strict=True))


def test_the_way_between_chips_is_the_shorter_one() -> None:
    torus = placed("TPU v4", [list(range(64))])
    assert torus.shape == (4, 4, 4)
    pairs = [(39, 36), (36, 39), (38, 39), (60, 12), (44, 40), (21, 25), (0, 2), (0, 21), (3, 51), (7, 7)]
    assert ways(torus, pairs) == [
        ("x wrap", 1),
        ("x wrap", 1),
        ("x", 1),
        ("z wrap", 1),
        ("y", 1),
        ("y", 1),
        ("2 x", 2),
        ("x + y + z", 3),
        ("z wrap", 1),
        ("same chip", 0),
    ]


def test_without_rings_the_way_leads_through_the_chips_between() -> None:
    mesh = placed("TPU v5e", blocks((4, 4, 1), (2, 2, 1)))
    row_of = {chip: row for row, chip in enumerate(c for host in blocks((4, 4, 1), (2, 2, 1)) for c in host)}
    pairs = [(row_of[a], row_of[b]) for a, b in ((3, 0), (0, 12), (0, 15), (5, 6))]
    assert ways(mesh, pairs) == [("3 x", 3), ("3 y", 3), ("3 x + 3 y", 6), ("x", 1)]


@pytest.mark.parametrize(
    ("shape", "may_be"),
    [((4, 4, 8), True), ((4, 8, 8), True), ((4, 4, 4), False), ((4, 4, 12), False), ((2, 2, 4), False)],
)
def test_only_whole_cubes_of_one_axis_or_two_twice_as_long_may_be_twisted(
    shape: tuple[int, int, int], may_be: bool
) -> None:
    assert placed("TPU v5p", blocks(shape, (2, 2, 1))).may_be_twisted is may_be


def test_flat_slices_are_never_twisted() -> None:
    assert not placed("TPU v6e", blocks((16, 16, 1), (2, 2, 1))).may_be_twisted
    assert not placed("TPU v6e", blocks((8, 16, 1), (2, 2, 1))).may_be_twisted


@pytest.mark.parametrize(
    ("device", "name", "gigabytes"),
    [
        ("TPU v2", "TPU v2", 62),
        ("TPU v3", "TPU v3", 70),
        ("TPU v4", "TPU v4", 50),
        ("TPU v5 lite", "TPU v5e", 50),
        ("TPU v5e", "TPU v5e", 50),
        ("TPU v5", "TPU v5p", 100),
        ("TPU v5p", "TPU v5p", 100),
        ("TPU v6 Lite", "TPU v6e", 100),
        ("TPU7x", "TPU7x", 100),
        ("TPU v7x", "TPU7x", 100),
    ],
)
def test_a_generation_is_found_by_the_names_that_traces_use(device: str, name: str, gigabytes: int) -> None:
    generation = generation_of(device)
    assert generation is not None
    assert (generation.name, generation.link_bytes_per_s) == (name, gigabytes * 1e9)


@pytest.mark.parametrize(
    ("device", "chips"),
    [
        ("TPU v2", [4, 16, 32, 64, 128, 256]),
        ("TPU v3", [4, 16, 32, 64, 128, 256, 512, 1024]),
        ("TPU v5e", [1, 4, 8, 16, 32, 64, 128, 256]),
        ("TPU v6e", [1, 4, 8, 16, 32, 64, 128, 256]),
    ],
)
def test_flat_slices_have_so_many_chips(device: str, chips: list[int]) -> None:
    generation = generation_of(device)
    assert generation
    assert generation.sizes_with(1) == chips
    assert all(z == 1 and (x == y or y == 2 * x) for x, y, z in generation.shapes)


@pytest.mark.parametrize("device", ["TPU v4", "TPU v5p", "TPU7x"])
def test_slices_of_cubes_are_all_that_fit(device: str) -> None:
    """By trying every shape up to 9,216 chips; of one number of chips the one most like a cube comes
    first.
    """
    generation = generation_of(device)
    assert generation
    sides = range(4, 577, 4)
    cubes = {(a, b, c) for a in sides for b in sides if a <= b for c in sides if b <= c and a * b * c <= 9216}
    below = {(2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4)}
    assert set(generation.shapes) == cubes | below
    assert len(generation.shapes) == len(cubes) + 4
    assert next(generation.shapes_of(4096)) == (16, 16, 16)
    assert next(generation.shapes_of(512)) == (8, 8, 8)


def test_chips_without_numbers_among_others_are_placed_by_order() -> None:
    """Of four hosts with four chips each, one does not number them."""
    hosts = blocks((4, 4, 1), (2, 2, 1))
    whole = pod("TPU v5e", hosts)
    cores = tuple(replace(core, chip_id=-1) if i >= 12 else core for i, core in enumerate(whole.cores))
    cores = tuple(replace(core, chip=i % 4) for i, core in enumerate(cores))
    result = topology(replace(whole, cores=cores))
    assert isinstance(result, Topology)
    assert result.placed_by == PlacedBy.ORDER
    assert topology(whole).placed_by == PlacedBy.NUMBERS  # type: ignore[union-attr]


@pytest.mark.parametrize("device", ["TPU v4 lite", "TPU v4i", "TPU v6", "TPU", "TPU v42", "NVIDIA H100"])
def test_other_devices_have_no_known_slices(device: str) -> None:
    assert generation_of(device) is None
