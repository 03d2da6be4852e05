"""Asynchronous operations beside what `xprof analyze_async_overlap` 2.24.2 says of the TPU v6e run.

Deliberate differences: the peer pairs starts and dones by the number in their names, where XLA numbers them
independently; only core 0 has the line `Async XLA Ops`, from which the peer takes whole windows. There both
agree to the picosecond, by the clock of the host, which the peer uses.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import Activity
from tb_tpuprof.analysis.comm.exposure import EXPOSED_TO, HIDDEN_FROM, coverage
from tb_tpuprof.analysis.comm.host import comm_devices, comm_host
from tb_tpuprof.analysis.comm.marks import traced_spans
from tb_tpuprof.analysis.comm.tpu import tpu_activity, tpu_ops
from tb_tpuprof.analysis.events.planes import ASYNC_OP_LINE, lines_named, planes
from tb_tpuprof.trace.trace import Trace
from tests.conformance.peer import open_session

RUN = "xprof_tpu_inference_2_old__run"
# Of each core as the peer prints them: windows, their length and the exposed part in ps.
PEER = {
    0: (600, 197605761832850, 192871684186870),
    1: (598, 331659108301284, 323006882146214),
    2: (599, 264471307065473, 257959359138689),
    3: (598, 334748579664353, 325820180797181),
}
PEER_EXPOSED, PEER_PARTIAL, PEER_HIDDEN = 597, 2, 1  # windows of core 0


def trace() -> Trace:
    session = open_session(RUN)
    return session.trace(session.hosts[0])


def asynchronous(opened: Trace, plane: int) -> tuple[Activity, np.ndarray]:
    """A core by the clock of the host, and which of its runs are asynchronous."""
    device = tpu_activity(opened, plane, traced_spans)
    is_async = np.array([op.is_async for op in tpu_ops(opened).ops], np.bool_)
    return device, is_async[device.op]


def test_the_core_with_a_line_of_its_own_agrees_to_the_picosecond() -> None:
    opened = trace()
    device, chosen = asynchronous(opened, planes(opened).tensor_cores[0])
    length = (device.end_ps - device.start_ps)[chosen]
    share = coverage(device)[chosen]
    hidden = np.rint(share * length).astype(np.int64)
    assert (int(chosen.sum()), int(length.sum())) == PEER[0][:2]
    assert int((length - hidden).sum()) == pytest.approx(PEER[0][2], abs=600)
    counted = [
        int((share <= EXPOSED_TO).sum()),
        int(((share > EXPOSED_TO) & (share < HIDDEN_FROM)).sum()),
        int((share >= HIDDEN_FROM).sum()),
    ]
    assert counted == [PEER_EXPOSED, PEER_PARTIAL, PEER_HIDDEN]


def test_pairs_are_the_events_of_that_line() -> None:
    opened = trace()
    plane = planes(opened).tensor_cores[0]
    device, chosen = asynchronous(opened, plane)
    (line,) = lines_named(opened, plane, (ASYNC_OP_LINE,))
    spans = traced_spans(opened, line)
    pairs = np.stack((device.start_ps, device.end_ps))[:, chosen]
    listed = np.stack((spans.start_ps, spans.start_ps + spans.duration_ps))
    np.testing.assert_array_equal(
        pairs[:, np.lexsort(pairs)], listed[:, np.lexsort(listed)], "the file's own windows"
    )


def test_the_other_cores_take_as_long_which_the_peer_s_pairs_do_not() -> None:
    opened = trace()
    lengths = []
    for plane in planes(opened).tensor_cores:
        device, chosen = asynchronous(opened, plane)
        assert int(chosen.sum()) == 600
        lengths.append(int((device.end_ps - device.start_ps)[chosen].sum()))
    assert max(lengths) < 1.01 * min(lengths)
    for core in (1, 2, 3):
        assert PEER[core][1] > 1.3 * lengths[core]


def test_almost_nothing_is_hidden() -> None:
    """The peer: 2.6% of all windows; here 2.4% of the pairs, 3.1% of the time in which anything is in
    flight.
    """
    session = open_session(RUN)
    host = session.get(comm_host, session.hosts[0])
    hidden, exposed = int(host.hidden_ps.sum()), int(host.exposed_ps.sum())
    assert hidden / (hidden + exposed) == pytest.approx(0.0305, abs=0.0005)
    assert host.n_runs.sum(axis=0).tolist() == [0, 0, 2412]
    devices = comm_devices(trace())
    spans = covered = 0.0
    for device in devices.activities:
        chosen = np.array([op.is_async for op in devices.ops])[device.op]
        length = (device.end_ps - device.start_ps)[chosen]
        spans += float(length.sum())
        covered += float((coverage(device)[chosen] * length).sum())
    peer = 1 - sum(one[2] for one in PEER.values()) / sum(one[1] for one in PEER.values())
    assert covered / spans == pytest.approx(0.0245, abs=0.0005)
    assert peer == pytest.approx(0.0256, abs=0.0001)
