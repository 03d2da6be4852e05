"""Pies: times by name, the largest ten and the rest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.ops.hlo_record import Words
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.tools.columns import text_column
from tb_tpuprof.tools.payload import Column, Table

N_SLICES = 10


def shares_table(title: str, names: Words, time_ps: npt.NDArray[np.int64], none: str = "(none)") -> Table:
    """`name`, `self_time_ps`, `fraction`: at most 10 slices and `Other`."""
    totals = sum_by(names.codes, time_ps, len(names.strings)) if len(names) else np.zeros(0, np.int64)
    taken = np.flatnonzero(totals > 0)
    least = np.partition(totals[taken], -N_SLICES)[-N_SLICES] if len(taken) > N_SLICES else 0
    largest = sorted(
        taken[totals[taken] >= least].tolist(), key=lambda i: (-int(totals[i]), names.strings[i])
    )[:N_SLICES]
    slices = [(names.strings[i] or none, int(totals[i])) for i in largest]
    rest = int(totals[taken].sum()) - sum(time for _, time in slices)
    if rest:
        slices.append(("Other", rest))
    times = np.array([time for _, time in slices], np.int64)
    columns = {
        "name": [name for name, _ in slices],
        "self_time_ps": times,
        "fraction": times / (int(times.sum()) or 1),
    }
    return SHARES.fill(columns, f"{len(taken) - N_SLICES:,} more in Other" if rest else "", title=title)
