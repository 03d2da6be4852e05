"""Bandwidths, sizes, groups and parts of a pod, each from numbers written down by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.collectives import Collective, GroupsFrom, merge_alike
from tb_tpuprof.analysis.pod.comms import _ordinals, _size, merged
from tb_tpuprof.analysis.pod.groups import groups_by_ends
from tb_tpuprof.analysis.pod.host import PodCore
from tb_tpuprof.analysis.pod.join import _devices, _hosts_apart
from tb_tpuprof.analysis.pod.parts import (
    N_PARTS,
    PART_TEXTS,
    Part,
    part_of_class,
    part_of_op,
    parts_of_classes,
)
from tb_tpuprof.analysis.pod.stragglers import Slow, Straggler, gain, others_median, slow_units
from tb_tpuprof.analysis.pod.transfers import TransferOp, _pairs, device_groups, kind_of
from tb_tpuprof.analysis.steps.classes import N_CLASSES, TimeClass
from tb_tpuprof.trace.hlo_attributes import AxisRef, Iota, Mesh, ReplicaGroups

MS = 10**9


def collective(kind: str = "all-reduce", **more: Any) -> Collective:
    """Four participants, all captured, move 800 bytes three times a step in 6 ps."""
    op = TransferOp(kind, kind, 800, has_hlo=True)
    columns: dict[str, Any] = {
        "op": op,
        "n_per_step": 3.0,
        "transfer_ps": 6.0,
        "wait_ps": 2.0,
        "groups": ((0, 1, 2, 3), (4, 5, 6, 7)),
        "group_size": 4,
        "known_by": GroupsFrom.PROGRAM,
        "n_seen": 4,
    }
    return Collective(**(columns | more))


@pytest.mark.parametrize(
    ("kind", "algorithm", "bus"),
    [
        ("all-reduce", 400e12, 600e12),  # · 2 · 3/4
        ("all-gather", 400e12, 300e12),  # · 3/4
        ("all-to-all", 400e12, 300e12),
        ("reduce-scatter", 1600e12, 1200e12),  # the result is a quarter of the input
        ("broadcast", 400e12, 400e12),
        ("collective-permute", 400e12, 400e12),
        ("unknown", 400e12, None),
    ],
)
def test_bandwidths_as_nccl_tests_define_them(kind: str, algorithm: float, bus: float | None) -> None:
    found = collective(kind)
    assert found.algorithm_bytes_per_s == pytest.approx(algorithm)
    assert found.bus_bytes_per_s == (None if bus is None else pytest.approx(bus))


def test_bandwidths_that_are_unknown() -> None:
    good = collective()
    rate = good.algorithm_bytes_per_s
    assert rate is not None
    halves = replace(good, op=replace(good.op, is_half=True))
    sizeless = replace(good, op=replace(good.op, size_bytes=0))
    for unknown in (halves, sizeless, replace(good, transfer_ps=0.0)):
        assert (unknown.algorithm_bytes_per_s, unknown.bus_bytes_per_s) == (None, None)
    assert replace(good, n_per_step=0.5).algorithm_bytes_per_s == pytest.approx(rate / 3)
    nothing = replace(good, known_by=GroupsFrom.NOTHING)
    assert nothing.bus_bytes_per_s is None
    assert replace(nothing, op=replace(good.op, group_size=4)).bus_bytes_per_s == pytest.approx(rate * 1.5)
    assert replace(good, known_by=GroupsFrom.UNKNOWN).bus_bytes_per_s is None
    assert replace(good, group_size=1).bus_bytes_per_s is None
    assert replace(good, group_size=2).bus_bytes_per_s == pytest.approx(rate)
    pytorch = replace(good.op, kind="reduce-scatter", has_hlo=False)
    assert replace(good, op=pytorch).algorithm_bytes_per_s == pytest.approx(rate)


def test_remarks() -> None:
    good = collective()
    assert good.remark == ""
    remarks = {
        "bandwidth unknown: asynchronous, only its two halves are timed": replace(
            good, op=replace(good.op, is_half=True)
        ),
        "bandwidth unknown: the trace does not state the size": replace(
            good, op=replace(good.op, size_bytes=0)
        ),
        "waiting unknown: sends do not name their receivers": replace(good, known_by=GroupsFrom.UNKNOWN),
        "bus bandwidth unknown: the trace does not state the group": replace(
            good, known_by=GroupsFrom.NOTHING
        ),
        "bandwidth is a lower bound: 3 of 4 participants captured": replace(good, n_seen=3),
        "waiting unknown, bandwidth is a lower bound: 1 of 4 participants captured": replace(good, n_seen=1),
    }
    assert {text: one.remark for text, one in remarks.items()} == {text: text for text in remarks}
    assert [replace(good, n_seen=n).is_wait_known for n in (0, 1, 2)] == [False, False, True]
    assert [replace(good, n_seen=n).is_complete for n in (3, 4, 5)] == [False, True, True]
    assert not replace(good, group_size=0, n_seen=0).is_complete
    assert good.n_groups == 2
    pairs = replace(good.op, pairs=np.array([[0, 1], [1, 2], [2, 0]]))
    assert replace(good, op=pairs, groups=()).n_groups == 3
    assert replace(good, groups=()).n_groups == 1


def test_titles_count_from_one_and_name_four() -> None:
    assert collective().title == "all-reduce"
    titles = [collective(ordinals=tuple(range(2, 2 + n))).title for n in (1, 4, 5, 1204)]
    assert titles == [
        "all-reduce #3",
        "all-reduce #3, #4, #5, #6",
        "all-reduce #3, #4, #5, #6 and 1 more",
        "all-reduce #3, #4, #5, #6 and 1,200 more",
    ]


def test_one_participant_is_complete_and_bounded_by_no_link() -> None:
    assert collective(group_size=1, n_seen=1).is_complete
    assert not collective(group_size=0, n_seen=0).is_complete
    alone = collective("broadcast", group_size=1, link_bytes_per_s=1.0)
    assert not alone.is_above_links
    assert collective("broadcast", group_size=2, link_bytes_per_s=1.0).is_above_links


def test_an_all_reduce_moves_its_data_once_at_least() -> None:
    """400 TB/s of data are 600 on the bus of four ranks; an all-gather's are 300."""
    for kind, link, is_above in (
        ("all-reduce", 390e12, False),
        ("all-reduce", 370e12, True),
        ("all-gather", 290e12, False),
        ("all-gather", 280e12, True),
        ("unknown", 1.0, False),
    ):
        assert collective(kind, link_bytes_per_s=link).is_above_links is is_above, (kind, link)
    assert collective(transfer_ps=0.5).algorithm_bytes_per_s == pytest.approx(4800e12)


@pytest.mark.parametrize(
    ("waits", "last"),
    [((3.0, 5.0, 4.0), 1), ((5.0, 5.0, 4.0), 0), ((1.0, 2.0, 9.0), 2), ((3.0, 3.0, 4.0), 2)],
)
def test_of_alike_collectives_the_one_that_waits_most_says_who_is_last(
    waits: tuple[float, ...], last: int
) -> None:
    op = TransferOp("x", "all-reduce", 8, process_group="tp", dtype="Float", ordinal=0)
    parts = [
        collective(op=replace(op, ordinal=i), wait_ps=wait, last_core=i, last_fraction=0.25 * (i + 1))
        for i, wait in enumerate(waits)
    ]
    (row,) = merge_alike(parts)
    assert (row.last_core, row.last_fraction, row.wait_ps) == (last, 0.25 * (last + 1), sum(waits))


def test_alike_collectives_of_pytorch_are_one_row_the_longest_first() -> None:
    def part(
        ordinal: int, kind: str, transfer: float, wait: float, n_seen: int, group: str = "tp"
    ) -> Collective:
        op = TransferOp(f"{kind} #{ordinal}", kind, 8, process_group=group, dtype="Float", ordinal=ordinal)
        return collective(
            op=op, transfer_ps=transfer, wait_ps=wait, n_seen=n_seen, ordinals=(ordinal,), n_per_step=0.5
        )

    rows = merge_alike(
        [
            part(0, "all-reduce", 1, 2, 4),
            part(1, "all-reduce", 3, 4, 2),
            part(0, "all-gather", 5, 6, 4),
            part(0, "all-reduce", 1, 1, 4, "dp"),
            part(2, "all-reduce", 7, 8, 3),
            collective(transfer_ps=50.0, wait_ps=0.0),
            collective(transfer_ps=0.0, wait_ps=60.0),
        ]
    )
    assert [(row.transfer_ps, row.wait_ps, row.n_seen, row.n_per_step, row.ordinals) for row in rows] == [
        (0, 60, 4, 3, ()),
        (50, 0, 4, 3, ()),
        (11, 14, 2, 1.5, (0, 1, 2)),
        (5, 6, 4, 0.5, (0,)),
        (1, 1, 4, 0.5, (0,)),
    ]


@pytest.mark.parametrize(
    ("kind", "given", "received", "n", "size"),
    [
        ("all-reduce", [8, 4, -1], [2, 12, -1], 4, 10),
        ("all-reduce", [-1], [-1], 4, 0),
        ("all-reduce", [0], [-1], 4, 0),
        ("all-reduce", [0, 8, 16], [0, -1, 16], 4, 8),  # nothing sent is a known size
        ("all-gather", [8], [-1], 4, 32),  # the output is that of four ranks
        ("all-gather", [8], [-1], 0, 0),
        ("all-gather", [8], [20], 4, 20),
        ("all-gather", [8], [0], 4, 8),
        ("gather", [0], [0], 4, 0),
        ("all-gather", [8], [-1], 1, 8),
        ("scatter", [8], [-1], 4, 8),
        ("all-to-all", [1, 2], [1, 1], 2, 2),  # the mean of 1 and 2 is rounded to even
    ],
)
def test_sizes_of_pytorch_s_collectives(
    kind: str, given: list[int], received: list[int], n: int, size: int
) -> None:
    assert _size(kind, np.array(given), np.array(received), n) == size


def test_ordinals_count_alike_events_of_a_step_in_time_order() -> None:
    label = np.array([1, 0, 1, 1, 0, 1, 1])
    step = np.array([0, 0, 0, 1, 1, 0, 1])
    start = np.array([30, 5, 10, 90, 80, 20, 70])
    assert _ordinals(label, step, start).tolist() == [2, 0, 0, 1, 0, 1, 0]
    none = np.empty(0, np.int64)
    assert _ordinals(none, none, none).tolist() == []
    many = np.zeros(4100, np.int64)
    assert _ordinals(many, many, np.arange(4100))[-5:].tolist() == [4095, 4096, 4096, 4096, 4096]


def test_two_hosts_views_of_an_operation() -> None:
    first = TransferOp("a", "all-to-all", 8, groups=((2, 3), (0, 1)), group_size=2)
    second = TransferOp("a", "all-to-all", 6, groups=((4, 5), (0, 1)), group_size=4, dtype="Float")
    both = merged(first, second)
    assert (both.groups, both.size_bytes, both.group_size, both.dtype) == (
        ((0, 1), (2, 3), (4, 5)),
        8,
        4,
        "Float",
    )
    assert merged(replace(first, dtype="Half"), second).dtype == "Half"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("all-reduce", "all-reduce"),
        ("all-reduce-start", "all-reduce"),
        ("all-gather fusion", "all-gather"),
        ("all-reducer", ""),
        ("recv-done", "recv"),
        ("send", "send"),
        ("fusion", ""),
        ("ragged-all-to-all", "ragged-all-to-all"),
        ("ncclDevKernel_AllReduce_Sum_f32", "all-reduce"),
        ("", ""),
    ],
)
def test_kinds_of_transfers(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_pairs_written_in_an_attribute() -> None:
    def pairs(text: str) -> list[list[int]]:
        attributes: Any = type("Attributes", (), {"frontend": {"_xla_send_recv_source_target_pairs": text}})
        return _pairs(attributes).tolist()  # type: ignore[no-any-return]

    assert pairs("{{0,1},{1,22},{2,0}}") == [[0, 1], [1, 22], [2, 0]]
    assert pairs("{{0,1},{7}}") == [[0, 1]]
    assert pairs("{{0,123456789},{12345678,1}}") == [[0, 12345678]]
    assert pairs("") == []


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (None, ()),
        (ReplicaGroups(((0, 2), (1, 3))), ((0, 2), (1, 3))),
        (ReplicaGroups(iota=Iota((2, 3), (), ())), ((0, 1, 2), (3, 4, 5))),
        (ReplicaGroups(iota=Iota((3, 2), (2, 3), (1, 0))), ((0, 3), (1, 4), (2, 5))),
        (ReplicaGroups(iota=Iota((3, 2), (2, 3), (1, 1))), ()),
        (ReplicaGroups(iota=Iota((3, 2), (2, 4), ())), ()),
        (ReplicaGroups(iota=Iota((6,), (), ())), ()),
        (ReplicaGroups(iota=Iota((0, 2), (), ())), ()),
        (ReplicaGroups(iota=Iota((2, 1 << 15), (), ())), "many"),
        (ReplicaGroups(iota=Iota((2, (1 << 15) + 1), (), ())), ()),
        (ReplicaGroups(mesh=Mesh((("x", 2), ("y", 3)), ()), axes=(AxisRef(1),)), ((0, 1, 2), (3, 4, 5))),
        (ReplicaGroups(mesh=Mesh((("x", 2), ("y", 3)), ()), axes=(AxisRef(0),)), ((0, 3), (1, 4), (2, 5))),
        (
            ReplicaGroups(mesh=Mesh((("x", 2), ("y", 3)), ()), axes=(AxisRef(1), AxisRef(0))),
            ((0, 3, 1, 4, 2, 5),),
        ),
        (
            ReplicaGroups(mesh=Mesh((("x", 2), ("y", 3)), (9, 8, 7, 6, 5, 4)), axes=(AxisRef(1),)),
            ((9, 8, 7), (6, 5, 4)),
        ),
        (ReplicaGroups(mesh=Mesh((("x", 2), ("y", 3)), (9, 8)), axes=(AxisRef(1),)), ()),
        (ReplicaGroups(mesh=Mesh((("x", 2), ("y", 3)), ()), axes=(AxisRef(2),)), ()),
        (ReplicaGroups(mesh=Mesh((("x", 2), ("y", 3)), ()), axes=(AxisRef(1), AxisRef(1))), ()),
        (ReplicaGroups(mesh=Mesh((("x", 2), ("y", 3)), ()), axes=(AxisRef(1, (1, 3)),)), ()),
        (ReplicaGroups(mesh=Mesh((("x", 2), ("y", 0)), ()), axes=(AxisRef(1),)), ()),
        (ReplicaGroups(mesh=Mesh((("x", -2), ("y", -3)), ()), axes=(AxisRef(1),)), ()),
    ],
)
def test_groups_of_devices(groups: ReplicaGroups | None, expected: Any) -> None:
    found = device_groups(groups)
    if expected == "many":
        assert [len(group) for group in found] == [1 << 15] * 2
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("category", "name", "part"),
    [
        ("all-reduce", "", Part.COLLECTIVE),
        ("all-gather fusion", "", Part.COLLECTIVE),
        ("async-start", "all-gather-start.3", Part.COLLECTIVE),
        ("async-done", "slice-done.3", Part.COPY_WAIT),
        ("loop fusion", "all-reduce.3", Part.LOW_FLOPS),
        ("convolution fusion", "", Part.HIGH_FLOPS),
        ("output fusion", "", Part.HIGH_FLOPS),
        ("dot", "", Part.HIGH_FLOPS),
        ("infeed", "", Part.INPUT),
        ("host send-done", "", Part.OUTPUT),
        ("recv-done", "", Part.RECV),
        ("send", "", Part.SEND),
        ("copy-done", "", Part.COPY_WAIT),
        ("copy-start", "", Part.LOW_FLOPS),
        ("", "copy-done.1", Part.COPY_WAIT),
        ("", "", Part.LOW_FLOPS),
        ("async-start", "x-start", Part.LOW_FLOPS),
    ],
)
def test_parts_of_operations(category: str, name: str, part: Part) -> None:
    assert part_of_op(category, name) == part


def test_parts_of_classes_keep_all_time() -> None:
    class_ps = np.arange(2 * N_CLASSES).reshape(2, N_CLASSES)
    found = parts_of_classes(class_ps)
    assert found.sum(axis=1).tolist() == class_ps.sum(axis=1).tolist()
    both = class_ps[1, [TimeClass.DEVICE_COMPUTE_32, TimeClass.DEVICE_COMPUTE_16]].sum()
    assert found[1, Part.COMPUTE] == both
    assert found[1, Part.IDLE] == class_ps[1, [TimeClass.UNKNOWN, TimeClass.HOST_TO_HOST]].sum()
    assert [int(part) for part in Part] == list(range(N_PARTS))
    assert list(PART_TEXTS) == list(Part)
    assert part_of_class(TimeClass.HOST_WAIT) == Part.WAIT


def test_groups_of_cores_need_four_of_them_and_five_steps() -> None:
    """Two pairs whose ends differ by ten milliseconds, in a way that changes from step to step."""
    rng = np.random.default_rng(4)
    common = np.cumsum(rng.integers(90, 110, 8)) * MS
    own = rng.integers(-10, 10, (2, 8)) * MS
    ends = common + own[[0, 1, 0, 1]]
    spent = np.full((4, 8), 30 * MS)
    assert groups_by_ends(ends, spent) == ((0, 2), (1, 3))
    assert groups_by_ends(ends[:, :5], spent[:, :5]) == ((0, 2), (1, 3))
    assert groups_by_ends(ends[:, :4], spent[:, :4]) == ()
    absent = np.concatenate((spent[:3], np.zeros((1, 8), np.int64)))
    assert groups_by_ends(ends, absent) == ()
    with_absent = np.concatenate((ends[:1] * 0, ends)), np.concatenate((absent[3:], spent))
    assert groups_by_ends(*with_absent) == ((1, 3), (2, 4))
    once = np.concatenate((np.full((1, 8), 30 * MS), spent))
    once[0, 3] = 0  # a core that left it out in one step
    assert groups_by_ends(with_absent[0], once) == ((1, 3), (2, 4))
    # Three pairs, of which two end together: they cannot be told apart.
    third = common + np.stack((own[0], own[1], own[1] + MS // 1000))[[0, 1, 2, 0, 1, 2]]
    assert groups_by_ends(third, np.full((6, 8), 30 * MS)) == ()
    distinct = common + np.stack((own[0], own[1], own[1] + rng.integers(-10, 10, 8) * MS))[[0, 1, 2, 0, 1, 2]]
    assert groups_by_ends(distinct, np.full((6, 8), 30 * MS)) == ((0, 3), (1, 4), (2, 5))
    assert groups_by_ends(common + own[[0, 1, 0, 0]], spent) == ()  # of unlike sizes
    assert groups_by_ends(common + own[[0, 0, 0, 0]], spent) == ()  # all together
    drifting = (
        ends + np.arange(8) * np.array([[0], [3], [-5], [7]]) * MS + np.array([[7], [0], [1], [2]]) * MS
    )
    assert groups_by_ends(drifting, spent) == ((0, 2), (1, 3))


def test_numbers_of_cores() -> None:
    ranks = tuple(PodCore("c", 0, 0, rank=rank) for rank in (5, 0, 3))
    assert _devices(ranks, set()).tolist() == [5, 0, 3]
    assert _devices((*ranks, ranks[0]), set()).tolist() == [0, 1, 2, 3]
    assert _devices((*ranks, PodCore("c", 0, 0)), set()).tolist() == [0, 1, 2, 3]
    ids = tuple(PodCore("c", 0, 0, 0, core_id) for core_id in (4, 2, 0))
    assert _devices(ids, {0, 2, 4}).tolist() == [4, 2, 0]
    assert _devices(ids, {0, 1, 2}).tolist() == [0, 1, 2]
    assert _devices(ids, {0, 1}).tolist() == [4, 2, 0]
    assert _devices(ids, set()).tolist() == [4, 2, 0]
    assert _devices((ids[0], ids[0]), set()).tolist() == [0, 1]
    assert _devices((), set()).tolist() == []


def test_hosts_captured_at_another_time() -> None:
    """The largest set of hosts that overlap, give or take a second; the first of equally large ones."""

    def hosts(*spans: tuple[float, float]) -> dict[int, int]:
        """Gaps in milliseconds, of hosts with steps from and to a second."""
        parts: Any = [
            type(
                "Host",
                (),
                {
                    "steps": type(
                        "Steps",
                        (),
                        {
                            "__len__": lambda _: 1,
                            "start_ps": np.array([int(a * 1000 * MS)]),
                            "duration_ps": np.array([int((b - a) * 1000 * MS)]),
                        },
                    )()
                },
            )
            for a, b in spans
        ]
        return {i: gap // 10**6 for i, gap in _hosts_apart([0] * len(spans), parts).items()}

    assert hosts((0, 1), (1.9, 3)) == {}
    assert hosts((0, 1), (2, 3)) == {1: 1000}
    assert hosts((0, 1), (0.5, 3), (3.9, 5)) == {}
    assert hosts((0, 1), (0.5, 3), (4, 5)) == {2: 1000}
    assert hosts((9, 10), (0, 1), (9.5, 11)) == {1: -8000}
    assert hosts((9, 10), (0, 1), (9.5, 11), (1.5, 2)) == {0: 7000, 2: 7500}
    assert hosts((0, 1)) == {}


def test_slow_units_by_hand() -> None:
    """Three units; the second takes 20% longer from step 4 of 12 on, all of it input."""
    rng = np.random.default_rng(1)
    own = np.round(1000 * (1 + 0.002 * rng.standard_normal((3, 12))))
    parts = np.zeros((3, 12, N_PARTS))
    parts[:, :, Part.COMPUTE] = own
    own[1, 4:] += 200
    parts[1, 4:, Part.INPUT] = 200
    (slow,) = slow_units(own, parts)
    assert (slow.unit, slow.since, slow.cause) == (1, 4, "input")
    assert slow.excess_ps == pytest.approx((own[1, 4:] - others_median(own)[1, 4:]).mean())
    assert slow.own_ps == pytest.approx(own[1, 4:].mean())
    assert slow.usual_ps == pytest.approx((own[0, 4:] + own[2, 4:]).mean() / 2)
    assert slow.excess_fraction == pytest.approx(slow.excess_ps / slow.usual_ps)
    assert slow.causes["input"] == pytest.approx(200)
    assert abs(slow.causes["compute"]) < 5
    assert slow.causes["network"] == slow.causes["idle"] == 0
    (alone,) = slow_units(own)
    assert alone.causes == {"compute": 0.0}
    assert slow_units(own[:, :4]) == ()
    assert slow_units(own[:1]) == ()
    # Slow by a twentieth counts, by less it does not.
    for extra, n in ((53, 1), (47, 0)):
        assert len(slow_units(np.full((4, 12), 1000) + np.array([[0], [extra], [0], [0]]))) == n
    # In the last two steps only: at least three must follow.
    late = np.full((3, 12), 1000.0)
    late[2, 10:] = 2000
    assert [one.since for one in slow_units(late)] == [9]


def test_what_the_job_would_gain() -> None:
    own = np.array([[10.0, 10, 10, 10], [10, 16, 16, 16], [10, 12, 14, 10]])
    slow = Slow(1, 1, 0.0, 0.0, 0.0, {"compute": 1.0}, 0.0, 0.0)
    # From step 1 on the others' median is 11, 12, 10: the slowest is then 12, 14, 10 instead of 16.
    assert gain(own, slow, True) == pytest.approx(16 - 36 / 3)
    # Without waiting for one another, the slowest takes 12 on average instead of 16.
    assert gain(own, slow, False) == pytest.approx(16 - 12)
    # Rows of units: the first two are one of mean 10, 13, 13, 13, which becomes faster by 13 - 12, 14, 10.
    unit_of = np.array([0, 0, 1])
    first = replace(slow, unit=0)
    assert gain(own, first, True, unit_of) == pytest.approx(16 - (15 + 16 + 13) / 3)
    assert Straggler("h", -1, slow, 2.0, 8.0).gain_fraction == 0.25
    assert Straggler("h", -1, slow, 2.0, 0.0).gain_fraction == 2.0
