"""Transfers between slices: messages by pair, and the sums over three unlike hosts, by plain loops."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tb_tpuprof.analysis.dcn.messages import RECEIVE, messages
from tb_tpuprof.analysis.dcn.ops import Rendezvous
from tb_tpuprof.analysis.dcn.summary import summary
from tb_tpuprof.analysis.dcn.transfers import DcnHost, Occurrences
from tests.builders import DrawnEvent, DrawnPlane, build, event

PS_PER_US = 1_000_000


def received(at: int, source: int, target: int, size: int, duration: int) -> DrawnEvent:
    return event(
        RECEIVE,
        at,
        0,
        dcn_source_slice_id=source,
        dcn_destination_slice_id=target,
        payload_size_bytes=size,
        duration_us=duration,
    )


def test_messages_by_pair_of_slices() -> None:
    """Three pairs of one, two and three messages; others lack a slice or a size, or are no messages."""
    drawn = [
        received(0, 0, 1, 1000, 30),
        received(1, 1, 0, 500, 5),
        received(2, 2, 1, 9000, 20),
        received(3, 0, 1, 3000, 50),
        received(4, 1, 0, 700, 0),
        received(5, 1, 0, 900, 9),
        received(6, -1, 0, 70, 1),
        received(7, 1, -1, 70, 1),
        received(8, 1, 0, -1, 1),
        event(RECEIVE, 9, 0, dcn_source_slice_id=1, dcn_destination_slice_id=0),
        event("MegaScale: Barrier.", 10, 2),
        event("Barrier.", 11, 2),
    ]
    found = messages(build([DrawnPlane("/host:CPU", {"megascale": drawn})]))
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [(2, 1), (0, 1), (1, 0)]
    assert found.count.tolist() == [1, 2, 3]
    assert found.size_bytes.tolist() == [9000, 4000, 2100]
    assert found.timed.tolist() == [1, 2, 2]
    assert found.latency_ps.tolist() == [20 * PS_PER_US, 80 * PS_PER_US, 14 * PS_PER_US]
    assert found.longest_ps.tolist() == [20 * PS_PER_US, 50 * PS_PER_US, 9 * PS_PER_US]
    assert found.n_events == 11
    assert len(found) == 3


def test_hostile_messages_are_bounded_and_pairs_of_equal_size_keep_their_order() -> None:
    drawn = [
        received(0, 3, 0, 2**60, -5),
        received(1, 2, 0, 2**50, 2**60),
        received(2, 0, 0, 0, 2**40),
    ]
    found = messages(build([DrawnPlane("/host:CPU", {"megascale": drawn})]))
    assert found.source.tolist() == [2, 3, 0]
    assert found.size_bytes.tolist() == [2**50, 2**50, 0]
    assert found.latency_ps.tolist() == [2**40 * PS_PER_US, 0, 2**40 * PS_PER_US]
    assert found.timed.tolist() == [1, 0, 1]


def test_a_host_without_messages() -> None:
    found = messages(build([DrawnPlane("/host:CPU", {"main": [event("train", 0, 5)]})]))
    assert (len(found), found.n_events) == (0, 0)


Row = tuple[int, int, int, tuple[int, int, int, int]]  # core, rendezvous, slack, stall of each half


def host(name: str, spans: list[int], rendezvous: list[Rendezvous], rows: list[Row]) -> DcnHost:
    """A host whose transfer i begins at 1,000 i and lasts 7 i + its slack and stall."""
    start = np.arange(len(rows), dtype=np.int64) * 1000
    core, which, slack = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    stall = np.array([row[3] for row in rows], np.int64).reshape(-1, 4)
    end = start + 7 * np.arange(len(rows)) + slack + stall.sum(axis=1)
    occurrences = Occurrences(core, which, start, start, start, end, slack, stall)
    return DcnHost(
        name,
        tuple(f"TPU:{i}" for i in range(len(spans))),
        np.array(spans, np.int64),
        tuple(rendezvous),
        occurrences,
        0,
        0,
    )


HOSTS = [
    host(
        "a",
        [1000, 400],
        [Rendezvous("r"), Rendezvous("s", "ONE_TO_ONE", 8, 1, "send.2", ""), Rendezvous("never")],
        [(0, 0, 10, (1, 2, 3, 4)), (1, 0, 30, (5, 0, 0, 1)), (1, 1, 20, (7, 0, 0, 0))],
    ),
    host("b", [50], [Rendezvous("t", "ALL_GATHER", 40, 4)], []),
    host(
        "c",
        [10, 20, 30],
        [
            Rendezvous("s", "ALL_TO_ALL", 16, 9, "send.9", "recv-done.9"),
            Rendezvous("r", "REDUCE_SCATTER", 100, 3, "send.1", "recv-done.1"),
            Rendezvous("u", "RAGGED_ALL_TO_ALL", 100, 3),
        ],
        [
            (0, 1, 5, (0, 0, 50, 0)),
            (1, 1, 6, (0, 6, 0, 0)),
            (2, 1, 7, (0, 0, 0, 5)),
            (2, 1, 9, (2, 0, 0, 0)),
            (0, 0, 100, (0, 0, 0, 900)),
            (0, 2, 1, (1, 1, 1, 1)),
        ],
    ),
]


def test_means_and_sums_over_three_hosts() -> None:
    found = summary(HOSTS)
    rows: dict[str, list[tuple[int, int, Row, int]]] = defaultdict(list)
    for number, part in enumerate(HOSTS):
        columns = part.occurrences
        for i in range(len(columns)):
            row = (
                int(columns.core[i]),
                int(columns.rendezvous[i]),
                int(columns.slack_ps[i]),
                tuple(columns.stall_ps[i].tolist()),
            )
            observed = int(columns.end_ps[i] - columns.start_ps[i])
            rows[part.rendezvous[row[1]].name].append((number, row[0], row, observed))
    names = sorted(rows, key=lambda name: -sum(sum(row[3]) for _, _, row, _ in rows[name]))
    assert [one.name for one in found.rendezvous] == names == ["s", "r", "u"]  # `never` and `t` never ran
    for i, name in enumerate(names):
        own = rows[name]
        n = len(own)
        assert found.count[i] == n
        assert found.n_hosts[i] == len({number for number, *_ in own})
        cores = {(number, core) for number, core, _, _ in own}
        assert found.n_cores[i] == len(cores)
        assert found.most_on_host[i] == max(sum(number == h for number, _ in cores) for h in range(3))
        assert found.slack_ps[i] == pytest.approx(sum(row[2] for _, _, row, _ in own) / n)
        assert found.observed_ps[i] == pytest.approx(sum(observed for *_, observed in own) / n)
        means = [sum(row[3][half] for _, _, row, _ in own) / n for half in range(4)]
        assert found.stall_ps[i].tolist() == pytest.approx(means)
        assert found.total_stall_ps[i] == pytest.approx(sum(means) * n)


def test_each_host_has_its_sums_and_its_worst_rendezvous() -> None:
    found = summary(HOSTS)
    assert found.hosts == ("a", "b", "c")
    assert found.host_cores.tolist() == [2, 1, 3]
    assert found.host_span_ps.tolist() == [1400, 50, 60]
    assert found.host_count.tolist() == [3, 0, 6]
    assert found.host_stall_ps.tolist() == [[13, 2, 3, 5], [0, 0, 0, 0], [3, 7, 51, 906]]
    assert [found.rendezvous[i].name if i >= 0 else "" for i in found.host_worst.tolist()] == ["r", "", "s"]
    # r sends 100 × 2 bytes, s 16 × 1, u an unknown number.
    assert found.host_bytes.tolist() == [200 + 200 + 16, 0, 4 * 200 + 16]
    assert found.stall_fraction == pytest.approx((13 + 2 + 3 + 5 + 3 + 7 + 51 + 906) / (1400 + 50 + 60))


def test_facts_of_a_rendezvous_come_from_the_first_host_that_states_them() -> None:
    s, r, _ = summary(HOSTS).rendezvous
    assert (s.transfer_type, s.size_bytes, s.group_size) == ("ONE_TO_ONE", 16, 1)
    assert (s.send_op, s.recv_op) == ("send.2", "recv-done.9")
    assert (r.transfer_type, r.size_bytes, r.group_size) == ("REDUCE_SCATTER", 100, 3)
    assert (r.send_op, r.recv_op) == ("send.1", "recv-done.1")
    found = summary(HOSTS)
    assert found.network_bytes[:2].tolist() == [16, 200]
    assert np.isnan(found.network_bytes[2])
    needed = [16 / ((20 + 100) / 2) * 1e12, 200 / ((10 + 30 + 5 + 6 + 7 + 9) / 6) * 1e12]
    assert found.required_bytes_per_s[:2].tolist() == pytest.approx(needed)
    assert np.isnan(found.required_bytes_per_s[2])


def test_without_slack_the_needed_bandwidth_is_infinite_and_without_time_nothing_is_stalled() -> None:
    one = Rendezvous("r", "ONE_TO_ONE", 8, 2)
    found = summary([host("a", [0], [one], [(0, 0, 0, (0, 0, 0, 0))])])
    assert found.required_bytes_per_s.tolist() == [np.inf]
    assert found.stall_fraction == 0.0
    empty = summary([])
    assert (empty.rendezvous, empty.stall_fraction, empty.total_stall_ps.tolist()) == ((), 0.0, [])


@pytest.mark.parametrize(
    ("kind", "size", "group", "expected"),
    [
        ("ONE_TO_ONE", 100, 1, 100),
        ("ONE_TO_ONE", 100, 3, 300),
        ("ALL_GATHER", 100, 5, 80),
        ("ALL_TO_ALL", 100, 4, 75),
        ("ALL_REDUCE", 100, 5, 160),
        ("REDUCE_SCATTER", 100, 5, 400),
        ("RAGGED_ALL_TO_ALL", 100, 5, None),
        ("ALL_REDUCE", 0, 5, None),
        ("ALL_REDUCE", 100, 0, None),
    ],
)
def test_bytes_that_a_core_sends(kind: str, size: int, group: int, expected: float | None) -> None:
    assert Rendezvous("r", kind, size, group).network_bytes == (
        None if expected is None else pytest.approx(expected)
    )
