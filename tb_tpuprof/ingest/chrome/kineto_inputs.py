"""What Kineto records of operators' inputs (`record_shapes=True`) and callers → stats of the operators.

    "Input Dims" [[8, 4], [4, 2]], "Input type" ["float", "float"], "Concrete Inputs" ["", ""]
        → op_inputs: the three JSON texts, one per line
    "Call stack" model.py(12): forward;train.py(40): main
        → call_stack: as recorded (PyTorch 1.8 to 1.11)

PyTorch 1.8 writes `Input dims`; `Concrete Inputs` are recorded since 2.0. Texts that the file lacks are
empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.chrome.events import RawEvents
from tb_tpuprof.ingest.chrome.slices import Slices, hash_rows
from tb_tpuprof.trace import schema

Int64s = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
InputColumns = tuple[str, Array, int, Int64s]
_TEXTS = (("Input Dims", "Input dims"), ("Input type",), ("Concrete Inputs",))


def input_columns(raw: RawEvents, slices: Slices, operators: Array) -> list[InputColumns]:
    """(name, owners, kind, values) of the stats `op_inputs` and `call_stack` of the operators (slices,
    ascending) that have them.
    """
    events = slices.raw[operators]
    texts = [_first_text(raw, names)[events] for names in _TEXTS]
    has_inputs = texts[0] >= 0
    rows, parts = operators[has_inputs], [column[has_inputs] for column in texts]
    stack = _first_text(raw, ("Call stack",))[events]
    has_stack = stack >= 0
    return [
        ("op_inputs", rows, schema.TEXT, _joined(raw, parts)),
        ("call_stack", operators[has_stack], schema.TEXT, stack[has_stack]),
    ]


def _first_text(raw: RawEvents, names: tuple[str, ...]) -> Int64s:
    """The text of each raw event under the first of the names that it has, -1 for none."""
    result = np.full(len(raw), -1, np.int64)
    for name in reversed(names):
        event, kind, value = raw.argument(name)
        is_text = kind == schema.TEXT
        result[event[is_text]] = value[is_text]
    return result


def _joined(raw: RawEvents, parts: list[Int64s]) -> Int64s:
    """The id of the lines of each row's texts."""
    if not len(parts[0]):
        return np.empty(0, np.int64)
    _, first, inverse = np.unique(hash_rows(*parts), return_index=True, return_inverse=True)
    ids = [raw.texts.add("\n".join(_line(raw, part[i]) for part in parts)) for i in first.tolist()]
    return np.array(ids, np.int64)[inverse.reshape(-1)]


def _line(raw: RawEvents, text: np.int64) -> str:
    """A text on one line: files may be indented."""
    return " ".join(raw.texts.get(int(text)).split())
