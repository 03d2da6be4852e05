"""TPU pods drawn by hand: what each core does in a step, in µs, the same in each of the steps.

drawn_pod([["compute:0-300 send.3:300-310", "…"], ["…"]], OPS, program)     hosts → cores → what runs from
when to when
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.synthetic import PS_PER_US, PlaneWriter, Stat, core_details, field

PROGRAM = 7
N_STEPS = 6
_RUN = re.compile(r"(\S+):(\d+)-(\d+)")


def drawn_pod(
    hosts: Sequence[Sequence[str]],
    ops: Mapping[str, str],
    program: bytes = b"",
    step_us: int = 1000,
    first_core: int = 0,
    has_steps: bool = True,
) -> dict[str, bytes]:
    """Files by host. `ops`: categories by name. The cores' ids in the pod begin at `first_core`; two sit on a
    chip.

    Without `has_steps` the same runs are not marked as steps.
    """
    result, core = {}, first_core
    for number, cores in enumerate(hosts):
        space = xspace_class()()
        for local, text in enumerate(cores):
            plane = PlaneWriter(space, f"/device:TPU:{local}")
            details = (
                core_details(local, local // 2) + field(5, core // 2) + field(6, core)
            )  # the last of several counts
            plane.stats(plane.plane, {"device_type_string": "TPU v3", "core_details": details})
            _core(plane, text, ops, step_us, has_steps)
            core += 1
        if program:
            PlaneWriter(space, "/host:metadata").metadata(f"jit_train({PROGRAM})", {"Hlo Proto": program})
        space.hostnames.append(f"h{number}".encode())
        result[f"h{number}"] = bytes(space.SerializeToString())
    return result


def _core(plane: PlaneWriter, text: str, ops: Mapping[str, str], step_us: int, has_steps: bool) -> None:
    for symbol, (name, category) in enumerate(ops.items(), 1):
        stats: dict[str, Stat] = {"program_id": PROGRAM, "symbol_id": symbol, "hlo_category": category}
        plane.metadata(f"%{name} = {category}()", stats, name)
    steps, line = (plane.line(name, i + 1, 1_000_000) for i, name in enumerate(("Steps", "XLA Ops")))
    for step in range(N_STEPS):
        if has_steps:
            plane.event(steps, str(step), step * step_us * PS_PER_US, step_us * PS_PER_US)
        for name, begin, end in _RUN.findall(text):
            start = (step * step_us + int(begin)) * PS_PER_US
            plane.event(line, f"%{name} = {ops[name]}()", start, (int(end) - int(begin)) * PS_PER_US)
