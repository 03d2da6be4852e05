"""Pieces of steps as rows that a test can write down."""

from __future__ import annotations

from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.pieces import Pieces
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS

Row = tuple[int, int, int, str, str, str, str]  # step, start, end, class, thread's class, its name, event


def rows_of(trace: Trace, pieces: Pieces) -> list[Row]:
    def name(metadata: int) -> str:
        return trace.strings[trace.metadata["name"][metadata]] if metadata >= 0 else ""

    columns = (
        pieces.step,
        pieces.start // PS,
        pieces.end // PS,
        pieces.klass,
        pieces.thread_class,
        pieces.named,
        pieces.event,
    )
    return sorted(
        (
            step,
            start,
            end,
            TimeClass(klass).name,
            TimeClass(of_thread).name,
            name(named),
            name(trace.events["metadata"][row]),
        )
        for step, start, end, klass, of_thread, named, row in zip(
            *(column.tolist() for column in columns), strict=True
        )
    )
