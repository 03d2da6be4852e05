"""While a request is answered, threads hand the interpreter's lock on quickly; afterwards as before."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from tb_tpuprof.native import IS_COMPILED, repeated
from tb_tpuprof.parallel.turns import TURN_S, Turns
from tb_tpuprof.serve.respond import Body, respond

USUAL_S = 0.005


@pytest.fixture(autouse=True)
def usual_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    yield
    sys.setswitchinterval(before)


def test_turns_are_short_as_long_as_anything_works() -> None:
    turns = Turns()
    with turns.short():
        with turns.short():
            assert sys.getswitchinterval() == pytest.approx(TURN_S)
        assert sys.getswitchinterval() == pytest.approx(TURN_S)
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)


def test_a_failure_ends_the_short_turns() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="broken"), turns.short():
        raise ValueError("broken")
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)


def test_shorter_turns_of_the_owner_stay_as_they_are() -> None:
    sys.setswitchinterval(TURN_S / 5)
    own_s = sys.getswitchinterval()
    for _ in range(50):  # what the interpreter cuts off each time must not add up
        with Turns().short():
            assert sys.getswitchinterval() == own_s
    assert sys.getswitchinterval() == own_s


def test_a_request_is_answered_in_short_turns() -> None:
    seen: list[float] = []

    def answer(_request: Request) -> Body:
        seen.append(sys.getswitchinterval())
        return Body(b"{}", "application/json")

    assert respond(Request(EnvironBuilder().get_environ()), answer).status_code == 200
    assert seen == [pytest.approx(TURN_S)]
    assert sys.getswitchinterval() == pytest.approx(USUAL_S)


@pytest.mark.skipif(not IS_COMPILED, reason="the plain twin keeps the lock")
def test_repeating_lets_other_threads_work() -> None:
    sys.setswitchinterval(60.0)  # whoever has the lock keeps it until it lets go by itself
    values, counts = np.arange(4, dtype=np.int32), np.full(4, 5_000_000)
    assert any(_worked_meanwhile(values, counts) for _ in range(20))


def _worked_meanwhile(values: np.ndarray, counts: np.ndarray) -> bool:
    go, has_worked = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        has_worked.set()

    thread = threading.Thread(target=work)
    thread.start()
    go.set()
    repeated(values, counts)
    is_done = has_worked.is_set()
    thread.join()
    return is_done
