"""Evidence about the steps of random loops, compared with loops over all events."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from tb_tpuprof.analysis.diagnosis.pools import pools
from tb_tpuprof.analysis.diagnosis.rare_functions import rare_functions
from tb_tpuprof.analysis.diagnosis.step_calls import step_calls
from tb_tpuprof.analysis.diagnosis.unrecorded import gaps, short_gaps
from tb_tpuprof.analysis.diagnosis.warming import warming
from tb_tpuprof.analysis.steps.classes import TimeClass
from tb_tpuprof.analysis.steps.steps import step_pieces, steps
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, build
from tests.plain import plain_threads as plain
from tests.plain.random_threads import random_loop

SEEDS = range(12)
EACH = 12
USERS = ("$mine.py:40 update", "$shop.py:7 report")


@cache
def loops(seed: int) -> list[tuple[Trace, list[plain.Event], list[plain.Span]]]:
    """Random traces, their events, and the spans of their steps."""
    rng, result = random.Random(f"loops {seed}"), []
    while len(result) < EACH:
        trace = build(random_loop(rng))
        shown = steps(trace)
        ends = (shown.start_ps + shown.duration_ps).tolist()
        if len(shown):
            spans = list(zip(shown.start_ps.tolist(), ends, strict=True))
            result.append((trace, plain.events_of(trace), spans))
    return result


@pytest.mark.parametrize("seed", SEEDS)
def test_calls_of_each_step(seed: int) -> None:
    for trace, events, spans in loops(seed):
        made = step_calls(trace)
        expected = plain.calls(events, spans)
        assert {(one.kind, one.name): one.per_step.tolist() for one in made.all} == expected
        means = [(-one.per_step.sum() / len(spans), one.name) for one in made.all]
        assert means == sorted(means)


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_of_pools(seed: int) -> None:
    for trace, events, spans in loops(seed):
        lines = [trace.strings[name] for name in trace.lines["name"].tolist()]
        made = pools(trace)
        assert (made.n, made.active) == plain.pool(events, lines, spans)


@pytest.mark.parametrize("seed", SEEDS)
def test_functions_that_few_steps_call(seed: int) -> None:
    for trace, events, spans in loops(seed):
        made = [
            (f"${one.culprit.file}:{one.culprit.line} {one.culprit.name}", one.time_ps.tolist())
            for one in rare_functions(trace)
        ]
        assert made == plain.rare_functions(events, USERS, "$data.py:3 batches", spans)


@pytest.mark.parametrize("seed", SEEDS)
def test_unrecorded_time_and_what_is_around_it(seed: int) -> None:
    for trace, _events, spans in loops(seed):
        pieces = step_pieces(trace)[1]
        assert pieces is not None
        spread = pieces.spread(np.where(pieces.outline().thread_class != TimeClass.UNKNOWN, 0, -1))
        expected = plain.gaps(spread, spans)
        short = [0] * len(spans)
        by_place: dict[tuple[str, str], list[int]] = {}
        for step, (start, end), before, after in expected:
            if before >= 0 and after >= 0 and end - start <= 300 * PS:
                short[step] += end - start
            names = tuple(
                "" if piece < 0 else _name(trace, int(event[piece]))
                for piece, event in ((before, spread.last), (after, spread.event))
            )
            by_place.setdefault((names[0], names[1]), [0] * len(spans))[step] += end - start
        assert short_gaps(trace).tolist() == short
        made = gaps(trace)
        totals = sorted((sum(time) for time in by_place.values()), reverse=True)
        assert [int(one.time_ps.sum()) for one in made] == totals[:3]
        for one in made:
            assert one.time_ps.tolist() == by_place[one.before, one.after]
            lengths = [end - start for _, (start, end), *_ in expected]
            assert (one.first_ps, one.last_ps) in [span for _, span, *_ in expected]
            assert one.last_ps - one.first_ps <= max(lengths)


def _name(trace: Trace, event: int) -> str:
    text = trace.strings[int(trace.metadata["name"][trace.events["metadata"][event]])]
    return "the device's work" if text.startswith("ThreadpoolListener") else text.removeprefix("$")


@pytest.mark.parametrize("seed", SEEDS)
def test_compilation_before_the_steps(seed: int) -> None:
    """It counts if it takes twice as long as the median step; else a long first step does, with the
    compilation.
    """
    for trace, events, spans in loops(seed):
        first = steps(trace).first
        begin = first.start_ps if first else min(start for start, _ in spans)
        early = [
            (one.start, min(one.end, begin)) for one in events if _compiles(one.name) and one.start < begin
        ]
        compiled = plain.union(early, (0, begin))
        usual = int(np.median([end - start for start, end in spans]))
        made = warming(trace)
        if compiled >= 2 * usual:
            assert made is not None
            assert (made.name, made.duration_ps, made.cause_ps, made.start_ps) == (
                "",
                compiled,
                compiled,
                min(start for start, _ in early),
            )
        else:
            is_long = first is not None and first.duration_ps + compiled >= 2 * usual
            assert (made is not None) == is_long
        assert made is None or made.usual_ps == usual


def _compiles(name: str) -> bool:
    return name in ("backend_compile", "lower_sharding_computation", "tf.function-graph_building")
