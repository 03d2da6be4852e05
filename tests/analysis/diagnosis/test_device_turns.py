"""Devices that take turns."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.diagnosis.causes import Cause
from tb_tpuprof.analysis.diagnosis.device_turns import device_turns
from tb_tpuprof.analysis.diagnosis.evidence import host_evidence
from tb_tpuprof.trace.trace import Trace
from tests.analysis.diagnosis.drawn import trace_of, us


def gpus(*lines: str) -> Trace:
    """Three unlike steps, of 30, 40 and 50 µs, that launch the kernels of up to three GPUs."""
    text = (
        "main    [train                       ][train                                 ][train                "
        "                           ]\n"
        "main     [l]                          [m]                                     [n]"
    )
    stats = {name: {"correlation_id": number} for number, name in enumerate("lmn", 1)}
    stats |= {
        name: {"correlation_id": number}
        for number, name in enumerate("xyz", 1)
        if any(f"[{name}" in line for line in lines)
    }
    for number, line in enumerate(lines):
        text += f"\n/device:GPU:{number}:\nstream  {line}"
    return trace_of(text, dict.fromkeys("xyz", "gemm") | dict.fromkeys("lmn", "cudaLaunchKernel"), stats)


FIRST = "  [x     ]                      [y          ]                           [z              ]"
SECOND = (
    "            [x        ]                         [y            ]                            [z      ]"
)
SAME = "   [x     ]                     [y          ]                           [z              ]"


def test_turns_are_the_time_without_the_busiest_device() -> None:
    """8 and 11 µs in the first step, 13 and 15 in the second, 17 and 9 in the third."""
    assert us(device_turns(gpus(FIRST, SECOND))) == [8, 13, 9]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((FIRST,), "one device"),
        ((FIRST, SAME), "both at once"),
        ((FIRST, " [x]" + " " * 27 + "[y]"), "one that does hardly anything"),
    ],
)
def test_other_devices_take_no_turns(lines: tuple[str, ...], why: str) -> None:
    assert us(device_turns(gpus(*lines))) == [0, 0, 0], why


def test_without_steps_there_are_none() -> None:
    assert us(device_turns(trace_of("main  [u   ]"))) == []


def test_turns_are_a_waits_time_and_the_step_still_adds_up() -> None:
    evidence = host_evidence(gpus(FIRST, SECOND))
    moved = [one for one in evidence.parts if one.cause == Cause.SYNCHRONIZATION]
    assert us(sum(one.time_ps for one in moved)) == [8, 13, 9]
    assert us(sum(one.time_ps for one in evidence.parts)) == us(evidence.duration_ps)
