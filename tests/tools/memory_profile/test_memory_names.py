"""What the memory pages call a device's memory, and which program they open on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.memory_profile.view import TOOL as PROFILE
from tb_tpuprof.tools.memory_viewer.view import TOOL as VIEWER
from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.payload_columns import table
from tests.synthetic import PlaneWriter, TpuJob, tpu_xspace, write_run
from tests.synthetic_devices import MemoryJob, memory_xspace

MIB = 2**20
_TILED = {1: (1, 0), 6: [{1: (8, 128)}]}


def program(size: int, target: str = "", config: bytes = b"", tiled: bool = False) -> bytes:
    """A program that holds one value of `size` bytes."""
    shape = {**array(size // 512, 128), 5: _TILED} if tiled else array(size // 4)
    opcode = "custom-call" if target else "fusion" if config else "add"
    parameter = instruction(
        1, opcode, shape, **({"f28": target} if target else {}), **({"f43": config} if config else {})
    )
    place: dict[int, Any] = {1: 0, 2: size, 3: {4: 1}, 4: 0}
    allocation = {1: 0, 2: size, 9: [{1: 0, 2: 0, 3: size}]}
    heap = {1: [{1: 0, 2: 0, 4: f"{opcode}.1"}], 3: 0}
    return proto([computation(1, "main", [parameter], 1)], buffers={1: [place], 3: [allocation], 4: [heap]})


def programs_only(folder: Path, *programs: bytes) -> Session:
    folder.mkdir()
    for i, data in enumerate(programs):
        (folder / f"jit_p{i}({i + 1}).hlo_proto.pb").write_bytes(data)
    return Session(str(folder), cache=False)


@pytest.mark.parametrize(
    ("data", "told", "device"),
    [
        (
            program(4 * MIB, "__cudnn$convForward"),
            "4.00 MiB of device memory (device unknown)",
            "GPU of unknown model",
        ),
        (
            program(4 * MIB, "__cublas$gemm"),
            "4.00 MiB of device memory (device unknown)",
            "GPU of unknown model",
        ),
        (
            program(4 * MIB, config=b'{"operation_queue_id":"0"}'),
            "4.00 MiB of device memory (device unknown)",
            "GPU of unknown model",
        ),
        (
            program(4 * MIB, config=b'{"outer_dimension_partitions":[]}'),
            "4.00 MiB of main memory (device unknown)",
            "CPU of unknown model",
        ),
        (program(4 * MIB, tiled=True), "4.00 MiB of HBM (device unknown)", "TPU of unknown model"),
        (program(4 * MIB), "4.00 MiB of device memory (device unknown)", "unknown"),
    ],
)
def test_without_a_trace_the_program_tells_its_kind_of_device(
    data: bytes, told: str, device: str, tmp_path: Path
) -> None:
    payload = VIEWER.run(programs_only(tmp_path / "run", data), None, {})
    assert payload.verdict
    assert told in payload.verdict.text
    assert table(payload, "chosen")["device"] == [device]


def test_another_program_of_the_run_may_tell_it(tmp_path: Path) -> None:
    session = programs_only(
        tmp_path / "run", program(4 * MIB), program(MIB, "__cublas$gemm"), program(2 * MIB)
    )
    payload = VIEWER.run(session, None, {"program": "jit_p0"})
    assert table(payload, "chosen")["device"] == ["GPU of unknown model"]


def test_the_page_opens_on_a_program_that_ran(tmp_path: Path) -> None:
    """Of three compiled programs the largest never ran, as JAX's helpers that make the initial values."""
    space = xspace_class()()
    plane = PlaneWriter(space, "/device:TPU:0")
    line = plane.line("XLA Ops", 1, 0)
    for number in (6, 7):
        plane.metadata(
            f"%add.{number} = add()", {"program_id": number, "symbol_id": 1, "hlo_category": "x"}, "add.1"
        )
        plane.event(line, f"%add.{number} = add()", number * MIB, MIB)
    hlo = PlaneWriter(space, "/host:metadata")
    for number, size in ((5, 64 * MIB), (6, 2 * MIB), (7, 8 * MIB)):
        hlo.metadata(f"jit_p{number}({number})", {"Hlo Proto": program(size)})
    session = Session(str(write_run(tmp_path / "run", {"h": space.SerializeToString()})), cache=False)
    payload = VIEWER.run(session, None, {})
    assert table(payload, "chosen")["program"] == ["jit_p7(7)"]
    assert table(VIEWER.run(session, None, {"program": "jit_p5"}), "chosen")["program"] == ["jit_p5(5)"]


def test_the_chip_s_memory_and_the_allocator_s_pool_have_two_names(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"h": tpu_xspace(TpuJob(device="TPU v5 lite"))})
    (run / "jit_p(7).hlo_proto.pb").write_bytes(program(4 * MIB))
    viewer = VIEWER.run(Session(str(run), cache=False), None, {})
    assert viewer.scalars["capacity_bytes"].title == "Chip memory"
    assert viewer.verdict
    assert "of the 16.0 GiB of chip memory" in viewer.verdict.text
    pool = write_run(tmp_path / "pool", {"h": memory_xspace(MemoryJob(is_tpu=True))})
    profile = PROFILE.run(Session(str(pool), cache=False), None, {})
    assert profile.scalars["capacity_bytes"].title == "Allocator's pool"
    assert profile.verdict
    assert "of the allocator's pool" in profile.verdict.text
