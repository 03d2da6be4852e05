"""Times of tokens on random threads, against plain loops over their passes and phases."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tb_tpuprof.analysis.inference.tokens import host_tokens
from tests.builders import PS, DrawnPlane, build, event


@dataclass
class Pass:
    """A pass of an engine: its prompts and sequences, its times in µs."""

    n_prefill: int
    n_decode: int
    start: int
    end: int

    @property
    def name(self) -> str:
        return f"execute_context_{self.n_prefill}(9)_generation_{self.n_decode}({self.n_decode})"


def random_passes(chance: random.Random) -> list[Pass]:
    """Passes one after another; each works on prompts, on sequences, or on both."""
    moment, result = chance.randrange(9), []
    for _ in range(chance.randrange(1, 14)):
        length = chance.randrange(1, 30)
        both = chance.choice(((0, 1), (0, 1), (1, 0), (1, 1)))
        prefill, decode = (chance.randrange(1, 5) * one for one in both)
        result.append(Pass(prefill, decode, moment, moment + length))
        moment += length + chance.randrange(1, 20)
    return result


def gaps_of(passes: list[Pass]) -> list[int]:
    """µs from one token to the next, pass by pass."""
    result = []
    token: int | None = None
    prefill: int | None = None
    n_new = 0
    for one in passes:
        if not one.n_decode:
            prefill, n_new = one.end, n_new + one.n_prefill
            continue
        before = prefill if prefill is not None and n_new >= one.n_decode else token
        if before is not None:
            result.append(one.end - before)
        token, prefill, n_new = one.end, None, 0
    return result


@pytest.mark.parametrize("seed", range(60))
def test_passes(seed: int) -> None:
    chance = random.Random(seed)
    threads = [random_passes(chance) for _ in range(3)]
    lines = {
        f"thread {i}": [event(one.name, one.start, one.end - one.start) for one in passes]
        for i, passes in enumerate(threads)
    }
    found = host_tokens(build([DrawnPlane("/host:CPU", lines)]))
    assert sorted(found.gap_ps // PS) == sorted(gap for passes in threads for gap in gaps_of(passes))
    assert sorted(found.first_ps // PS) == sorted(
        one.end - one.start for passes in threads for one in passes if one.n_prefill
    )


@pytest.mark.parametrize("seed", range(60))
def test_requests_by_id(seed: int) -> None:
    """Phases of four requests in random order on two threads; some are cut off at their beginning."""
    chance = random.Random(seed)
    marks = []
    for thread in range(2):
        moment = chance.randrange(9)
        for _ in range(14):
            length = chance.randrange(1, 9)
            name = chance.choice(("prefill", "decode", "decode"))
            marks.append((thread, moment, moment + length, name, chance.randrange(4)))
            moment += length + chance.randrange(1, 9)
    lines = {
        f"thread {thread}": [
            event(name, start, end - start, request_id=f"r{request}")
            for of, start, end, name, request in marks
            if of == thread
        ]
        for thread in range(2)
    }
    found = host_tokens(build([DrawnPlane("/host:CPU", lines)]))
    if not any(name == "prefill" for _, _, _, name, _ in marks):
        assert len(found) == 0
        return
    firsts, gaps = [], []
    for request in range(4):
        own = [mark for mark in marks if mark[4] == request]
        decodes = [mark for mark in own if mark[3] == "decode"]
        until = min((start for _, start, _, _, _ in decodes), default=10**9)
        ends = [end for _, start, end, name, _ in own if name == "prefill" and start <= until]
        token = max(ends) if ends else None
        if token is not None:
            firsts.append(token - min(mark[1] for mark in own))
        for end in sorted(mark[2] for mark in decodes):
            if token is not None and end >= token:
                gaps.append(end - token)
            token = end
    assert sorted(found.first_ps // PS) == sorted(firsts)
    assert sorted(found.gap_ps // PS) == sorted(gaps)
