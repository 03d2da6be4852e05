import json
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.device.hardware import Hardware
from tb_tpuprof.analysis.events.frameworks import Software
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.kernel_stats import view as page_view
from tb_tpuprof.tools.kernel_stats.view import TOOL
from tests.builders import PS, DrawnEvent, DrawnPlane, Stats, build, drawing
from tests.payload_columns import cells, table
from tests.synthetic import write_run
from tests.synthetic_devices import KERNELS, Kernel, kernels_xspace
from tests.tools.drawn_session import session_of

US = 1_000_000


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("kernels") / "run"
    return Session(
        str(write_run(folder, {f"host-{i}": kernels_xspace(host=f"host-{i}") for i in range(2)})), cache=False
    )


def test_rows_are_those_that_were_planted(two_hosts: Session) -> None:
    rows = table(TOOL.run(two_hosts, ["host-0"], {}), "kernels")
    expected = sorted(KERNELS, key=lambda k: -k.duration_us * sum(range(1, k.n + 1)))
    assert rows["kernel"] == [kernel.name for kernel in expected]
    assert rows["rank"] == list(range(1, len(KERNELS) + 1))
    assert rows["n_occurrences"] == [kernel.n for kernel in expected]
    assert rows["total_ps"] == [kernel.duration_us * sum(range(1, kernel.n + 1)) * US for kernel in expected]
    assert rows["min_ps"] == [kernel.duration_us * US for kernel in expected]
    assert rows["max_ps"] == [kernel.duration_us * kernel.n * US for kernel in expected]
    assert sum(rows["fraction"]) == pytest.approx(1)  # type: ignore[arg-type]


def test_hosts_are_merged(two_hosts: Session) -> None:
    one_host, both_hosts = (table(TOOL.run(two_hosts, hosts, {}), "kernels") for hosts in (["host-0"], None))
    assert both_hosts["kernel"] == one_host["kernel"]
    assert both_hosts["n_occurrences"] == [2 * n for n in one_host["n_occurrences"]]  # type: ignore[operator]
    assert both_hosts["avg_ps"] == one_host["avg_ps"]
    assert (both_hosts["min_ps"], both_hosts["max_ps"]) == (one_host["min_ps"], one_host["max_ps"])


def test_launch_and_units(two_hosts: Session) -> None:
    rows = table(TOOL.run(two_hosts, None, {}), "kernels")
    gemm = rows["kernel"].index(KERNELS[0].name)
    assert [
        rows[key][gemm]
        for key in ("n_registers", "shared_bytes", "static_shared_bytes", "dynamic_shared_bytes")
    ] == [
        32,
        3072,
        1024,
        2048,
    ]
    assert (rows["block"][gemm], rows["grid"][gemm], rows["occupancy_fraction"][gemm]) == (
        "128,1,1",
        "16,2,1",
        0.5,
    )
    plain = rows["kernel"].index("volta_sgemm_128x64_tn")
    assert (rows["is_tensor_core_eligible"][plain], rows["uses_tensor_cores"][plain]) == (True, False)
    assert np.isnan(rows["shared_bytes"][plain])  # type: ignore[call-overload]


def test_groups_add_up(two_hosts: Session) -> None:
    payload = TOOL.run(two_hosts, None, {})
    total_ps = sum(table(payload, "kernels")["total_ps"])  # type: ignore[arg-type]
    for name in ("by_kernel", "by_op", "by_library"):
        groups = table(payload, name)
        assert sum(groups["total_ps"]) == total_ps  # type: ignore[arg-type]
        assert sum(groups["n_variants"]) == payload.tables["kernels"].n_rows  # type: ignore[arg-type]
        assert groups["total_ps"] == sorted(groups["total_ps"], reverse=True)  # type: ignore[type-var]
    eigen = table(payload, "by_kernel")
    row = eigen["kernel"].index("void Eigen::internal::EigenMetaKernel<float>(int)")
    assert (eigen["n_variants"][row], eigen["min_ps"][row], eigen["max_ps"][row]) == (2, 3 * US, 12 * US)
    libraries = table(payload, "by_library")
    assert (
        dict(zip(libraries["library"], libraries["tensor_core_fraction"], strict=True))["TensorFlow / Eigen"]
        == 0
    )
    assert set(libraries["library"]) == {"cuBLAS", "TensorFlow / Eigen", "Triton"}
    assert "(no operation)" in table(payload, "by_op")["op"]


def test_pies_have_ten_slices_and_the_rest() -> None:
    events = [
        DrawnEvent(f"k{i}", i * 100 * PS, (i + 1) * PS, {"kernel_details": "regs:1"}) for i in range(13)
    ]
    pie = TOOL.run(session_of(build([DrawnPlane("/device:GPU:0", {"Stream #1": events})])), None, {}).tables[
        "top_kernels"
    ]
    assert (pie.n_rows, pie.note) == (11, "3 more in Other")
    assert cells(pie.columns[1])[-1] == (1 + 2 + 3) * PS


@pytest.mark.parametrize(
    ("hardware", "software", "title"),
    [
        (Hardware("GPU", "Nvidia H200", 1), Software(), "On tensor cores"),
        (Hardware("GPU", "AMD GPU", 1), Software(), "On matrix cores"),
        (Hardware("GPU", "GPU", 1, model="MI300X"), Software(), "On matrix cores"),
        (Hardware("GPU", "GPU", 1, model="H100 MI"), Software(), "On tensor cores"),
        (Hardware("GPU", "GPU", 1), Software(is_amd=True), "On matrix cores"),
    ],
)
def test_units_are_called_as_by_their_vendor(
    hardware: Hardware, software: Software, title: str, two_hosts: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of three hosts suffices."""
    other = Hardware("GPU", "GPU", 1)
    units = page_view._matrix_units([other, hardware, other], [Software(), software, Software()])
    assert f"On {units}" == title
    monkeypatch.setattr(page_view, "_matrix_units", lambda devices, programs: units)
    columns = TOOL.run(two_hosts, None, {}).tables["by_op"].columns
    assert title in [column.title for column in columns]


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_long_tables_say_what_they_leave_out(
    n_rows: int, two_hosts: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are three libraries."""
    monkeypatch.setattr(page_view, "N_ROWS", n_rows)
    tables = TOOL.run(two_hosts, None, {}).tables
    n_kernels = len({kernel.name for kernel in KERNELS})
    assert tables["by_library"].note == ("the first 2 of 3" if n_rows == 2 else "")
    assert tables["by_library"].n_rows == min(n_rows, 3)
    assert tables["by_kernel"].note == f"the first {n_rows} of {n_kernels}"
    assert tables["kernels"].n_rows == n_rows


def test_verdict_names_the_first_kernel_and_leads_to_its_longest_launch(two_hosts: Session) -> None:
    verdict = TOOL.run(two_hosts, ["host-0"], {}).verdict
    assert verdict
    assert verdict.text.startswith("`triton_poi_fused_add_0` takes the most time: 420 µs, 41.9%")
    # Its twentieth launch lasts 40 µs; before it 15 launches of other kernels (582 µs) and 19 of its own (380
    # µs), with pauses of 1 µs.
    start = 582 + 15 + 380 + 19
    assert verdict.next[0].params == {
        "hosts": "host-0",
        "start_ps": str((start - 40) * US),
        "end_ps": str((start + 80) * US),
    }


def warnings_of(tmp_path: Path, *kernels: Kernel) -> tuple[str, ...]:
    verdict = TOOL.run(
        Session(str(write_run(tmp_path / "run", {"h": kernels_xspace(kernels)})), cache=False), None, {}
    ).verdict
    assert verdict
    return verdict.details


def test_idle_tensor_cores_are_named(tmp_path: Path) -> None:
    idle = warnings_of(
        tmp_path, Kernel("volta_sgemm_128x64_tn", "dense/MatMul:MatMul"), Kernel("add", "x/Add:AddV2")
    )
    assert len(idle) == 1
    assert "50.0% of the time" in idle[0]
    assert "`dense/MatMul`" in idle[0]
    # A transposition before a product that does use them is no product without them.
    assert (
        warnings_of(
            tmp_path,
            Kernel("transpose", "dense/MatMul:MatMul"),
            Kernel("volta_h884gemm", "dense/MatMul:MatMul"),
        )
        == ()
    )


def test_a_kernel_that_uses_tensor_cores_could_whatever_its_operation(tmp_path: Path) -> None:
    """As in a command buffer, whose kernels' operations are unknown."""
    kernels = [Kernel("volta_h884gemm"), Kernel("add", "x/Add:AddV2")]
    payload = TOOL.run(
        Session(str(write_run(tmp_path / "run", {"h": kernels_xspace(kernels)})), cache=False), None, {}
    )
    rows = table(payload, "kernels")
    assert dict(zip(rows["kernel"], rows["is_tensor_core_eligible"], strict=True)) == {
        "volta_h884gemm": True,
        "add": False,
    }
    assert payload.scalars["tensor_core_fraction"].note == "eligible operations take 50.0%"


def test_many_short_kernels_are_named(tmp_path: Path) -> None:
    many = [Kernel(f"k{i}", "x/Add:AddV2", duration_us=1, n=1) for i in range(120)]
    assert "100% of 120 launches last less than 5 µs" in warnings_of(tmp_path, *many)[0]
    assert warnings_of(tmp_path, *many[:50]) == ()


def test_without_a_gpu_it_says_why() -> None:
    session = session_of(drawing("main [x ]"))
    assert "no GPU" in TOOL.available(session).reason
    assert TOOL.available(session).remedy
    with pytest.raises(ToolUnavailable):
        TOOL.run(session, None, {})


def test_a_gpu_without_kernels_says_so() -> None:
    stats: dict[str, Stats] = {"MemcpyH2D": {"memcpy_details": "size:1"}}
    session = session_of(drawing("/device:GPU:0:\nStream #1 [MemcpyH2D ]", stats))
    assert TOOL.available(session)
    payload = TOOL.run(session, None, {})
    assert payload.tables["kernels"].n_rows == 0
    assert "no kernel" in payload.diagnostics[0].message
    assert payload.verdict is None


def test_pytorch_s_kernels_fill_it(tmp_path: Path) -> None:
    """With its operators, its estimate of the occupancy, and ours where Kineto says 0 as it does not know of
    more shared memory.
    """
    host, gpu = {"pid": 100, "tid": 100}, {"pid": 0, "tid": 7}

    def kernel(number: int, name: str, **details: object) -> list[dict[str, object]]:
        start_us = 100 * number
        ids = {"External id": number, "correlation": number}
        launch = {
            "registers per thread": 168,
            "grid": [132, 1, 1],
            "block": [384, 1, 1],
            "device": 0,
            **details,
        }
        return [
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": "aten::mm",
                "ts": start_us,
                "dur": 20,
                **host,
                "args": {"External id": number},
            },
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "ts": start_us + 5,
                "dur": 5,
                **host,
                "args": ids,
            },
            {
                "ph": "X",
                "cat": "kernel",
                "name": name,
                "ts": start_us + 30,
                "dur": 10 * number,
                **gpu,
                "args": {**ids, **launch},
            },
        ]

    product = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
    reported, not_reported = (
        {"shared memory": 0, "est. achieved occupancy %": 19},
        {"shared memory": 231424, "est. achieved occupancy %": 0},
    )
    events = [*kernel(1, "my_kernel", **reported), *kernel(2, product, **not_reported)]
    devices = [
        {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    ]
    run = tmp_path / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    (run / "host.pt.trace.json").write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
    rows = table(TOOL.run(Session(str(run), cache=False), None, {}), "kernels")
    assert (rows["kernel"], rows["op"], rows["library"]) == (
        [product, "my_kernel"],
        ["aten::mm"] * 2,
        ["cuBLAS", "Other"],
    )
    assert (rows["uses_tensor_cores"], rows["is_tensor_core_eligible"]) == ([True, False], [True, True])
    assert rows["occupancy_fraction"] == pytest.approx([384 / 2048, 0.19])
    assert rows["is_occupancy_computed"] == [True, False]
    assert (rows["total_ps"], rows["shared_bytes"], rows["block"]) == (
        [20_000_000, 10_000_000],
        [231424, 0],
        ["384,1,1"] * 2,
    )
