"""Tables, numbers and sentences of loads on both sides of their limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.loads import HostLoads, Load
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.tools.inference_profile.load_rows import load_sentence, load_table, reason
from tests.analysis.inference.test_loads import load
from tests.tools.inference_profile.test_words import values

S = 10**12


def loads_of(phases: dict[Phase, Load], kind: str = "TPU", knows_peaks: bool = True) -> HostLoads:
    return HostLoads({("", phase): one for phase, one in phases.items()}, kind, knows_peaks)


IDLE = Load(1, 0)


def test_a_phase_without_device_time_has_no_rates() -> None:
    loads = loads_of({Phase.NONE: load(0.5, 0.1), Phase.PREFILL: load(0.5, 0.1), Phase.DECODE: IDLE})
    table = load_table(loads, "", "passes")["loads"]
    assert values(table, "n") == [1, 1, 1]
    assert values(table, "flops_per_s") == pytest.approx([0.5 * S, 0.5 * S, np.nan], nan_ok=True)
    assert values(table, "bytes_per_s") == pytest.approx([0.1 * S, 0.1 * S, np.nan], nan_ok=True)
    assert values(table, "known_fraction") == [1, 1, 0]
    assert table.note == ""
    assert load_table(loads_of({Phase.NONE: IDLE, Phase.DECODE: load(0.5, 0.1)}), "", "passes") == {}


@pytest.mark.parametrize(
    ("one", "shows"),
    [
        (load(0.1, 0.1, 0.5), True),
        (load(0.1, 0.1, 0.49), False),
        (load(0.05, 0.7, 0.4), True),  # limited by HBM, whatever else it does
        (load(0.05, 0.6, 0.4), False),
    ],
)
def test_rates_need_half_of_the_work_or_a_known_limit(one: Load, shows: bool) -> None:
    table = load_table(loads_of({Phase.NONE: one}), "", "requests")["loads"]
    for name in ("flops_fraction", "hbm_fraction", "flops_per_s", "bytes_per_s"):
        assert np.isnan(values(table, name)).all() != shows, name


def test_one_reason_for_all_rows_is_said_once() -> None:
    unknown, other, certain = load(0.1, 0.1, 0.5), load(0.1, 0.1, 0.6), load(0.5, 0.1)
    same = {Phase.NONE: unknown, Phase.PREFILL: unknown, Phase.DECODE: unknown}
    reasons = "the FLOPs or bytes of 50.0% of the operations' time are unknown"
    assert load_table(loads_of(same), "", "requests")["loads"].note == f"unknown: {reasons}"
    assert load_table(loads_of({**same, Phase.DECODE: other}), "", "requests")["loads"].note == ""
    assert load_table(loads_of(dict.fromkeys(same, certain)), "", "requests")["loads"].note == ""


_NO_PEAKS = "the peak rates of CPUs are unknown"
_NO_WORK = "the trace states neither the HLO nor the input shapes of their operations, so no FLOPs and bytes"
_NOT_ALL = f"{_NO_PEAKS}; the FLOPs or bytes of 100% of the operations' time are unknown"


@pytest.mark.parametrize(
    ("flops_ps", "bytes_ps", "flops", "hbm_bytes", "why"),
    [
        (5.0, 5.0, 1.0, 1.0, _NO_PEAKS),
        (5.0, 5.0, 1.0, 0.0, _NO_PEAKS),  # one of both is stated, and all time is known
        (5.0, 5.0, 0.0, 1.0, _NO_PEAKS),
        (5.0, 5.0, 0.0, 0.0, _NO_WORK),
        (0.0, 5.0, 0.0, 1.0, _NOT_ALL),
        (5.0, 0.0, 1.0, 0.0, _NOT_ALL),
        (0.0, 0.0, 0.0, 0.0, _NO_WORK),
    ],
)
def test_a_limit_takes_both_flops_and_bytes(
    flops_ps: float, bytes_ps: float, flops: float, hbm_bytes: float, why: str
) -> None:
    one = Load(1, 5, 5.0, flops_ps, bytes_ps, flops, flops, hbm_bytes)
    assert reason(one, loads_of({Phase.NONE: one}, "CPU", knows_peaks=False)) == why


@pytest.mark.parametrize(
    ("known", "text", "least"),
    [
        (0.98, "the FLOPs or bytes of 2.00% of the operations' time are unknown", "at least "),
        (0.99, "", ""),
        (1.0, "", ""),
    ],
)
def test_nearly_all_is_all(known: float, text: str, least: str) -> None:
    peaks = "the device's peak rates are unknown; set them in your own file (TPUPROF_PEAKS)"
    one = replace(load(0.5, 0.1, known), max_flops=0.0)
    said = reason(one, loads_of({Phase.NONE: one}, "GPU", knows_peaks=False))
    assert said == (f"{peaks}; {text}" if text else peaks)
    certain = load_sentence(loads_of({Phase.NONE: load(0.5, 0.1, known)}), "", "requests")
    assert certain == (
        f"While the TPU works, requests: limited by FLOP rate ({least}50.0% of peak; HBM bandwidth 10.0%)."
    )
    neither = load_sentence(loads_of({Phase.NONE: load(0.1, 0.2, known)}), "", "requests")
    assert neither.endswith(f"below both limits ({least}HBM bandwidth 20.0% of peak, FLOP rate 10.0%).")


def test_what_is_known_needs_both_amounts() -> None:
    """The FLOPs of half of the time are known, the bytes of nine tenths."""
    one = replace(load(0.1, 0.1), flops_ps=50.0, bytes_ps=90.0)
    table = load_table(loads_of({Phase.NONE: one}), "", "requests")["loads"]
    assert values(table, "known_fraction") == [0.5]
    assert "of 50.0% of the operations' time are unknown" in reason(one, loads_of({Phase.NONE: one}))
    other = replace(load(0.1, 0.1), flops_ps=90.0, bytes_ps=50.0)
    assert values(load_table(loads_of({Phase.NONE: other}), "", "x")["loads"], "known_fraction") == [0.5]


def test_shares_of_nothing() -> None:
    """An operation may have no FLOPs, or move nothing."""
    none = load_sentence(loads_of({Phase.NONE: load(0.0, 0.5)}), "", "requests")
    assert none.endswith("limited by HBM bandwidth (50.0% of peak; FLOP rate 0%).")
    no_bytes = load_sentence(loads_of({Phase.NONE: load(0.5, 0.0)}), "", "requests")
    assert no_bytes.endswith("limited by FLOP rate (50.0% of peak; HBM bandwidth 0%).")


def test_unknown_phases_are_named_after_the_known_ones() -> None:
    certain, unknown = load(0.5, 0.1), load(0.1, 0.1, 0.5)
    loads = loads_of(
        {Phase.NONE: certain, Phase.PREFILL: unknown, Phase.DECODE: certain, Phase.MIXED: unknown}
    )
    limit = "limited by FLOP rate (50.0% of peak; HBM bandwidth 10.0%)"
    assert load_sentence(loads, "", "passes") == (
        f"While the TPU works, decode: {limit}; prefill and mixed: unknown."
    )
    nothing = loads_of({Phase.NONE: certain, Phase.PREFILL: unknown, Phase.DECODE: unknown})
    assert load_sentence(nothing, "", "passes") == (
        "What limits the TPU while it works is unknown: the FLOPs or bytes of 50.0% of the operations' time "
        "are unknown."
    )
    idle = loads_of({Phase.NONE: certain, Phase.PREFILL: certain, Phase.DECODE: IDLE})
    assert load_sentence(idle, "", "passes") == f"While the TPU works, prefill: {limit}."
    no_phase = loads_of({Phase.NONE: certain, Phase.DECODE: IDLE})
    assert load_sentence(no_phase, "", "passes") == f"While the TPU works, passes: {limit}."
