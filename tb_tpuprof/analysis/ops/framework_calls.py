"""Framework calls that advice can cite: waits for the device, launches, loaders, eager operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.events.metadata_names import metadata_names
from tb_tpuprof.analysis.events.stat_rows import events_of
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace

SYNC, LAUNCH, LOADER, WORKERS, EAGER, GRAPH, COMPILED = (
    "sync",
    "launch",
    "loader",
    "workers",
    "eager",
    "graph",
    "compiled",
)
_PATTERNS = (
    (SYNC, r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize|aten::(?:item|_local_scalar_dense)"),
    (SYNC, r"np\.asarray\(jax\.Array\)|\$\S+\.py:\d+ block_until_ready"),
    (LAUNCH, r"(?:cuda|cu|hip)(?:Ext)?(?:Module)?LaunchKernel(?:ExC?)?"),
    (LOADER, r"enumerate\(DataLoader\)#_SingleProcess\S*"),
    (WORKERS, r"enumerate\(DataLoader\)#_MultiProcess\S*"),
    (EAGER, r"EagerExecute"),
    (GRAPH, r"(?:cuda|cu|hip)GraphLaunch"),
    (COMPILED, r"Torch-Compiled Region.*|CompiledFunction\w*|## Call CompiledFxGraph.*"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)
_ANY = re.compile("|".join(f"(?:{pattern})" for _, pattern in _PATTERNS))


@dataclass(frozen=True)
class Call:
    """All calls of one name within the steps, or in the whole capture if there are none: their number and
    total time in ps.
    """

    kind: str
    name: str
    n: int
    time_ps: int


@once
def framework_calls(trace: Trace) -> tuple[Call, ...]:
    """The calls of one host that match one of the patterns, longest total time first."""
    name = trace.metadata["name"].astype(np.int64)
    kinds: dict[int, str] = {}
    for text_id, text in zip(name.tolist(), metadata_names(trace), strict=True):
        if text_id not in kinds and _ANY.fullmatch(text):
            kinds[text_id] = next(kind for kind, pattern in _COMPILED if pattern.fullmatch(text))
    if not kinds:
        return ()
    is_call = np.isin(name, list(kinds))
    rows = events_of(trace, is_call)
    host_steps = steps(trace)
    if len(host_steps):  # the profiler's own calls come before and after them
        start = trace.events["start_ps"][rows]
        last = int((host_steps.start_ps + host_steps.duration_ps).max())
        rows = rows[(start >= host_steps.start_ps.min()) & (start < last)]
    metadata = trace.events["metadata"][rows].astype(np.int64)
    count, time = (
        np.bincount(metadata, minlength=len(name)),
        sum_by(metadata, trace.events["duration_ps"][rows], len(name)),
    )
    calls = (
        Call(kinds[int(name[i])], trace.strings.get(int(name[i])), int(count[i]), int(time[i]))
        for i in np.flatnonzero(count).tolist()
    )
    return sum_calls([tuple(calls)])


def sum_calls(parts: Sequence[Iterable[Call]]) -> tuple[Call, ...]:
    """Calls of several hosts by name, longest total time first."""
    total: dict[tuple[str, str], tuple[int, int]] = {}
    for call in (call for part in parts for call in part):
        n, time = total.get((call.kind, call.name), (0, 0))
        total[call.kind, call.name] = n + call.n, time + call.time_ps
    calls = [Call(kind, name, n, time) for (kind, name), (n, time) in total.items()]
    return tuple(sorted(calls, key=lambda call: (-call.time_ps, call.name)))
