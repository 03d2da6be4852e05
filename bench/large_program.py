"""A synthetic TPU run of one program with many instructions, each run once on each core: what a large language model's step looks like."""

from __future__ import annotations

from pathlib import Path

from tests.ingest.hlo_protos import array, computation, instruction, proto
from tests.synthetic import PlaneWriter, Stat, memory_accesses, write_run

N_INSTRUCTIONS = 200_000
_US = 1_000_000


def large_program(folder: Path, n: int = N_INSTRUCTIONS) -> Path:
    """Write the run: HLO of `n` instructions in the file, an event for each of them on one core."""
    from tb_tpuprof.ingest.xspace_messages import xspace_class

    space = xspace_class()()
    opcodes = ("add", "multiply", "exponential", "copy")
    shape = array(128, 512)
    body = [instruction(1, "parameter", shape, f9=0)]
    body += [
        instruction(i, opcodes[i % 4], shape, [i - 1] * (1 + (i % 4 < 2)), f7={2: f"jit(f)/layer_{i // 1000}/op_{i % 50}"})
        for i in range(2, n + 1)
    ]
    PlaneWriter(space, "/host:metadata").metadata("jit_f(7)", {"Hlo Proto": proto([computation(1, "main", body, n)])})
    plane = PlaneWriter(space, "/device:TPU:0")
    plane.stats(
        plane.plane, {"device_type_string": "TPU v5 lite", "peak_teraflops_per_second": 197.0, "peak_hbm_bw_gigabytes_per_second": 819.0}
    )
    line = plane.line("XLA Ops", 1, 1)
    for i in range(2, n + 1):
        name = f"{opcodes[i % 4]}.{i}"
        stats: dict[str, Stat] = {
            "program_id": 7, "symbol_id": i, "hlo_category": opcodes[i % 4], "tf_op": f"jit(f)/layer_{i // 1000}/op_{i % 50}:",
            "flops": 65_536, "bytes_accessed": 524_288, "memory_access_breakdown": memory_accesses((1, 1, 262_144 + i), (2, 1, 262_144)),
        }  # fmt: skip
        plane.metadata(f"%{name} = f32[128,512] {opcodes[i % 4]}()", stats, name)
        plane.event(line, f"%{name} = f32[128,512] {opcodes[i % 4]}()", i * 2 * _US, _US)
    space.hostnames.append(b"synthetic-tpu")
    return write_run(folder, {"synthetic-tpu": space.SerializeToString()})
