"""PyTorch's data loader in the displayed steps."""

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
    """Total time that the displayed steps spend fetching batches; None if no fetch was traced in them."""
    markers = windows(trace)
    shown = np.flatnonzero(np.isin(markers.group, steps(trace).number))
    return loader_wait_in(
        trace, Windows(markers.row[shown], markers.group[shown], markers.start[shown], markers.end[shown])
    )


def loader_sentence(waits: Sequence[LoaderWait | None], hosts: Sequence[str], headline: str = "") -> str:
    """The time and share of fetching batches in the steps of the host that fetches longest, by name; empty if
    no host fetches, or if the headline names the loader and its time already.
    """
    fetching = [(wait, host) for wait, host in zip(waits, hosts, strict=True) if wait]
    if not fetching:
        return ""
    longest, host = max(fetching, key=lambda pair: pair[0].fraction)
    where = f"`{host}`: " if len(hosts) > 1 else ""
    marked = f"each of the {longest.n_steps:,} marked steps" if longest.n_steps > 1 else "the marked step"
    each = format_time(longest.total_ps / longest.n_steps)
    took = f"{each} ({format_fraction(longest.fraction)}) of {marked}"
    share = longest.hidden_ps / longest.total_ps
    hidden = f", {format_fraction(share)} of it while kernels run" if share >= 0.01 else ""
    how = " It loads batches in the training process (num_workers=0)." if longest.is_in_process else ""
    is_stated = f" {each} " in headline and f"`{longest.name}`" in headline
    return "" if is_stated and not (hidden or how) else f"{where}`{longest.name}` takes {took}{hidden}.{how}"
