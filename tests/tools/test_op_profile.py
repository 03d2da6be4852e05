from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.op_profile import details
from tb_tpuprof.tools.op_profile.view import TOOL
from tests.builders import DrawnEvent, DrawnPlane, build, drawing
from tests.golden_files import demo_runs
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.synthetic import Parts, PlaneWriter, TpuJob, tpu_hosts, tpu_xspace, write_run
from tests.tools.drawn_session import session_of
from tests.tools.test_hlo_stats import cells

US = 1_000_000
JOB = TpuJob(Parts(compute=0.5, infeed=0.1, outfeed=0.1, collective=0.2), n_steps=4, n_cores=2, lead_ps=0)


@pytest.fixture(scope="module")
def tpu(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("op_profile") / "run"
    return Session(str(write_run(folder, {"synthetic-tpu": tpu_xspace(JOB)})), cache=False)


@pytest.fixture(scope="module")
def cpu() -> Session:
    return Session(str(demo_runs()["jax_train"]), cache=False)


def node(columns: dict[str, list[object]], name: str) -> dict[str, object]:
    row = columns["name"].index(name)
    return {key: values[row] for key, values in columns.items()}


def test_times_and_utilizations_are_those_that_were_planted(tpu: Session) -> None:
    nodes = cells(TOOL.run(tpu, None, {}), "nodes")
    total_ps = JOB.n_steps * JOB.n_cores * JOB.step_ps
    fusion = node(nodes, "convolution fusion")
    assert fusion["self_time_ps"] == pytest.approx(0.5 * total_ps)
    assert fusion["time_fraction"] == pytest.approx(0.5)
    assert fusion["n_occurrences"] == 8
    assert fusion["flops_fraction"] == pytest.approx(
        JOB.flops / (0.5 * JOB.step_ps / 1e12) / JOB.peak_flops_per_s
    )
    assert fusion["hbm_fraction"] == pytest.approx(
        JOB.n_bytes / (0.5 * JOB.step_ps / 1e12) / JOB.peak_bytes_per_s
    )
    assert node(nodes, "IDLE")["time_fraction"] == pytest.approx(0.1)
    assert node(nodes, "all")["flops"] == JOB.flops * 8


def test_without_idle_shares_are_of_the_operations(tpu: Session) -> None:
    nodes = cells(TOOL.run(tpu, None, {"idle": "false"}), "nodes")
    assert "IDLE" not in nodes["name"]
    assert node(nodes, "convolution fusion")["time_fraction"] == pytest.approx(0.5 / 0.9)


def test_limit_and_groups(tpu: Session) -> None:
    assert cells(TOOL.run(tpu, None, {"group_by": "category"}), "nodes")["kind"].count("program") == 0
    assert "dot_general" in cells(TOOL.run(tpu, None, {"group_by": "provenance"}), "nodes")["name"]
    with pytest.raises(BadParameter):
        TOOL.run(tpu, None, {"group_by": "colour"})


def test_verdict_and_peaks(tpu: Session, cpu: Session) -> None:
    verdict = TOOL.run(tpu, None, {}).verdict
    assert verdict
    assert verdict.text.startswith("`convolution fusion` takes 55.6%")
    assert "of peak HBM" in verdict.details[0]
    payload = TOOL.run(cpu, None, {})
    assert payload.scalars["flops_fraction"].value is None
    assert np.isnan(cells(payload, "nodes")["flops_fraction"]).all()  # type: ignore[arg-type]
    assert "Peak rates of a CPU are unknown" in payload.diagnostics[0].message


def test_utilization_is_of_the_time_in_which_operations_run(tpu: Session, tmp_path: Path) -> None:
    """9 of 10 parts of each step: 400 GFLOP and 3.2 GB in 7.2 ms of cores."""
    scalars = TOOL.run(tpu, None, {}).scalars
    verdict = TOOL.run(tpu, None, {}).verdict
    assert scalars["idle_fraction"].value == pytest.approx(0.1)
    assert scalars["flops_fraction"].value == pytest.approx(400e9 / 7.2e-3 / 197e12)
    assert scalars["hbm_fraction"].value == pytest.approx(3.2e9 / 7.2e-3 / 819e9)
    assert verdict is not None
    assert verdict.level == "good"
    assert verdict.details == ("While operations run they use 28.2% of peak FLOPS and 54.3% of peak HBM.",)
    # A fifth of the work and half of the time idle: nothing is near a peak, and the devices wait.
    job = TpuJob(Parts(compute=0.3, collective=0.2), n_steps=4, lead_ps=0, flops=5 * 10**9, n_bytes=4 * 10**7)
    session = Session(str(write_run(tmp_path / "run", {"h": tpu_xspace(job)})), cache=False)
    idle = TOOL.run(session, None, {})
    assert idle.verdict is not None
    assert idle.verdict.level == "warn"
    flops, hbm = (idle.scalars[name].value for name in ("flops_fraction", "hbm_fraction"))
    assert flops == pytest.approx(5e9 / 0.5e-3 / 197e12)
    assert hbm == pytest.approx(4e7 / 0.5e-3 / 819e9)
    assert (
        idle.verdict.details[0]
        == "While operations run they use 5.08% of peak FLOPS and 9.77% of peak HBM: neither is near its"
        " limit."
    )
    assert idle.verdict.details[1].startswith("No compiled operation runs for 5")


def test_operations_beyond_the_limit_are_counted(cpu: Session) -> None:
    every = TOOL.run(cpu, None, {"limit": "10000"})
    nodes = cells(every, "nodes")
    of_parent = Counter(
        parent for parent, kind in zip(nodes["parent"], nodes["kind"], strict=True) if kind == "op"
    )
    assert len(of_parent) >= 3
    n_left_out = sum(n - 1 for n in of_parent.values())
    assert n_left_out > 3
    assert every.tables["nodes"].note == ""
    limited = TOOL.run(cpu, None, {"limit": "1"}).tables["nodes"]
    assert limited.note == f"the {n_left_out:,} shortest are left out"
    assert limited.n_rows == len(nodes["name"]) - n_left_out


def test_hosts_are_summed(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = write_run(tmp_path_factory.mktemp("op_profile") / "run", tpu_hosts(JOB, (1.0, 1.0)))
    session = Session(str(folder), cache=False)
    one_host, both_hosts = (
        cells(TOOL.run(session, hosts, {}), "nodes") for hosts in ([session.hosts[0]], None)
    )
    assert both_hosts["name"] == one_host["name"]
    assert both_hosts["self_time_ps"] == [2 * n for n in one_host["self_time_ps"]]  # type: ignore[operator]
    assert both_hosts["hbm_fraction"] == pytest.approx(one_host["hbm_fraction"], nan_ok=True)


def test_details_of_a_dot_on_cpu(cpu: Session) -> None:
    nodes = cells(TOOL.run(cpu, None, {"limit": "10000"}), "nodes")
    ops = [
        (p, n) for p, n, k in zip(nodes["program"], nodes["name"], nodes["kind"], strict=True) if k == "op"
    ]
    times = [time for time, kind in zip(nodes["self_time_ps"], nodes["kind"], strict=True) if kind == "op"]
    for (program, op), time in zip(ops, times, strict=True):
        payload = TOOL.run(cpu, None, {"program": str(program), "op": str(op)}, "op")
        facts = dict(zip(*(cells(payload, "facts")[key] for key in ("name", "value")), strict=True))
        assert facts["Name"] == op
        assert str(facts["HLO"]).startswith(f"%{op} = ")
        assert payload.scalars["self_time_ps"].value == time
        if facts["Opcode"] == "dot":
            product = {key: values[0] for key, values in cells(payload, "products").items()}
            flops = 2.0 * product["batch"] * product["rows"] * product["contracted"] * product["columns"]  # type: ignore[operator]
            assert payload.scalars["flops"].value == flops
            assert payload.tables["products"].note == (
                "the share of the unit they fill is known only for TPUs"
            )
        if facts["Opcode"] == "fusion":
            assert payload.tables["contents"].n_rows > 0


def dot_on_tpu(duration_ps: int = 10 * US) -> bytes:
    """x[16, 512] · w[512, 200] on a TPU v5e, the batch of 16 in the fastest dimension of x: 2 · 16 · 512 ·
    200 FLOPs, twice 10 µs.
    """
    tiled = {1: (0, 1), 6: [{1: (8, 128)}]}
    x, w, out = (
        {**array(*dims), 5: layout}
        for dims, layout in (((16, 512), tiled), ((512, 200), {**tiled, 1: (1, 0)}), ((16, 200), tiled))
    )
    dot = instruction(
        3,
        "dot",
        out,
        [1, 2],
        f30={1: (1,), 2: (0,)},
        f7={1: "dot_general", 2: "jit(f)/dot", 3: "a.py", 4: 3, 15: 2},
    )
    body = [instruction(1, "parameter", x, f9=0), instruction(2, "parameter", w, f9=1), dot]
    frames = {
        1: ["a.py"],
        2: ["f", "main"],
        3: [{1: 1, 2: 1, 3: 3, 4: 7}, {1: 1, 2: 2, 3: 9}],
        4: [{1: 2}, {1: 1, 2: 1}],
    }
    space = xspace_class()()
    plane = PlaneWriter(space, "/device:TPU:0")
    plane.stats(
        plane.plane,
        {
            "device_type_string": "TPU v5 lite",
            "peak_teraflops_per_second": 197.0,
            "peak_hbm_bw_gigabytes_per_second": 819.0,
        },
    )
    line = plane.line("XLA Ops", 1, 0)
    stats = {
        "program_id": 7,
        "symbol_id": 3,
        "hlo_category": "convolution",
        "flops": 2 * 16 * 512 * 200,
        "bytes_accessed": 1000,
    }
    plane.metadata("%dot.3 = dot()", stats, "dot.3")
    for start in (0, 20 * US):
        plane.event(line, "%dot.3 = dot()", start, duration_ps)
    plane.event(plane.line("Async XLA Ops", 9, 0), "%dot.3 = dot()", 0, 50 * US)
    PlaneWriter(space, "/host:metadata").metadata(
        "jit_f(7)", {"Hlo Proto": proto([computation(1, "main", body, 3)], f17=frames)}
    )
    return bytes(space.SerializeToString())


def test_details_of_a_dot_on_a_tpu_say_what_its_layout_and_the_matrix_unit_cost(tmp_path: Path) -> None:
    session = Session(str(write_run(tmp_path / "run", {"tpu": dot_on_tpu()})), cache=False)
    payload = TOOL.run(session, None, {"program": "jit_f(7)", "op": "dot.3"}, "op")
    padding = list(
        zip(
            *(cells(payload, "padding")[key] for key in ("value", "dim", "role", "size", "padded")),
            strict=True,
        )
    )
    assert padding == [
        ("result dot.3", 0, "rows", 16, 128),
        ("operand 0 parameter.1", 0, "rows", 16, 128),
        ("operand 1 parameter.2", 1, "columns", 200, 256),
    ]
    product = {key: values[0] for key, values in cells(payload, "products").items()}
    assert (product["rows"], product["contracted"], product["columns"]) == (16, 512, 200)
    assert product["fill_fraction"] == pytest.approx(200 / 256)
    assert product["padding"] == "columns 200 padded to 256"
    assert payload.tables["products"].note == "on a unit of 128 × 128"
    shapes = dict(zip(*(cells(payload, "shapes")[key] for key in ("part", "padded_bytes")), strict=True))
    assert shapes["operand 0"] == 128 * 512 * 4
    assert payload.scalars["flops"].value == 2 * 16 * 512 * 200
    assert payload.scalars["flops_fraction"].value == pytest.approx(2 * 16 * 512 * 200 / 10e-6 / 197e12)
    assert list(zip(*cells(payload, "stack").values(), strict=True)) == [("a.py:3", "f"), ("a.py:9", "main")]
    longest = {key: values[0] for key, values in cells(payload, "longest").items()}
    assert (longest["host"], longest["duration_ps"]) == ("tpu", 10 * US)


def test_an_operation_without_time_has_no_share(tmp_path: Path) -> None:
    session = Session(str(write_run(tmp_path / "run", {"tpu": dot_on_tpu(0)})), cache=False)
    payload = TOOL.run(session, None, {"program": "jit_f(7)", "op": "dot.3"}, "op")
    assert [payload.scalars[key].value for key in ("self_time_ps", "fraction")] == [0, 0]
    assert payload.scalars["flop_rate_flops_per_s"].value is None


@pytest.mark.parametrize(
    ("own", "expected"),
    [([DrawnEvent("copy", 40, 20), DrawnEvent("copy", 80, 9)], [40, 20]), ([], [105, 50])],
)
def test_an_asynchronous_event_is_the_longest_where_the_operation_has_no_other(
    own: list[DrawnEvent], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asynchronous = [DrawnEvent("copy", 0, 30), DrawnEvent("copy", 105, 50)]
    trace = build([DrawnPlane("/device:TPU:0", {"XLA Ops": own, "Async XLA Ops": asynchronous})])
    monkeypatch.setattr(details, "_events_of", lambda *_: np.arange(trace.n_events))
    session: Any = SimpleNamespace(hosts=("tpu",))
    ops: Any = None
    columns = {
        column.name: column.values.tolist() for column in details._longest(session, "tpu", trace, ops).columns
    }
    assert [columns["start_ps"], columns["duration_ps"]] == [[time] for time in expected]


def long_fusion() -> bytes:
    """A fusion of 600 negations of 4 numbers, which runs for 10 µs on a TPU."""
    shape = array(4)
    body = [instruction(11, "parameter", shape, f9=0)]
    body += [instruction(row, "negate", shape, [row - 1]) for row in range(12, 612)]
    fusion = instruction(2, "fusion", shape, [1], f11="kLoop", f38=(20,))
    main = [instruction(1, "parameter", shape, f9=0), fusion]
    space = xspace_class()()
    plane = PlaneWriter(space, "/device:TPU:0")
    plane.metadata("%fusion.2 = fusion()", {"program_id": 7, "symbol_id": 2}, "fusion.2")
    plane.event(plane.line("XLA Ops", 1, 0), "%fusion.2 = fusion()", 0, 10 * US)
    program = proto([computation(20, "body", body, 611), computation(1, "main", main, 2)])
    PlaneWriter(space, "/host:metadata").metadata("jit_f(7)", {"Hlo Proto": program})
    return bytes(space.SerializeToString())


def test_the_first_500_instructions_of_a_fusion_are_listed(tmp_path: Path) -> None:
    session = Session(str(write_run(tmp_path / "run", {"tpu": long_fusion()})), cache=False)
    payload = TOOL.run(session, None, {"program": "jit_f(7)", "op": "fusion.2"}, "op")
    contents = cells(payload, "contents")
    assert contents["name"] == [f"negate.{row}" for row in range(12, 512)]
    assert payload.tables["contents"].note.startswith("the first 500 of 600; ")
    assert contents["flops"] == [4] * 500
    assert contents["estimated_fraction"] == pytest.approx([1 / 600] * 500)


def test_an_operation_that_did_not_run_is_refused(cpu: Session) -> None:
    for params in ({"op": "nothing.77"}, {"op": "", "program": "x"}, {"program": "x"}, {}):
        with pytest.raises(BadParameter):
            TOOL.run(cpu, None, params, "op")


def test_without_compiled_operations_it_says_why() -> None:
    with pytest.raises(ToolUnavailable):
        TOOL.run(session_of(drawing("main [x ]")), None, {})
