"""Pies: times by name, the largest ten and the rest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.ops.hlo_record import Words
from tb_tpuprof.analysis.ops.metrics import sum_by
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Filled, TableSpec, Texts, number, text

N_SLICES = 10


def shares_spec(name: str, title: str, *, is_optional: bool = False) -> TableSpec:
    """A table of self times by name."""
    columns = (
        text("name", "Name", "What the slice stands for"),
        number(
            "self_time_ps", "Self time", "ps", "Self time of its operations, without operations nested inside"
        ),
        number(
            "fraction",
            "Share",
            "fraction",
            "Self time as a share of all slices",
            formula="self time ÷ Σ self time",
        ),
    )
    sentence = f"Self time: at most {N_SLICES} slices, and `Other`"
    return TableSpec(
        name,
        title,
        columns,
        sentence,
        is_optional,
        "donut",
        f"Self time of the {N_SLICES} largest, and of the rest as Other",
    )


def shares_table(
    spec: TableSpec, names: Words, time_ps: npt.NDArray[np.int64], none: str = "(none)"
) -> Table:
    """Time by name. `none`: the label of the empty name."""
    totals = sum_by(names.codes, time_ps, len(names.strings)) if len(names) else np.zeros(0, np.int64)
    nonzero = np.flatnonzero(totals > 0)
    least = np.partition(totals[nonzero], -N_SLICES)[-N_SLICES] if len(nonzero) > N_SLICES else 0
    largest = sorted(
        nonzero[totals[nonzero] >= least].tolist(), key=lambda i: (-int(totals[i]), names.strings[i])
    )[:N_SLICES]
    slices = [(names.strings[i] or none, int(totals[i])) for i in largest]
    rest = int(totals[nonzero].sum()) - sum(time for _, time in slices)
    if rest:
        slices.append(("Other", rest))
    times = np.array([time for _, time in slices], np.int64)
    columns: Filled = {
        "name": [name for name, _ in slices],
        "self_time_ps": times,
        "fraction": times / (int(times.sum()) or 1),
    }
    return spec.fill(columns, f"{len(nonzero) - N_SLICES:,} more in Other" if rest else "")


def known_texts(words: Words) -> Texts:
    """A column of words; empty ones are unknown. Strings of rows that are not shown are left out."""
    words = words.used()
    empty = words.is_in(("",))
    return Texts(np.where(empty, -1, words.codes).astype(np.int32), words.strings)
