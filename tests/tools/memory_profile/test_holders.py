"""Who allocated what is in use at the peak: the table of modules, and its sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.analysis.memory.events import memory_events
from tb_tpuprof.tools.memory_profile.by_holder import holder_tables, module_sentence
from tb_tpuprof.tools.payload import Table
from tests.analysis.flame.test_module_contents import MARKS
from tests.analysis.flame.test_modules import EVENTS, trace_of

PEAK, END = 5, 12  # rows of the device's marks: after the allocation at 105 µs, and the last one


def modules_at(folder: Path, row: int) -> Table:
    trace = trace_of(folder, [*EVENTS, *MARKS])
    events = memory_events(trace)
    memory = events.memories.index("cuda:0")
    return holder_tables(trace, events, memory, events.of(memory).start + row, "then")["modules"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            PEAK,
            "Of all modules, `Net_0 › Linear_1` had allocated the largest part of it: 56.2%, in the forward "
            "pass.",
        ),
        (END, ""),  # 70 of 767 bytes are little
    ],
)
def test_the_module_with_most_is_named_if_that_is_much(tmp_path: Path, row: int, sentence: str) -> None:
    """2000 of 3557 bytes are in use by Linear_1, 1000 from before the capture."""
    modules = modules_at(tmp_path, row)
    assert module_sentence(modules) == sentence
    shares = next(column.values for column in modules.columns if column.name == "fraction")
    assert np.asarray(shares, np.float64).sum() == pytest.approx(1)
