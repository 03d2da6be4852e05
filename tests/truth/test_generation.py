"""Times of tokens and FLOPs of phases of a small language model, against what the program measured of
itself.
"""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.inference.loads import host_loads
from tb_tpuprof.analysis.inference.names import Phase
from tb_tpuprof.analysis.inference.tokens import Tokens, host_tokens
from tb_tpuprof.tools import get_tool
from tests.payload_columns import table
from tests.truth.runner import Truth, profiled

pytestmark = pytest.mark.slow
PS = 1e12
LATE_S = 0.0005  # between the program's clock and the annotation inside of it


def tokens_of(truth: Truth) -> Tokens:
    session = truth.session()
    (host,) = session.hosts
    return session.get(host_tokens, host)


def check(found: np.ndarray, expected: np.ndarray) -> None:
    """The same times: nearly all within LATE_S, and their sum within 2%."""
    assert len(found) == len(expected)
    assert np.quantile(np.abs(found / PS - expected), 0.9) <= LATE_S
    assert found.sum() / PS == pytest.approx(expected.sum(), rel=0.02)


@pytest.mark.parametrize("kind", ["nested", "ids"])
def test_times_of_tokens_by_request(kind: str) -> None:
    truth = profiled("generate_jax.py", kind)
    found = tokens_of(truth)
    began, moments = np.array(truth.facts["began_s"]), truth.facts["tokens_s"]
    assert found.by == "request"
    each = found.generations
    if kind == "ids":
        assert sorted(each.label) == sorted(f"r{i}" for i in range(len(began)))
        order = [int(label[1:]) for label in each.label]
    else:
        order = list(range(len(began)))
    assert each.n_tokens.tolist() == [len(moments[i]) for i in order]
    check(each.first_ps, np.array([moments[i][0] - began[i] for i in order]))
    check(np.sort(found.gap_ps), np.sort(np.concatenate([np.diff(times) for times in moments])))
    check(each.longest_ps, np.array([np.diff(moments[i]).max() for i in order]))
    check(each.token_ps, np.array([np.diff(moments[i]).mean() for i in order]))


def test_times_of_tokens_by_step() -> None:
    truth = profiled("generate_jax.py", "steps")
    found = tokens_of(truth)
    assert found.by == "step"
    began, moments = np.array(truth.facts["began_s"]), truth.facts["tokens_s"]
    check(found.first_ps, np.array([times[0] for times in moments]) - began)
    check(found.gap_ps, np.concatenate([np.diff(times) for times in moments]))


def test_phases_have_the_flops_of_their_products() -> None:
    truth = profiled("generate_jax.py", "nested")
    session = truth.session()
    (host,) = session.hosts
    loads = session.get(host_loads, host)
    n_decodes = sum(len(times) - 1 for times in truth.facts["tokens_s"])
    prefill, decode = loads.of("", Phase.PREFILL), loads.of("", Phase.DECODE)
    assert (prefill.n, decode.n) == (12, n_decodes)
    # Beside the products: tanh, the mean of the states, a sum.
    assert 1.0 <= prefill.flops / (12 * truth.facts["prefill_flops"]) <= 1.03
    assert 1.0 <= decode.flops / (n_decodes * truth.facts["decode_flops"]) <= 1.15
    payload = get_tool("inference_profile").run(session, None, {})
    rows = table(payload, "loads")
    assert rows["phase"] == ["All requests", "Prefill", "Decode"]
    assert rows["flops_per_s"][1] == pytest.approx(prefill.flops / (prefill.device_ps / PS))
    assert set(rows["reason"]) == {"the peak rates of CPUs are unknown"}
    assert all(np.isnan(np.array(rows["hbm_fraction"], float)))
