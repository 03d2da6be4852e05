"""What distinguishes calls of one operation: the sizes of its inputs, or the Python functions that called it.

    aten::mm    8×4, 4×2       3 calls
    aten::mm    16×4, 4×2      1 call

PyTorch's operators have both if they were recorded (`record_shapes`, `with_stack`); a kernel has those of the
operator that launched it. Operations of compiled programs have the shapes of their HLO.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.line_contexts import LineContexts, contexts_of, nearest
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.python_frames import frame_of
from tb_tpuprof.analysis.events.stat_rows import first_ints
from tb_tpuprof.analysis.hlo.work import ProgramCosts
from tb_tpuprof.analysis.ops.metrics import OpMetrics
from tb_tpuprof.analysis.pytorch.ties import backward_ties
from tb_tpuprof.analysis.pytorch.work import shapes_text
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
MAX_FRAMES = 64  # of a stack, the innermost; their callers are cut off
BETWEEN = ";"


@dataclass(frozen=True)
class Details:
    """`code`: for each event of the trace the row of its text in `texts`, -1 for none."""

    code: npt.NDArray[np.int32]
    texts: tuple[str, ...]

    def of(self, codes: Int64s) -> tuple[str, ...]:
        """The texts of some codes, empty for -1."""
        return tuple(self.texts[code] if code >= 0 else "" for code in codes.tolist())


def input_shapes(trace: Trace) -> Details:
    """The sizes of the inputs of PyTorch's operators."""
    return _with_kernels(trace, *_recorded(trace, "op_inputs", shapes_text))


def call_stacks(trace: Trace) -> Details:
    """The Python functions around PyTorch's operators, the innermost first, as `model.py:12 forward`; of
    those of the backward pass, the ones around the forward operator.
    """
    rows = trace.event_stats.texts("tf_op").owner
    rows = np.setdiff1d(rows, trace.event_stats.ints("launched_by").owner)
    if not len(rows):
        return Details(np.full(trace.n_events, -1, np.int32), ())
    if trace.event_stats.has("call_stack"):
        code, texts = _recorded(trace, "call_stack", str)
    else:
        contexts = contexts_of(trace, rows.astype(np.int64))
        row, texts = _numbered(_stacks(trace, contexts))
        code = np.full(trace.n_events, -1, np.int32)
        code[rows] = row[contexts.context]
    return _with_kernels(trace, _with_backward(trace, code, rows), texts)


def _with_backward(
    trace: Trace, code: npt.NDArray[np.int32], rows: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Operators (events) of the backward pass, which no function calls, get the code of the forward operator
    that they are tied to.
    """
    tied, source = backward_ties(trace)
    target = nearest(parents(trace), tied)[rows]
    missing = np.flatnonzero((code[rows] < 0) & (target >= 0))
    code[rows[missing]] = code[source[target[missing]]]
    return code


def _stacks(trace: Trace, contexts: LineContexts) -> list[str]:
    """The Python frames of each context, the innermost first."""
    stacks: list[tuple[str, ...]] = []
    names = trace.metadata["name"][contexts.metadata].tolist()
    for name, above in zip(names, contexts.above.tolist(), strict=True):
        frame = frame_of(trace.strings.get(name))
        outer = stacks[above] if above >= 0 else ()
        stacks.append((f"{frame.place} {frame.function}".strip(), *outer)[:MAX_FRAMES] if frame else outer)
    return [BETWEEN.join(stack) for stack in stacks]


def _recorded(
    trace: Trace, stat: str, text_of: Callable[[str], str]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """The code of each event and the texts, from the texts of a stat."""
    values = trace.event_stats.texts(stat)
    distinct, position = np.unique(values.value.astype(np.int64), return_inverse=True)
    row, texts = _numbered([text_of(trace.strings.get(i)) for i in distinct.tolist()])
    code = np.full(trace.n_events, -1, np.int32)
    code[values.owner] = row[position.reshape(-1)]
    return code, texts


def _numbered(texts: list[str]) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """The code of each text, -1 of empty ones, and the distinct texts."""
    codes: dict[str, int] = {}
    row = [codes.setdefault(text, len(codes)) if text else -1 for text in texts]
    return np.array(row, np.int32), tuple(codes)


def _with_kernels(trace: Trace, code: npt.NDArray[np.int32], texts: tuple[str, ...]) -> Details:
    owner, launched_by = first_ints(trace, "launched_by")
    code[owner] = code[launched_by]
    return Details(code, texts)


def with_hlo_shapes(trace: Trace, ops: OpMetrics) -> OpMetrics:
    """Operations of compiled programs with the shapes of their results and operands as details."""
    if not any(program > 0 for program in ops.program):
        return ops
    costs = ProgramCosts(trace)
    details = []
    for program, name, detail in zip(ops.program, ops.name, ops.details or ("",) * len(ops), strict=True):
        module = costs.module(program) if program > 0 else None
        row = module.find(name) if module is not None else -1
        details.append(_shapes(module, row) if module is not None and row >= 0 else detail)
    return replace(ops, details=tuple(details))


def _shapes(module: HloModule, row: int) -> str:
    operands = [
        module.shape(int(i)).text(False) for i in module.operands[row][:MAX_FRAMES].tolist() if i >= 0
    ]
    return f"({', '.join(operands)}) → {module.shape(row).text(False)}"
