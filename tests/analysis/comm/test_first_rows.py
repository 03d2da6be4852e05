"""The first instruction of a program and the first of a file count like all others: 0 is a row."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tb_tpuprof.analysis.comm.tpu import _copied_bytes
from tb_tpuprof.analysis.dcn.ops import RENDEZVOUS, TRANSFER_TYPE, _op
from tb_tpuprof.analysis.inference.requests import has_requests
from tb_tpuprof.errors import TraceFormatError
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo import HloModule
from tests.builders import DrawnPlane, build, event
from tests.ingest.chrome_files import opened
from tests.ingest.hlo_protos import TUPLE, array, computation, instruction, proto
from tests.kineto_jobs import HOST, x

_FRONTEND = [{1: RENDEZVOUS, 2: "all-reduce.1"}, {1: TRANSFER_TYPE, 2: "ALL_REDUCE"}]


def trace_with(module: HloModule | None) -> Any:
    """A trace of this program alone; without it the program is damaged."""

    def read(program: int) -> HloModule | None:
        if module is None:
            raise TraceFormatError("f", 0, "is damaged")
        return module if program == 7 else None

    return SimpleNamespace(programs=SimpleNamespace(module=read))


def program(*instructions: dict[int, Any]) -> HloModule:
    module = decode_hlo(proto([computation(1, "main", [*instructions], 99)]), "f", 7)
    assert module.find(str(instructions[0][1])) == 0
    return module


def test_bytes_of_the_first_copy() -> None:
    """The largest array of its start: of 30, 70 and 50 values."""
    shape = {2: TUPLE, 4: [array(30), array(70), array(50)]}
    trace = trace_with(
        program(
            instruction(2, "copy-start", shape, [1]),
            instruction(1, "parameter", array(7)),
            instruction(99, "tuple", {2: TUPLE, 4: []}, []),
        )
    )
    assert _copied_bytes(trace, 7, "copy-start.2") == 280
    assert _copied_bytes(trace, 7, "parameter.1") == 28
    assert _copied_bytes(trace, 7, "tuple.99") == 0
    assert _copied_bytes(trace, 7, "copy-start.3") == 0
    assert _copied_bytes(trace, 8, "copy-start.2") == 0
    assert _copied_bytes(trace_with(None), 7, "copy-start.2") == 0


@pytest.mark.parametrize("opcode", ["send", "recv"])
def test_the_first_half_of_a_transfer(opcode: str) -> None:
    """A done has the rendezvous of the half that it ends, which may be the first instruction."""
    trace = trace_with(
        program(
            instruction(1, opcode, array(30), [], f26=3, f47=1, f68={1: _FRONTEND}),
            instruction(2, f"{opcode}-done", array(50), [1], f26=3, f47=1),
            instruction(3, "add", array(50), [2, 2]),
            instruction(4, f"{opcode}-done", array(9), [3], f26=3, f47=1),
        )
    )
    half, done = _op(trace, 7, f"{opcode}.1"), _op(trace, 7, f"{opcode}-done.2")
    assert half is not None
    assert done is not None
    assert (half.rendezvous, half.transfer_type, half.size_bytes) == ("all-reduce.1", "ALL_REDUCE", 120)
    assert (done.rendezvous, done.transfer_type, done.size_bytes) == ("all-reduce.1", "ALL_REDUCE", 200)
    for name in ("add.3", f"{opcode}-done.4", f"{opcode}.5"):
        assert _op(trace, 7, name) is None
    assert _op(trace, 8, f"{opcode}.1") is None
    assert _op(trace_with(None), 7, f"{opcode}.1") is None


def test_one_request_suffices() -> None:
    for n in (0, 1, 2):
        predictions = [event("predict", 20 * i, 10) for i in range(n)]
        host = DrawnPlane("/host:CPU", {"main": [*predictions, event("other", 90, 5)]})
        assert has_requests(build([host])) == (n > 0)


def test_operators_without_inputs_have_none(tmp_path: Path) -> None:
    trace = opened(tmp_path, [x("cpu_op", f"aten::op{i}", 10 * i, 5, HOST) for i in range(3)])
    texts = trace.event_stats.texts("op_inputs")
    assert (len(texts.owner), len(texts.value)) == (0, 0)
