"""The communication page on a TPU job drawn by hand (`synthetic_comm.py`), on GPUs and on ranks: every number
from the drawing.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import CommOp, Traffic
from tb_tpuprof.analysis.comm.join import Comm, OpTimes
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.comm_costs import Costs
from tb_tpuprof.tools.communication.sentences import verdict
from tb_tpuprof.tools.communication.tables import group_text
from tb_tpuprof.tools.communication.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tests.analysis.pod.test_numbers import collective
from tests.golden_files import demo_runs
from tests.kineto_ranks import Comm as Kernel
from tests.kineto_ranks import rank_file, stated
from tests.payload_columns import scalar, table
from tests.synthetic import GpuJob, Parts, gpu_xspace, write_run
from tests.synthetic_comm import BLOCK_BYTES
from tests.synthetic_torus import Slice, torus_hosts
from tests.tools.communication.pages import US, comm_session, joined, us


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return comm_session(tmp_path_factory.mktemp("comm"))


@pytest.fixture(scope="module")
def page(session: Session) -> Payload:
    return TOOL.run(session, None, {})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return comm_session(tmp_path_factory.mktemp("whole"), has_steps=False)


def test_devices_hide_and_expose_what_was_drawn(page: Payload) -> None:
    devices = table(page, "devices")
    assert devices["device"] == ["h0 TPU:0", "h0 TPU:1", "h1 TPU:0", "h1 TPU:1"]  # the most exposed first
    assert devices["device_row"] == [0, 1, 2, 3]
    assert us(devices["step_ps"]) == [1000] * 4
    assert us(devices["compute_ps"]) == [590, 730, 759, 780]
    assert us(devices["hidden_ps"]) == [590, 330, 499, 0]
    assert us(devices["exposed_ps"]) == [110 + 10 + 260, 70 + 180, 1 + 220, 90 + 100]
    assert us(devices["waiting_ps"]) == [160 + 50, 80, 120, 0]
    assert devices["exposed_fraction"] == pytest.approx([0.38, 0.25, 0.221, 0.19])


def test_steps_are_means_whose_parts_add_up(page: Payload) -> None:
    steps = table(page, "steps")
    assert steps["step"] == [str(i) for i in range(6)]
    parts = {name: us(steps[f"{name}_ps"])[0] for name in ("compute", "hidden", "partly", "exposed", "other")}
    # On core 0 the gather and the copy are hidden in part, on core 1 the gather, on core 2 the permutation.
    assert parts == {"compute": 360, "hidden": 0, "partly": 354.75, "exposed": 260.25, "other": 25}
    assert sum(parts.values()) == us(steps["step_ps"])[0] == 1000
    assert us(steps["waiting_ps"])[0] == 102.5
    assert us(steps["best_ps"])[0] == 1000 - (0 + 170 + 101 + 190) / 4


def test_operations_add_up_to_the_page(page: Payload) -> None:
    ops = table(page, "ops")
    assert ops["op"] == ["all-reduce.41", "all-gather.7", "copy.5", "collective-permute.9"]
    assert ops["traffic"] == ["between devices", "between devices", "within the device", "between devices"]
    assert ops["group"] == ["all 4", "2 × 2 cores", None, "4 pairs"]
    assert us(ops["exposed_ps"]) == [190, 45, 25, 0.25]
    assert us(ops["hidden_ps"]) == [0, 155, 75, 124.75]
    assert us(ops["total_ps"]) == [190, 200, 100, 125]
    assert sum(us(ops["exposed_ps"])) == scalar(page, "exposed_ps") / US == 260.25
    assert sum(us(ops["hidden_ps"])) == scalar(page, "hidden_ps") / US == 354.75
    assert ops["exposed_fraction"] == pytest.approx([0.19, 0.045, 0.025, 0.00025])
    assert us(ops["elapsed_ps"]) == [190, 400, 200, 500]
    assert ops["n_per_step"] == [1, 1, 1, 1]
    assert [ops["n_hidden"], ops["n_partly"], ops["n_exposed"]] == [
        [0, 0, 6, 6],
        [0, 12, 0, 0],
        [24, 0, 6, 0],
    ]
    assert ops["last"] == ["h1 TPU:1", "h0 TPU:1", None, None]
    assert ops["last_fraction"][:2] == [1, 1]


def test_bandwidths_and_sizes(page: Payload) -> None:
    ops = table(page, "ops")
    assert ops["size_bytes"] == [BLOCK_BYTES] * 4
    per_us = BLOCK_BYTES * 1e6
    # The all-reduce's fastest participant takes 100 µs; the others are timed from start to done.
    assert ops["bytes_per_s"] == pytest.approx([per_us / 100, per_us / 400, per_us / 200, per_us / 500])
    assert ops["bus_bytes_per_s"] == pytest.approx(
        [per_us / 100 * 1.5, per_us / 400 / 2, per_us / 200, per_us / 500]
    )
    weighted = (per_us * 1.5 + per_us / 2 + per_us) / (100 + 400 + 500)
    assert scalar(page, "bus_bytes_per_s") == pytest.approx(weighted)
    assert page.scalars["bus_bytes_per_s"].note.endswith("3 of 3 collectives")
    assert ops["remark"][:3] == [None, *["bandwidth is a lower bound: from its start to its done"] * 2]
    assert "1 of 2 participants" in str(ops["remark"][3])


def test_waiting_groups_and_sizes_are_the_pod_viewer_s(session: Session, page: Payload) -> None:
    pod = get_tool("pod_viewer").run(session, None, {})
    ours, theirs = table(page, "ops"), table(pod, "collectives")
    row = theirs["op"].index("all-reduce.41")
    assert us([theirs["wait_ps"][row]]) == us(ours["wait_ps"][:1]) == [90]
    assert theirs["size_bytes"][row] == ours["size_bytes"][0]
    assert theirs["bus_bytes_per_s"][row] == pytest.approx(ours["bus_bytes_per_s"][0])
    assert (
        us([theirs["wait_ps"][theirs["op"].index("all-gather-done.7")]]) == us(ours["wait_ps"][1:2]) == [25]
    )
    mean = np.mean(us(table(pod, "steps")["collective_wait_ps"]))
    assert scalar(page, "wait_ps") / US == mean == 102.5
    assert page.scalars["wait_ps"].note == "h1 TPU:1 is last in 100% of the steps"
    assert scalar(page, "step_ps") == scalar(pod, "step_ps")


def test_the_overview_has_the_same_share(session: Session, page: Payload) -> None:
    overview = get_tool("overview_page").run(session, None, {})
    name = "exposed_communication_fraction"
    assert scalar(overview, name) == scalar(page, name) == pytest.approx(0.26025)
    assert name in overview.tiles
    assert "device_compute_fraction" not in overview.tiles
    # Of the four cores: 361, 231, 221 and 100 µs in collectives; 10, 0, 0 and 90 µs in copies.
    note = "260 µs per step, mean per device: 228 µs collectives, 25.0 µs copies, 7.00 µs data in flight"
    assert overview.scalars[name].note == page.scalars[name].note == note


def test_the_tile_says_why_it_is_not_the_class_of_the_steps(tmp_path: Path) -> None:
    """On a torus three operations of 1 µs start the transfers of each step: collectives to the steps, no
    exposed time. GPUs of one host compute at unlike times.
    """
    name = "exposed_communication_fraction"
    job = GpuJob(Parts(compute=0.5, collective=0.2), n_gpus=3, gpu_scale=(1.0, 0.8, 0.5))
    runs = {
        "torus": (torus_hosts(Slice((2, 2, 2))), "without 3.00 µs in operations that only start a transfer"),
        "gpus": ({"host": gpu_xspace(job)}, "a step computes while any GPU of its host does"),
    }
    for run, (files, words) in runs.items():
        session = Session(str(write_run(tmp_path / run, files)), cache=False)
        overview = get_tool("overview_page").run(session, None, {})
        assert overview.scalars[name].note.partition(": ")[2] == words
        breakdown = table(overview, "breakdown")
        collectives_ps = breakdown["avg_ps"][breakdown["color"].index("collective")]
        exposed_ps = scalar(overview, name) * scalar(overview, "step_time_avg_ps")
        if run == "torus":
            assert collectives_ps - exposed_ps == pytest.approx(3 * US)


def test_the_verdict_says_what_hiding_saves_at_most(page: Payload) -> None:
    answer = page.verdict
    assert answer is not None
    assert answer.level == "bad"
    assert answer.text == (
        "Exposed communication costs 260 µs (26.0%) of each step; hiding it fully would save at most 11.5%."
    )
    assert answer.details == (
        (
            "73.0% of this time is `all-reduce.41`: it is not asynchronous, so its core does nothing "
            "else meanwhile."
        ),
        "On 1 of 4 cores, data moves for longer than the compute that could hide it.",
        "Of the 260 µs, 103 µs is waiting, mostly for `h1 TPU:1`, which hiding does not remove.",
    )
    shown = {"hosts": "h0", "start_ps": str(3000 * US), "end_ps": str(4000 * US)}  # the step that is drawn
    assert [(step.tool, step.params) for step in answer.next] == [("trace_viewer", shown), ("pod_viewer", {})]
    assert scalar(page, "gain_fraction") <= scalar(page, "exposed_communication_fraction")
    assert page.tiles == ("exposed_ps", "hidden_fraction", "best_step_ps", "wait_ps", "bus_bytes_per_s")


def test_one_step_on_one_device(session: Session) -> None:
    asked = {"device": 0, "step": 2}
    answer = TOOL.run(session, None, asked, "step")
    boxes = table(answer, "boxes")
    drawn = sorted(
        zip(
            boxes["lane"],
            boxes["kind"],
            boxes["op"],
            us(boxes["start_ps"]),
            us(boxes["duration_ps"]),
            strict=True,
        ),
        key=str,
    )
    assert [box for box in drawn if box[0] == "Compute"] == [
        ("Compute", "compute", None, 10, 290),
        ("Compute", "compute", None, 400, 300),
        ("Compute", "exposed", "all-reduce.41", 720, 260),
    ]
    assert [box for box in drawn if box[0] == "Lane 1"] == [
        ("Lane 1", "exposed", "all-gather.7", 0, 10),
        ("Lane 1", "exposed", "all-gather.7", 300, 100),
        ("Lane 1", "exposed", "copy.5", 700, 10),
        ("Lane 1", "partly", "all-gather.7", 10, 290),
        ("Lane 1", "partly", "copy.5", 400, 300),
    ]
    assert sum(box[4] for box in drawn if box[0] == "Exposed") == 380
    assert answer.tables["boxes"].title == "Step 2 on h0 TPU:0"
    assert scalar(answer, "begin_ps") == 2000 * US
    default = TOOL.run(session, None, {}, "step")
    assert (scalar(default, "device"), scalar(default, "step")) == (0, 3)
    other = table(TOOL.run(session, None, {"device": 2}, "step"), "boxes")
    assert "collective-permute.9" in other["op"]
    assert "all-gather.7" not in other["op"]


def test_devices_and_steps_that_do_not_exist(session: Session) -> None:
    for asked in ({"device": 4}, {"step": 6}):
        with pytest.raises(BadParameter):
            TOOL.run(session, None, asked, "step")
    assert TOOL.run(session, None, {"device": 3, "step": 5}, "step").tables["boxes"].n_rows


def test_without_steps_the_capture_counts(whole: Session) -> None:
    page = TOOL.run(whole, None, {})
    assert scalar(page, "n_shown_steps") == 0
    assert "step_ps" not in page.scalars
    assert scalar(page, "capture_span_ps") == 5980 * US  # from the first operation to the last
    assert scalar(page, "exposed_ps") / US == 6 * 260.25
    assert page.scalars["best_step_ps"].title == "Capture if fully hidden"
    assert page.verdict is not None
    assert "of the capture; hiding it fully" in page.verdict.text
    assert page.verdict.next[0].params == {}
    assert table(TOOL.run(whole, None, {}, "step"), "boxes")["lane"]
    assert [diagnostic.severity for diagnostic in page.diagnostics] == ["info"]


def test_hosts_are_joined_and_can_be_chosen(session: Session) -> None:
    one = TOOL.run(session, ["h1"], {})
    devices = table(one, "devices")
    assert devices["device"] == ["h1 TPU:0", "h1 TPU:1"]
    assert us(devices["exposed_ps"]) == [221, 190]
    assert us(devices["waiting_ps"]) == [120, 0]
    second = table(TOOL.run(session, ["h1"], {"device": 1}, "step"), "boxes")
    assert "copy.5" in second["op"]


def test_a_run_without_traffic_says_why() -> None:
    quiet = Session(str(demo_runs()["jax_train"]), cache=False)
    reason = TOOL.available(quiet)
    assert not reason
    assert reason.short == "no traffic"
    with pytest.raises(ToolUnavailable, match="no device moved any data"):
        TOOL.run(quiet, None, {})
    assert TOOL.badge(quiet) == ""


def test_links_name_the_lines_that_the_timeline_has(session: Session) -> None:
    comm = joined(session)
    texts = {
        (kind, traffic): verdict(replace(exposed(comm, 1.0, traffic), pod=replace(comm.pod, kind=kind)))
        .next[0]
        .text
        for kind in ("TPU", "GPU", "CPU")
        for traffic in (Traffic.DEVICES, Traffic.HOST)
    }
    with_lines = {key for key, text in texts.items() if text.endswith(", on the lines Exposed communication")}
    assert with_lines == {("TPU", Traffic.DEVICES), ("TPU", Traffic.HOST), ("GPU", Traffic.DEVICES)}


@pytest.mark.parametrize(
    ("kind", "gains"),
    [
        ("CPU", [(10, 10, 10, 0, 0), (20, 40, 30, 5, 5)]),
        ("TPU", [(20, 10, 40, 0, 50), (20, 40, 30, 5, 30)]),
    ],
)
def test_steps_of_a_cpu_last_as_long_as_their_busiest_device(
    session: Session, kind: str, gains: list[tuple[int, ...]]
) -> None:
    """Three devices of one host, two of another, in steps of 100 and 90 ps. On a CPU the busiest device of
    each host bounds the saving: to 10 and 40 ps on the first, to 0 and 5 ps on the second.
    """
    compute = np.array([[20, 20], [90, 50], [40, 30], [100, 85], [50, 60]], np.int64)
    total = np.array([[100, 90]] * 5, np.int64)
    comm, none = joined(session), np.zeros((5, 2, 3), np.int64)
    exposed_ps = none.copy()
    exposed_ps[:, :, Traffic.DEVICES] = total - compute
    devices = replace(
        comm,
        pod=replace(comm.pod, kind=kind, waited_ps=np.zeros((0, 0))),
        hosts=("a", "b"),
        host_of=np.array([0, 0, 0, 1, 1]),
        total_ps=total,
        compute_ps=compute,
        exposed_ps=exposed_ps,
        hidden_ps=none,
    )
    assert [tuple(devices.gain_ps[:, step].astype(int).tolist()) for step in (0, 1)] == gains


def test_the_menu_shows_the_share(session: Session) -> None:
    TOOL.run(session, None, {})
    assert TOOL.available(session)
    assert TOOL.badge(session) == "26%"


def test_gpus_overlap_copies_and_collectives(tmp_path: Path) -> None:
    job = GpuJob(parts=Parts(compute=0.5, infeed=0.1, outfeed=0.05, collective=0.2), n_gpus=3)
    run = write_run(tmp_path, {"gpus": gpu_xspace(job, "gpus")})
    page = TOOL.run(Session(str(run), cache=False), None, {})
    steps = table(page, "steps")
    parts = [us(steps[f"{name}_ps"]) for name in ("compute", "hidden", "partly", "exposed", "other")]
    np.testing.assert_allclose(np.sum(parts, axis=0), us(steps["step_ps"]))
    assert scalar(page, "exposed_host_ps") > 0
    assert scalar(page, "exposed_devices_ps") > 0
    whole = sum(scalar(page, f"exposed_{name}_ps") for name in ("devices", "host", "local"))
    assert whole == pytest.approx(scalar(page, "exposed_ps"))


def test_ranks_of_pytorch(tmp_path: Path) -> None:
    """Three ranks: the collective of rank 0 is hidden by half, that of rank 2 arrives last."""
    import json

    said = stated("allreduce", 1024, 1024, "Float")
    for rank, (begin, length, compute) in enumerate(((100, 300, 150), (200, 200, 0), (300, 100, 0))):
        step = [Kernel(begin, length, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", said)]
        extra = [(begin, compute)] if compute else []
        data = rank_file(rank, [[*step, *extra]] * 3)
        (tmp_path / f"r{rank}.pt.trace.json").write_text(json.dumps(data))
    page = TOOL.run(Session(str(tmp_path), cache=False), None, {})
    devices = table(page, "devices")
    assert devices["device"] == ["rank 1", "rank 0", "rank 2"]
    by_name = dict(zip(devices["device"], us(devices["exposed_ps"]), strict=True))
    assert by_name == {"rank 0": 150, "rank 1": 200, "rank 2": 100}
    # Rank 0 waits for 200, of which 150 may be hidden; rank 1 for 100.
    waiting = dict(zip(devices["device"], us(devices["waiting_ps"]), strict=True))
    assert waiting == {"rank 0": 50, "rank 1": 100, "rank 2": 0}
    # The tile has what the pod viewer has: of rank 0, two thirds of the 150 that it does not compute.
    assert us([scalar(page, "wait_ps")]) == pytest.approx([(100 + 100 + 0) / 3])
    assert page.scalars["wait_ps"].note == (
        "rank 2 is last in 100% of the steps · 50.0 µs of the exposed time"
    )
    ops = table(page, "ops")
    assert ops["op"] == ["all-reduce #1"]
    assert ops["size_bytes"] == [4096]
    assert us(ops["wait_ps"]) == [100]
    assert ops["last"] == ["rank 2"]
    assert ops["bus_bytes_per_s"] == pytest.approx([4096 / 100e-6 * 4 / 3])


def exposed(comm: Comm, times: float, traffic: Traffic = Traffic.DEVICES) -> Comm:
    """The same run with this much of its exposed time, all of one kind of traffic; it computes enough."""
    moved = np.zeros_like(comm.exposed_ps)
    moved[:, :, traffic] = np.rint(comm.exposed_ps.sum(axis=2) * times)
    op = OpTimes(
        CommOp("x.1", "copy", traffic, True), 0.0, float(moved.sum(axis=2).mean()), 1.0, 1.0, (0, 0, 1), None
    )
    return replace(
        comm,
        exposed_ps=moved,
        hidden_ps=np.zeros_like(moved),
        compute_ps=comm.total_ps,
        ops=(op,),
        pod=replace(comm.pod, waited_ps=np.zeros(comm.total_ps.shape)),
    )


@pytest.mark.parametrize(
    ("share", "level", "start"),
    [
        (0.0099, "good", "Copies cost almost nothing"),
        (0.0101, "good", "Exposed copies to and from the host cost"),
        (0.0299, "good", "Exposed"),
        (0.0301, "warn", "Exposed"),
        (0.0999, "warn", "Exposed"),
        (0.1001, "bad", "Exposed"),
    ],
)
def test_levels_of_the_verdict(session: Session, share: float, level: str, start: str) -> None:
    made = verdict(exposed(joined(session), share / 0.26025, Traffic.HOST))
    assert made.level == level
    assert made.text.startswith(start)


def test_what_the_verdict_is_about(session: Session) -> None:
    comm = joined(session)
    local = verdict(exposed(comm, 1.0, Traffic.LOCAL))
    assert local.text.startswith("Exposed copies within the device cost 260 µs")
    assert local.details == ("All of it is `x.1`: nothing computes while it runs.",)
    half = exposed(comm, 1.0, Traffic.LOCAL)
    moved = half.exposed_ps.copy()
    moved[:, :, Traffic.HOST] = moved[:, :, Traffic.LOCAL]
    assert Costs(replace(half, exposed_ps=moved)).traffic == Traffic.DEVICES  # neither has more than half
    few = replace(exposed(comm, 1.0), compute_ps=comm.total_ps // 10)
    assert "save at most 10.0%" in verdict(few).text
    assert (
        verdict(few).details[1]
        == "Data moves for 260 µs, longer than the 100 µs of compute that could hide it."
    )
    none = replace(exposed(comm, 1.0), compute_ps=np.zeros_like(comm.total_ps))
    assert verdict(none).text.endswith("hiding it fully would save almost nothing.")


@pytest.mark.parametrize(
    ("groups", "text"), [(((0, 1), (2, 3)), "2 × 2 GPUs"), (((0, 1, 2, 3),), "all 4"), ((), "all 4")]
)
def test_groups_in_words(groups: tuple[tuple[int, ...], ...], text: str) -> None:
    size = len(groups[0]) if groups else 4
    assert group_text(collective(groups=groups, group_size=size), "GPU") == text
    named = collective()
    named = replace(named, op=replace(named.op, process_group="mesh_tp"))
    assert group_text(named, "GPU") == "mesh_tp"
    assert group_text(None, "GPU") == ""
