"""PyTorch's data loader in the steps that pages show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.steps.pytorch import LoaderWait, Windows, loader_wait_in, windows
from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.trace.trace import Trace
from tb_tpuprof.units import format_fraction, format_time


@once
def loader_wait(trace: Trace) -> LoaderWait | None:
    """How long the steps that pages show fetch batches, all of them together; None where no fetch was traced
    in them.
    """
    found = windows(trace)
    shown = np.flatnonzero(np.isin(found.group, steps(trace).number))
    return loader_wait_in(
        trace, Windows(found.row[shown], found.group[shown], found.start[shown], found.end[shown])
    )


def loader_sentence(found: Sequence[LoaderWait | None], hosts: Sequence[str]) -> str:
    """What fetching batches takes of the steps of the host that fetches longest, by name; empty where none
    fetches.
    """
    known = [(wait, host) for wait, host in zip(found, hosts, strict=True) if wait]
    if not known:
        return ""
    waits, host = max(known, key=lambda pair: pair[0].fraction)
    where = f"{host}: " if len(hosts) > 1 else ""
    marked = f"each of the {waits.n_steps:,} marked steps" if waits.n_steps > 1 else "the marked step"
    took = f"{format_time(waits.total_ps / waits.n_steps)} ({format_fraction(waits.fraction)}) of {marked}"
    share = waits.hidden_ps / waits.total_ps
    hidden = f", {format_fraction(share)} of it while kernels run" if share >= 0.01 else ""
    how = " It makes batches in the training process (num_workers=0)." if waits.is_in_process else ""
    return f"{where}`{waits.name}` takes {took}{hidden}.{how}"
