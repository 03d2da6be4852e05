"""Transfers between slices beside those that xprof 2.24.2 reports for the same synthetic hosts.

It reads the first core of each host, so the hosts have only that one here. Its columns, recorded with
`raw_to_tool_data.xspace_to_tool_data(files, "megascale_stats", {"host": …})`: rendezvous, receive, send,
type, slack, observed duration, stall in send, send-done, recv, recv-done and in all, total stall (ms),
occurrences, bytes, and required bandwidth in Gbit/s. Times are whole microseconds.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools.megascale_stats.view import TOOL
from tests.payload_columns import table
from tests.synthetic import write_run
from tests.synthetic_dcn import dcn_hosts

Row = tuple[str, str, str, str, float, float, float, float, float, float, float, float, int, float, float]
_ALL = (
    (
        "all-reduce.1",
        "recv-done.1",
        "send.1",
        "ALL_REDUCE",
        0.156,
        0.21,
        0.008,
        0.013,
        0.0,
        0.023,
        0.053,
        0.159,
        3,
        6e6,
        307.6923076923077,
    ),
    ("permute.3", "recv-done.3", "send.3", "", 0.0, 0.8, 0.1, 0.2, 0.0, 0.4, 0.8, 0.8, 1, 0.0, 2147483647.0),
)
_FIRST = (
    (
        "all-reduce.1",
        "recv-done.1",
        "send.1",
        "ALL_REDUCE",
        0.28,
        0.34,
        0.005,
        0.01,
        0.0,
        0.04,
        0.06,
        0.06,
        1,
        6e6,
        171.42857142857142,
    ),
)
_LAST = (
    (
        "all-reduce.1",
        "recv-done.1",
        "send.1",
        "ALL_REDUCE",
        0.095,
        0.145,
        0.01,
        0.015,
        0.0,
        0.015,
        0.05,
        0.1,
        2,
        6e6,
        505.2631578947369,
    ),
)
PEER: tuple[tuple[tuple[str, ...] | None, tuple[Row, ...]], ...] = (
    (None, _ALL),
    (("synthetic-0",), _FIRST),
    (("synthetic-1",), _ALL[1:]),
    (("synthetic-2",), _LAST),
)
_US = 1e-3  # in ms: the peer's means are rounded down to it


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(str(write_run(tmp_path_factory.mktemp("dcn") / "run", dcn_hosts(1))), cache=False)


@pytest.mark.parametrize(("hosts", "peer"), PEER)
def test_numbers_are_xprof_s(session: Session, hosts: tuple[str, ...] | None, peer: tuple[Row, ...]) -> None:
    rows = table(TOOL.run(session, hosts, {}), "rendezvous")
    ours = {name: {key: cells[i] for key, cells in rows.items()} for i, name in enumerate(rows["rendezvous"])}
    assert set(ours) == {row[0] for row in peer}
    for name, recv_op, send_op, kind, *numbers in peer:
        row = ours[name]
        assert (row["recv_op"], row["send_op"], row["count"]) == (recv_op, send_op, numbers[8])
        columns = ("slack_ps", "observed_ps", "send_ps", "send_done_ps", None, "recv_done_ps", "stall_ps")
        for column, number in zip(columns, numbers, strict=False):
            if column:
                assert 0 <= float(str(row[column])) / 1e9 - number < _US, (name, column)
        # The peer adds up means that it has rounded down.
        assert float(str(row["total_stall_ps"])) / 1e9 == pytest.approx(numbers[7], abs=_US * numbers[8])
        if kind:
            assert (row["transfer_type"], row["network_bytes"]) == (kind, numbers[9])
            gbit_per_s = float(str(row["required_bytes_per_s"])) * 8 / 1e9
            assert gbit_per_s == pytest.approx(numbers[10], rel=_US / numbers[0])


def test_where_xprof_is_wrong_or_knows_less(session: Session) -> None:
    """Time in recv, which it divides by a million twice; and the type that only the trace states."""
    rows = table(TOOL.run(session, None, {}), "rendezvous")
    by_name = dict(
        zip(rows["rendezvous"], zip(rows["recv_ps"], rows["transfer_type"], strict=True), strict=True)
    )
    assert by_name["permute.3"] == (100 * 10**6, "ONE_TO_ONE")
    assert by_name["all-reduce.1"] == (pytest.approx((5 + 10 + 10) / 3 * 10**6), "ALL_REDUCE")
    required = rows["required_bytes_per_s"][rows["rendezvous"].index("permute.3")]
    assert np.isnan(float(str(required)))
