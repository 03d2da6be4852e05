"""Recorded inputs and call stacks of operators, and the operator that launched each kernel."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.native import scan
from tb_tpuprof.native.plain import json_events as plain
from tb_tpuprof.trace.trace import Trace
from tests.ingest.chrome_files import opened
from tests.kineto_jobs import HOST, x

STREAM = {"pid": 0, "tid": 7}


def stats(trace: Trace, name: str) -> dict[int, str]:
    """The texts of a stat, by event."""
    sparse = trace.event_stats.texts(name)
    return {
        row: trace.strings.get(int(i)) for row, i in zip(sparse.owner.tolist(), sparse.value, strict=True)
    }


def name_of(trace: Trace, row: int) -> str:
    return trace.strings.get(int(trace.metadata["name"][trace.events["metadata"][row]]))


def by_name(trace: Trace, name: str) -> dict[str, str]:
    return {name_of(trace, row): text for row, text in stats(trace, name).items()}


def op(name: str, ts: float, **args: Any) -> dict[str, Any]:
    return x("cpu_op", name, ts, 5, HOST, **args)


def test_inputs_are_the_three_texts(tmp_path: Path) -> None:
    types = ["float", "c10::Half", "Scalar"]
    listed = [
        op(
            "aten::new",
            0,
            **{"Input Dims": [[8, 4], [], []], "Input type": types, "Concrete Inputs": ["", "", "1"]},
        ),
        op("aten::no_values", 10, **{"Input Dims": [[3]], "Input type": ["int"]}),
        op("aten::old", 20, **{"Input dims": [[2]], "Input type": ["int"]}),
        op("aten::none", 30),
        x("user_annotation", "mine", 40, 5, HOST, **{"Input Dims": [[9]]}),  # not an operator
    ]
    assert by_name(opened(tmp_path, listed), "op_inputs") == {
        "aten::new": '[[8, 4], [], []]\n["float", "c10::Half", "Scalar"]\n["", "", "1"]',
        "aten::no_values": '[[3]]\n["int"]\n',
        "aten::old": '[[2]]\n["int"]\n',
    }


def test_indented_files(tmp_path: Path) -> None:
    listed = [op("aten::mm", 0, **{"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]})]
    trace = opened(tmp_path, json.dumps({"traceEvents": listed}, indent=4))
    shapes, types, values = by_name(trace, "op_inputs")["aten::mm"].split("\n")
    assert (json.loads(shapes), json.loads(types), values) == ([[8, 4], [4, 2]], ["float", "float"], "")


@pytest.mark.parametrize(("size", "is_kept"), [(4096, True), (4097, False)])
def test_arrays_are_kept_up_to_4096_bytes(tmp_path: Path, size: int, is_kept: bool) -> None:
    dims = [[1] * 100 + [10 ** (size - 305)]]
    assert len(json.dumps(dims)) == size
    listed = [op("aten::mm", 0, **{"Input Dims": dims}), op("aten::t", 9, **{"Input Dims": [[1]]})]
    assert ("aten::mm" in by_name(opened(tmp_path, listed), "op_inputs")) is is_kept


def test_both_scanners_keep_the_same_arrays() -> None:
    """The twin has what the compiled scanner has, without the spaces of the file."""
    lists = [[1, "x,y", ["z"], None, 2.5, True], [1] * 3000, []]
    data = json.dumps([op("a", 0, grid=lists[0], wide=lists[1], block=lists[2])], separators=(",", ":"))
    raw = np.frombuffer(data.encode(), np.uint8)
    answers = [scanner(raw, [b"grid", b"wide", b"block"], 1) for scanner in (scan, plain.scan)]
    texts = [
        [answer["blob"].tobytes()[a:b] for a, b in itertools.pairwise(answer["offsets"].tolist())]
        for answer in answers
    ]
    kept = [
        [
            (int(key), text[int(value)])
            for key, value in zip(a["values"]["key"], a["values"]["value"], strict=True)
        ]
        for a, text in zip(answers, texts, strict=True)
    ]
    assert kept[0] == kept[1] == [(0, b'[1,"x,y",["z"],null,2.5,true]'), (2, b"[]")]


def test_kernels_name_the_call_that_launched_them(tmp_path: Path) -> None:
    listed = [
        x("cpu_op", "aten::linear", 0, 20, HOST, **{"Input Dims": [[1]]}),
        x("cpu_op", "aten::addmm", 2, 10, HOST, **{"Input Dims": [[2]]}),
        x("cuda_runtime", "cudaLaunchKernel", 4, 1, HOST, correlation=1),
        x("cuda_runtime", "cudaLaunchKernel", 15, 1, HOST, correlation=2),
        x("cuda_runtime", "cudaLaunchKernel", 40, 1, HOST, correlation=3),
        *(
            x("kernel", name, 50 + 10 * i, 5, STREAM, device=0, stream=7, correlation=i + 1)
            for i, name in enumerate(("gemm", "bias", "stray"))
        ),
        x("gpu_memcpy", "Memcpy DtoD", 90, 5, STREAM, device=0, stream=7, correlation=2),
    ]
    trace = opened(tmp_path, listed)
    launched = trace.event_stats.ints("launched_by")
    pairs = zip(launched.owner.tolist(), launched.value.tolist(), strict=True)
    assert {name_of(trace, row): name_of(trace, call) for row, call in pairs} == {
        "gemm": "aten::addmm",
        "bias": "aten::linear",
        "Memcpy DtoD": "aten::linear",
    }


def test_call_stacks_of_old_files(tmp_path: Path) -> None:
    trace = opened(tmp_path, [op("aten::mm", 0, **{"Call stack": "a.py(3): f;b.py(1): g"}), op("aten::t", 9)])
    assert by_name(trace, "call_stack") == {"aten::mm": "a.py(3): f;b.py(1): g"}
