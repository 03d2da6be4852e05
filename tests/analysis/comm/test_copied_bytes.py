"""Bytes of GPUs' copies: as CUPTI states them in an XPlane, and PyTorch in its file."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.comm.activity import CommOp
from tb_tpuprof.analysis.comm.gpu import op_named
from tb_tpuprof.analysis.comm.host import comm_host
from tb_tpuprof.analysis.comm.join import OpTimes, join_comm
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.analysis.kernels.copies import copied_bytes, size_in
from tb_tpuprof.ingest.opening import open_trace
from tb_tpuprof.tools.communication.tables import possible_rates
from tb_tpuprof.tools.trace_viewer.argument_units import shown
from tb_tpuprof.trace.trace import Trace
from tests.builders import DrawnPlane, build, event
from tests.ingest.chrome_files import opened
from tests.kineto_jobs import HOST, x
from tests.plain_protobuf import plain_fields


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("kind_src:pinned kind_dst:device size:4096 dest:0 async:1", 4096),
        ("size:120 dest:1 async:0", 120),
        ("kind:device num_bytes:7 async:1", 7),
        ("oversize:9 dest:0", -1),
        ("size:12x", -1),
        (f"size:{'9' * 30}", -1),
        ("", -1),
    ],
)
def test_sizes_in_cupti_s_texts(text: str, size: int) -> None:
    assert size_in(text) == size


def test_more_bytes_than_any_memory_has_are_unknown() -> None:
    """They would overflow sums."""
    sizes = (2**50 + 1, 2**50, 7)
    stated = copied_bytes(gpu(*sizes))
    assert sorted(stated.tolist())[-4:] == [-1, 7, 10_000_000, 2**50]


def details(size: int) -> dict[str, str]:
    return {"memcpy_details": f"kind_src:pinned kind_dst:device size:{size} dest:0 async:1"}


def gpu(*sizes: int | None) -> Trace:
    """Copies to the device of 2, 3 and 4 µs with these sizes (None: none stated), and one to the host."""
    copies = [
        event("MemcpyH2D", 10 * i, 2 + i, correlation_id=i + 1, **({} if size is None else details(size)))
        for i, size in enumerate(sizes)
    ]
    others = [
        event("MemcpyD2H", 60, 5, correlation_id=8, **details(10_000_000)),
        event("kernel", 70, 5, correlation_id=9, kernel_details="regs:1"),
    ]
    return build([DrawnPlane("/device:GPU:0", {"Stream #7": [*copies, *others]})])


def test_the_page_has_the_mean_of_the_copies_and_their_rate() -> None:
    comm = join_comm([comm_host(gpu(4000, 1000, 400))])
    ops = {one.op.name: one for one in comm.ops}
    assert ops["MemcpyH2D"].op.size_bytes == 1800
    assert ops["MemcpyH2D"].bytes_per_s[0] == pytest.approx(5400 / 9e-6)
    assert ops["MemcpyD2H"].bytes_per_s[0] == pytest.approx(10_000_000 / 5e-6)


def test_one_unknown_size_leaves_the_operation_s_unknown() -> None:
    ops = {one.op.name: one for one in join_comm([comm_host(gpu(4000, None, 400))]).ops}
    assert ops["MemcpyH2D"].op.size_bytes == 0
    assert ops["MemcpyH2D"].bytes_per_s == (None, None)
    assert ops["MemcpyD2H"].op.size_bytes == 10_000_000


def test_sizes_of_pytorch_s_copies(tmp_path: Path) -> None:
    listed = [x("user_annotation", "ProfilerStep#1", 0, 100, HOST)]
    stream = {"pid": 0, "tid": 7}
    for i, (cat, name, size) in enumerate(
        (
            ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 4096),
            ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 12),
            ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 1 << 40),
            ("gpu_memset", "Memset (Device)", 555),
        )
    ):
        listed.append(x("cuda_runtime", "cudaMemcpyAsync", 10 * i, 1, HOST, correlation=i + 1))
        more = {"bytes": size, "memory bandwidth (GB/s)": 1.5, "correlation": i + 1}
        listed.append(x(cat, name, 10 * i + 5, 2, stream, device=0, stream=7, **more))
    trace = opened(tmp_path, {"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": listed})
    sizes = copied_bytes(trace)
    names = [trace.strings.get(int(trace.event_names[row])) for row in trace.events["metadata"]]
    assert {name: size for name, size in zip(names, sizes.tolist(), strict=True) if size >= 0} == {
        "Memcpy HtoD (Pinned -> Device)": 4096,
        "Memcpy DtoH (Device -> Pageable)": 12,
        "Memcpy DtoD (Device -> Device)": 1 << 40,
    }


def test_the_details_of_an_event_show_the_size() -> None:
    assert shown("memcpy_details", details(4096)["memcpy_details"]) == "4.00 KiB"
    assert shown("memcpy_details", "dest:0") == ""


def plain_copies(data: bytes) -> dict[str, list[int]]:
    """The sizes of the copies of an XSpace's GPUs by name, read field by field."""
    found: dict[str, list[int]] = {}
    for number, plane in plain_fields(data):
        fields = list(plain_fields(plane)) if number == 1 else []
        names = [value.decode() for key, value in fields if key == 2]
        if not names or not names[0].startswith("/device:GPU:"):
            continue
        events, stats = ({}, {})
        for key, table in ((4, events), (5, stats)):
            for listed in (dict(plain_fields(value)) for field, value in fields if field == key):
                table[listed[1]] = dict(plain_fields(listed[2])).get(2, b"").decode()
        lines = [value for key, value in fields if key == 3]
        for entry in (value for line in lines for key, value in plain_fields(line) if key == 4):
            parts = list(plain_fields(entry))
            for stat in (dict(plain_fields(value)) for key, value in parts if key == 4):
                if stats[stat[1]] == "memcpy_details":
                    text = stats[stat[7]] if 7 in stat else stat[5].decode()
                    size = int(text.split("size:")[1].split()[0])
                    found.setdefault(events[dict(parts)[1]], []).append(size)
    return found


FILES = [
    *(Path(__file__).parents[2] / "data" / "gpu").glob("jax_slow*.xplane.pb.gz"),
    *Path(os.environ.get("TPUPROF_CORPUS", "none")).glob("xprof_gpu_multi_worker/**/*.xplane.pb"),
]


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_sizes_are_those_of_a_plain_reading(path: Path) -> None:
    raw = path.read_bytes()
    plain = plain_copies(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    trace = open_trace(str(path))
    sizes = copied_bytes(trace)
    ours: dict[str, list[int]] = {}
    of_gpus = np.isin(trace.lines["plane"][trace.event_line], planes(trace).gpus)  # launches state it, too
    for row in np.flatnonzero((sizes >= 0) & of_gpus).tolist():
        name = trace.strings.get(int(trace.event_names[trace.events["metadata"][row]]))
        ours.setdefault(name, []).append(int(sizes[row]))
    assert {name: sorted(values) for name, values in ours.items()} == {
        name: sorted(values) for name, values in plain.items()
    }
    assert sum(map(len, plain.values())) > 0


@pytest.mark.parametrize(
    ("name", "hbm", "is_known"),
    [  # 1800 bytes in 3 µs are 600 MB/s, which a copy within the device reads and writes
        ("MemcpyD2D", 1.20e9, True),
        ("MemcpyD2D", 1.15e9, True),  # within 5% of the peak
        ("MemcpyD2D", 1.14e9, False),
        ("MemcpyD2D", 0.0, True),
        ("MemcpyH2D", 1e6, True),
    ],
)
def test_copies_within_a_device_are_no_faster_than_its_memory(name: str, hbm: float, is_known: bool) -> None:
    op = CommOp(name, "copy", op_named(name).traffic, size_bytes=1800)
    one = OpTimes(op, 0.0, 3e6, 3e6, 1.0, (0, 0, 1), None)
    rates = possible_rates(one, hbm)
    assert rates == ((pytest.approx(600e6),) * 2 if is_known else (None, None))
