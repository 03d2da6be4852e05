from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.hlo_stats.view import TOOL
from tb_tpuprof.tools.payload import Payload
from tests.builders import DrawnEvent, DrawnPlane, Stats, build, drawing
from tests.payload_columns import table
from tests.synthetic import TpuJob, field, memory_accesses, tpu_hosts, write_run
from tests.tools.drawn_session import session_of

US = 1_000_000
MS = 1000 * US
FUSION: Stats = {
    "program_id": 7,
    "symbol_id": 1,
    "hlo_category": "loop fusion",
    "tf_op": "jit(f)/add:",
    "flops": 6_000,
    "model_flops": 3_000,
    "bytes_accessed": 4_000,
    "memory_access_breakdown": memory_accesses((1, 1, 2_000), (2, 1, 500), (1, 3, 700), (2, 2, 800)),
    "source": "train.py:12",
}


def cells(payload: Payload, name: str = "ops") -> dict[str, list[object]]:
    return table(payload, name)


def tpu(metadata: dict[str, Stats], events: list[DrawnEvent], plane_stats: Stats | None = None) -> Session:
    peaks: Stats = {
        "peak_teraflops_per_second": 1.0,
        "peak_hbm_bw_gigabytes_per_second": 1.0,
        "peak_vmem_rd_bw_gigabytes_per_second": 100.0,
    }
    plane = DrawnPlane("/device:TPU:0", {"XLA Ops": events}, {**peaks, **(plane_stats or {})}, metadata)
    return session_of(build([plane]))


def test_a_row_tells_times_work_and_what_binds() -> None:
    events = [DrawnEvent("fusion.1", 0, 2 * US), DrawnEvent("fusion.1", 6 * US, 2 * US)]
    payload = TOOL.run(tpu({"fusion.1": FUSION}, events, {"peak_hbm_bw_gigabytes_per_second": 2.0}), None, {})
    row = {name: values[0] for name, values in cells(payload).items()}
    assert (row["op"], row["category"], row["provenance"], row["source"]) == (
        "fusion.1",
        "loop fusion",
        "jit(f)/add:",
        "train.py:12",
    )
    assert (row["n_occurrences"], row["total_time_ps"], row["avg_time_ps"]) == (2, 4 * US, 2 * US)
    assert (row["self_fraction"], row["device_time_fraction"]) == (1, 0.5)
    assert row["flop_rate_flops_per_s"] == pytest.approx(3_000 / 2e-6)
    assert row["memory_bandwidth_bytes_per_s"] == pytest.approx(4_000 / 2e-6)
    assert row["hbm_bytes_per_s"] == pytest.approx(2_500 / 2e-6)
    assert (row["vmem_read_bytes_per_s"], row["cmem_write_bytes_per_s"]) == (
        pytest.approx(700 / 2e-6),
        pytest.approx(800 / 2e-6),
    )
    assert (row["operational_intensity_flops_per_byte"], row["all_memories_flops_per_byte"]) == (2.4, 1.5)
    assert row["bound_by"] == "HBM"  # 1.25 of 2 GB/s, against 3 of 1,000 GFLOP/s
    assert payload.scalars["idle_fraction"].value == 0.5


@pytest.mark.parametrize(
    ("duration_us", "told"),
    [
        (4, "`fusion.1` is limited by HBM: it reaches 62.5% of peak HBM."),
        (100, "`fusion.1` is not limited by compute or memory: it reaches 2.50% of peak HBM at most."),
    ],
)
def test_what_waits_is_not_said_to_be_bound(duration_us: int, told: str) -> None:
    """2,500 bytes at 1 GB/s take 2.5 µs: an operation that lasts far longer waits for something else."""
    payload = TOOL.run(tpu({"fusion.1": FUSION}, [DrawnEvent("fusion.1", 0, duration_us * US)]), None, {})
    assert payload.verdict
    assert told in payload.verdict.details


def test_names_of_rows_that_are_left_out_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.tools.hlo_stats.view.N_ROWS", 1)
    events = [DrawnEvent("fusion.1", 0, US), DrawnEvent("fusion.2", 2 * US, 3 * US)]
    payload = TOOL.run(
        tpu({"fusion.1": FUSION, "fusion.2": {**FUSION, "symbol_id": 2, "tf_op": "jit(f)/mul:"}}, events),
        None,
        {},
    )
    strings = {column.name: list(column.strings or ()) for column in payload.tables["ops"].columns}
    assert (strings["op"], strings["provenance"]) == (["fusion.2"], ["jit(f)/mul:"])
    assert (cells(payload)["op"], payload.tables["ops"].note) == (["fusion.2"], "the first 1 of 2")


def test_nested_operations_and_their_containers() -> None:
    container = {**FUSION, "symbol_id": 2, "hlo_category": "while", "flops": 60_000}
    events = [DrawnEvent("while.2", 0, 10 * US), DrawnEvent("fusion.1", 2 * US, 6 * US)]
    rows = cells(TOOL.run(tpu({"fusion.1": FUSION, "while.2": container}, events), None, {}))
    assert rows["op"] == ["fusion.1", "while.2"]
    assert rows["total_self_time_ps"] == [6 * US, 4 * US]
    assert rows["total_time_ps"] == [6 * US, 10 * US]
    assert rows["cumulative_fraction"] == [0.6, 1.0]


def test_rematerialized_and_outside_compilation_are_marked() -> None:
    metadata: dict[str, Stats] = {
        "add.1.remat": {**FUSION, "symbol_id": 2},
        "call.3": {**FUSION, "symbol_id": 3, "tf_op": "outside_compilation/Print:Print"},
        "fusion.1": FUSION,
    }
    events = [DrawnEvent(name, i * US, (3 - i) * US) for i, name in enumerate(["add.1.remat"])]
    events += [DrawnEvent("call.3", 3 * US, 2 * US), DrawnEvent("fusion.1", 5 * US, US)]
    payload = TOOL.run(tpu(metadata, events), None, {})
    rows = cells(payload)
    assert rows["is_rematerialized"] == [True, False, False]
    assert rows["is_outside_compiled"] == [False, True, False]
    assert payload.scalars["rematerialized_fraction"].value == 0.5
    assert cells(payload, "by_rematerialized")["name"] == ["No", "Rematerialized"]
    assert cells(payload, "by_outside")["fraction"] == [pytest.approx(4 / 6), pytest.approx(2 / 6)]


def test_what_has_neither_program_nor_symbol_is_left_out() -> None:
    session = tpu(
        {"fusion.1": FUSION, "lost": {"program_id": 7}},
        [DrawnEvent("fusion.1", 0, US), DrawnEvent("lost", US, US)],
    )
    assert cells(TOOL.run(session, None, {}))["op"] == ["fusion.1"]


def test_stalls_clock_and_energy_only_where_traced() -> None:
    plain = cells(TOOL.run(tpu({"fusion.1": FUSION}, [DrawnEvent("fusion.1", 0, 2 * US)]), None, {}))
    assert np.isnan(plain["dma_stall_fraction"][0])  # type: ignore[call-overload]
    assert plain["normalized_flops_per_s"] == plain["flop_rate_flops_per_s"]
    stats: Stats = {"dma_stall_duration_ps": US, "Time Scale Multiplier": 0.5}
    traced = cells(TOOL.run(tpu({"fusion.1": FUSION}, [DrawnEvent("fusion.1", 0, 2 * US, stats)]), None, {}))
    assert traced["dma_stall_fraction"] == [0.5]
    assert traced["normalized_flops_per_s"][0] == pytest.approx(2 * plain["flop_rate_flops_per_s"][0])  # type: ignore[operator]


@pytest.mark.parametrize(
    ("scale", "factor"),
    [(1e6, 1e6), (1.1e6, 1), (0.0, 1), (-2.0, 1), (float("nan"), 1), (float("inf"), 1), (1e308, 1)],
)
def test_a_clock_that_no_device_has_is_not_applied(scale: float, factor: float) -> None:
    stats: Stats = {"Time Scale Multiplier": scale}
    rows = cells(TOOL.run(tpu({"fusion.1": FUSION}, [DrawnEvent("fusion.1", 0, 2 * US, stats)]), None, {}))
    names = ("normalized_flops_per_s", "flop_rate_flops_per_s")
    rates = [float(rows[name][0]) for name in names]  # type: ignore[arg-type]
    assert rates[0] * factor == pytest.approx(rates[1])


def test_sparse_cores_are_rows_in_no_share() -> None:
    sparse = DrawnPlane(
        "/device:TPU:0 SparseCore 0",
        {"Sparse Core Ops": [DrawnEvent("gather.1", 0, 9 * US)]},
        {},
        {"gather.1": FUSION},
    )
    core = DrawnPlane(
        "/device:TPU:0", {"XLA Ops": [DrawnEvent("fusion.1", 0, 4 * US)]}, {}, {"fusion.1": FUSION}
    )
    payload = TOOL.run(session_of(build([core, sparse])), None, {})
    rows = cells(payload)
    assert rows["core"] == ["TensorCore", "SparseCore"]
    assert np.isnan(rows["self_fraction"][1])  # type: ignore[call-overload]
    assert rows["self_fraction"][0] == 1
    assert payload.scalars["busy_ps"].value == 4 * US


def test_a_damaged_breakdown_gives_no_bytes() -> None:
    broken = {
        **FUSION,
        "memory_access_breakdown": (
            field(1, b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") + b"\x0a\xff"
        ),
    }
    rows = cells(TOOL.run(tpu({"fusion.1": broken}, [DrawnEvent("fusion.1", 0, US)]), None, {}))
    assert rows["hbm_bytes_per_s"] == [0.0]


def test_hosts_are_summed(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = write_run(tmp_path_factory.mktemp("hlo") / "run", tpu_hosts(TpuJob(), (1.0, 1.0)))
    session = Session(str(folder), cache=False)
    one_host, both_hosts = (cells(TOOL.run(session, hosts, {})) for hosts in ([session.hosts[0]], None))
    assert both_hosts["op"] == one_host["op"]
    assert both_hosts["n_occurrences"] == [2 * n for n in one_host["n_occurrences"]]  # type: ignore[operator]
    assert both_hosts["total_time_ps"] == [2 * n for n in one_host["total_time_ps"]]  # type: ignore[operator]
    assert both_hosts["self_fraction"] == pytest.approx(one_host["self_fraction"])
    assert both_hosts["flop_rate_flops_per_s"] == pytest.approx(
        one_host["flop_rate_flops_per_s"], nan_ok=True
    )


def test_without_compiled_operations_it_says_why() -> None:
    session = session_of(drawing("main [x ]"))
    assert "XLA compiled" in TOOL.available(session).reason
    with pytest.raises(ToolUnavailable):
        TOOL.run(session, None, {})


def test_programs_without_hlo_have_the_names_of_their_runs() -> None:
    number = 14_478_353_077_513_490_656  # above 2^63: the trace keeps it as a negative number
    names = ("add.1", "mul.2", "sub.3")
    programs = (number - 2**64, 8, 9)
    stats: dict[str, Stats] = {
        name: {"program_id": program, "symbol_id": i, "hlo_category": "loop fusion"}
        for i, (name, program) in enumerate(zip(names, programs, strict=True), 1)
    }
    lines = {
        "XLA Ops": [DrawnEvent(name, i * 3 * US, (i + 1) * US) for i, name in enumerate(names)],
        "XLA Modules": [
            DrawnEvent(f"jit_step({number})", 0, 2 * US),
            DrawnEvent("jit_f(x)(8)", 3 * US, 2 * US),
            DrawnEvent("jit_loss", 6 * US, 3 * US),
        ],
    }
    session = session_of(build([DrawnPlane("/device:TPU:0", lines, {}, stats)]))
    shown = cells(TOOL.run(session, None, {}))
    titles = dict(zip(shown["op"], shown["program"], strict=True))
    assert titles == {"add.1": f"jit_step({number})", "mul.2": "8", "sub.3": "9"}
