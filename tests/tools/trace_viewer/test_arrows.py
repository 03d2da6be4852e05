"""Arrows of the stat `flow` in the trace viewer: on hand-made traces with an obvious answer, then on real
ones, compared with what xprof 2.24.2 draws.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, drawing
from tests.ingest.xspaces import native
from tests.synthetic import PlaneWriter
from tests.tools.trace_viewer.questions import IN, IN_AND_OUT, OUT, ask, flow, needs_corpus, real, rows


def flowing() -> Trace:
    """`make` leads to `use` on two threads, the second by way of `pass`; `alone` has an id for itself."""
    return drawing(
        """
        main     [make][alone ]        [make]
        worker1        [pass]
        worker2   [early]      [use]
        worker3                     [use]
        """,
        {
            "make": [{"flow": flow(7, OUT, 5)}, {"flow": flow(8, OUT, 63)}],
            "pass": {"flow": flow(7, IN_AND_OUT, 5)},
            "early": {"flow": flow(8, IN, 63)},
            "use": {"flow": flow(7, IN, 5)},
            "alone": {"flow": flow(9, IN_AND_OUT)},
        },
    )


def test_the_stat_flow_draws_arrows_from_the_latest_event_that_leads_out() -> None:
    payload = ask(flowing(), flows=True)
    names = {row["event"]: row["name"] for row in rows(payload, "boxes")}
    arrows = [
        (names[row["from_event"]], names[row["to_event"]], row["kind"]) for row in rows(payload, "flows")
    ]
    # `early` begins before anything leads to it, as on a device whose clock lags: the arrow is there all the
    # same.
    assert Counter(arrows) == {
        ("make", "pass", "PjRt"): 1,
        ("pass", "use", "PjRt"): 2,
        ("make", "early", "context 63"): 1,
    }


def test_neighbours_by_flow_stand_in_the_details_both_ways() -> None:
    events = {row["name"]: row["event"] for row in rows(ask(flowing()), "boxes")}
    arrows = rows(ask(flowing(), question="event", event=events["pass"]), "flows")
    assert [(row["direction"], row["name"]) for row in arrows] == [
        ("in", "make"),
        ("out", "use"),
        ("out", "use"),
    ]
    assert rows(ask(flowing(), question="event", event=events["alone"]), "flows") == []


def test_an_arrow_that_is_told_twice_is_drawn_once() -> None:
    stats = {
        "launch": {"correlation_id": 3, "flow": flow(1, OUT, 9)},
        "kernel": {"correlation_id": 3, "flow": flow(1, IN, 9)},
    }
    trace = drawing("main  [launch]\n/device:GPU:0:\nStream #1(Compute)      [kernel]", stats)
    (arrow,) = rows(ask(trace, flows=True), "flows")
    assert arrow["kind"] == "GPU launch"


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 30), st.sampled_from([IN, OUT, IN_AND_OUT])), max_size=12
    )
)
def test_arrows_of_random_flows_are_those_of_a_plain_loop(points: list[tuple[int, int, int]]) -> None:
    trace = _points(points)
    order = {OUT: 0, IN_AND_OUT: 1, IN: 2}
    events = sorted(range(len(points)), key=lambda i: (points[i][1], order[points[i][2]], i))
    expected = set()
    for place, i in enumerate(events):
        if not points[i][2] & IN:
            continue
        same = [j for j in events if points[j][0] == points[i][0] and points[j][2] & OUT]
        before = [j for j in same if events.index(j) < place]
        source = before[-1] if before else same[0] if same else i
        if source != i:
            expected.add((source, i))
    arrows = {(row["from_event"], row["to_event"]) for row in rows(ask(trace, flows=True), "flows")}
    assert arrows == expected


def _points(points: list[tuple[int, int, int]]) -> Trace:
    """Events of 1 µs, each on a thread of its own."""
    space = xspace_class()()
    plane = PlaneWriter(space, "/host:CPU")
    for i, (number, time, direction) in enumerate(points):
        plane.event(
            plane.line(f"thread {i}", i + 1, 0),
            f"event {i}",
            time * PS,
            PS,
            {"flow": flow(number, direction)},
        )
    return native(space.SerializeToString() or b"\x12\x00")


# Arrows that xprof 2.24.2's trace viewer draws (events with `flow_in`) by kind.
PEER_ARROWS = {
    "tracelens_mi300_jax/plugins/profile/jax08_gemm": {
        "PjRt": 60,
        "PjRt call": 42,
        "thread pool": 30,
        "kernel launch": 54,
    },
    "xprof_tpu_inference_2_old/plugins/profile/run": {
        "context": 64,
        "PjRt": 425,
        "TFRT TPU runtime": 872,
        "TPU launch": 828,
    },
}


@needs_corpus
@pytest.mark.parametrize("run", PEER_ARROWS)
def test_arrows_of_real_traces_are_as_many_as_the_peer_draws(run: str) -> None:
    payload = TOOL.run(real(run), None, {"flows": True})
    session = real(run)
    trace = session.trace(session.hosts[0])
    assert payload.scalars["n_flows"].value == sum(PEER_ARROWS[run].values())
    from tb_tpuprof.analysis.timeline.flows import flows

    arrows = flows(trace)
    assert Counter(arrows.kinds[kind] for kind in arrows.kind.tolist()) == PEER_ARROWS[run]


@needs_corpus
def test_launch_and_kernel_of_a_real_gpu_lead_to_each_other() -> None:
    session = real("xprof_gpu_multi_worker/plugins/profile/GPU-multi-worker")
    host = session.hosts[0]
    trace = session.trace(host)
    owner, value = trace.event_stats.ints("correlation_id")
    on_device = np.array([name.startswith("/device:GPU") for name in trace.plane_names])[
        trace.lines["plane"][trace.event_line[owner]]
    ]
    kernel = int(owner[on_device][200])
    (incoming,) = rows(TOOL.run(session, [host], {"event": kernel}, "event"), "flows")
    assert (incoming["direction"], incoming["kind"]) == ("in", "kernel launch")
    assert value[owner == incoming["event"]][0] == value[owner == kernel][0]
    back = rows(TOOL.run(session, [host], {"event": incoming["event"]}, "event"), "flows")
    assert kernel in [row["event"] for row in back if row["direction"] == "out"]
