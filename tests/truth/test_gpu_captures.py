"""PyTorch and JAX on a real H100 (tests/data/gpu), against what the jobs measured of themselves with
`time.perf_counter`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.payload import Payload

DATA = Path(__file__).parents[1] / "data" / "gpu"
RUNS: dict[str, dict[str, Any]] = json.loads((DATA / "index.json").read_text("utf-8"))["runs"]
PS = 1e12
JAX_FLOPS = (
    11 * 2 * 8192 * 4096 * 4096
)  # four layers forward, four gradients of weights, three of activations


@cache
def page(run: str, tool: str) -> Payload:
    (path,) = DATA.glob(f"{run}.*")
    return get_tool(tool).run(Session(str(path), cache=False), None, {})


def column(payload: Payload, table: str, name: str) -> list[Any]:
    found = next(column for column in payload.tables[table].columns if column.name == name)
    return (
        list(found.values) if found.strings is None else [found.strings[int(code)] for code in found.values]
    )


def steps(run: str) -> dict[int, float]:
    """Our seconds per step, by the step's number."""
    payload = page(run, "overview_page")
    names, times = column(payload, "steps", "step"), column(payload, "steps", "step_time_ps")
    return {int(str(name).split()[-1]): time / PS for name, time in zip(names, times, strict=True)}


@pytest.mark.parametrize("run", ["torch_loader0", "torch_loader4", "torch_sleepy", "torch_async"])
def test_a_step_of_pytorch_lasts_as_long_as_its_loop(run: str) -> None:
    truth = RUNS[run]["with_step_call"]
    found = steps(run)
    assert len(found) >= 4
    first = 4  # ProfilerStep#4 is the first that is recorded
    for number, time in found.items():
        if number - first < len(truth) - 1:  # the last one's `step()` writes the trace
            assert time == pytest.approx(truth[number - first], rel=0.03, abs=2e-4), number


@pytest.mark.parametrize("run", ["jax_sync1", "jax_slow0", "jax_slow1"])
def test_a_step_of_jax_lasts_as_long_as_its_loop(run: str) -> None:
    """A loop that waits for its results: host gaps between kernels of two steps belong to the steps."""
    truth = RUNS[run]["steps"]
    for number, time in steps(run).items():
        assert time == pytest.approx(truth[number], rel=0.03, abs=1e-4), number


@pytest.mark.parametrize("run", ["jax_async0", "jax_async1"])
def test_an_asynchronous_step_lasts_as_long_as_its_program(run: str) -> None:
    """The loop dispatches 8 steps at once; they run one after another, each as long as the program alone."""
    times = list(steps(run).values())
    assert np.median(times) == pytest.approx(RUNS[run]["alone_s"], rel=0.05)


@pytest.mark.parametrize(("run", "tool"), [(run, "overview_page") for run in RUNS if run != "torch_graph"])
def test_waiting_for_input_is_what_the_job_measured(run: str, tool: str) -> None:
    """Without the Python tracer JAX's trace holds no loader: then the wait is said to be possible, not
    denied.
    """
    truth = RUNS[run]
    share = sum(truth["input"][1:-1]) / sum(truth["steps"][1:-1])
    payload = page(run, tool)
    found = payload.scalars["input_fraction"].value
    assert payload.verdict is not None
    if run == "jax_slow0":
        assert "is idle" in payload.verdict.text
        assert "data" in payload.verdict.text
    elif run != "torch_async" or share > 0.2:
        assert found == pytest.approx(share, abs=0.05)
    if share > 0.5 and run != "jax_slow0":
        assert payload.verdict.level == "bad"
        assert "for data" in payload.verdict.text


def test_the_loader_is_named() -> None:
    verdict = page("torch_loader0", "overview_page").verdict
    assert verdict is not None
    assert "DataLoader" in " ".join((verdict.text, *verdict.details))


def test_replays_of_a_cuda_graph_are_kernels() -> None:
    truth = RUNS["torch_graph"]
    n_replays = truth["steps"] * truth["replays_per_step"]
    payload = page("torch_graph", "kernel_stats")
    n, total = (sum(column(payload, "kernels", name)) for name in ("n_occurrences", "total_ps"))
    assert n == n_replays * truth["kernels_per_replay"] + truth["steps"]  # and one addition per step
    assert total / PS == pytest.approx(n_replays * truth["replay_ms"] / 1e3, rel=0.1)


def test_a_jax_step_in_a_command_buffer_has_its_flops() -> None:
    payload = page("jax_sync1", "hlo_stats")
    seconds = np.array(column(payload, "ops", "total_self_time_ps"), float) / PS
    rates = np.array([rate or 0.0 for rate in column(payload, "ops", "flop_rate_flops_per_s")])
    assert float(seconds @ rates) == pytest.approx(8 * JAX_FLOPS, rel=0.01)
    assert rates.max() < 989.5e12


def test_bfloat16_products_are_16_bit_compute() -> None:
    for run in ("jax_sync1", "torch_graph"):
        found = page(run, "overview_page").scalars["device_compute_16bit_fraction"].value
        assert found is not None
        assert found > 0.9


def test_a_gpu_has_one_peak_whoever_captured_it() -> None:
    """The H100's data sheet: 989.5 TFLOP/s. Its highest clock, which JAX's file states, would make it 1.07
    PFLOP/s.
    """
    for run in ("jax_sync1", "torch_graph"):
        found = page(run, "overview_page").tables["environment"]
        texts = dict(
            zip(
                column(page(run, "overview_page"), "environment", "name"),
                found.columns[1].values,
                strict=True,
            )
        )
        value = found.columns[1].strings[int(texts["Peak compute per device"])]  # type: ignore[index]
        assert value.startswith("990 TFLOP/s"), run


@pytest.mark.parametrize("run", [run for run in RUNS if run.startswith("jax")])
def test_no_page_takes_a_command_buffer_for_an_operation(run: str) -> None:
    """Products are nearly all of the time, on every page that lists operations, with the FLOPs that HLO stats
    has.
    """
    top = column(page(run, "overview_page"), "top_ops", "operation")
    assert "dot_general" in top[0] or "transpose" in top[0]
    listed = {
        *top,
        *column(page(run, "framework_op_stats"), "ops", "operation"),
        *column(page(run, "kernel_stats"), "kernels", "op"),
    }
    listed |= set(column(page(run, "hlo_stats"), "ops", "op"))
    assert not any("command_buffer" in name for name in listed)
    payload = page(run, "framework_op_stats")
    rates = np.array([rate or 0.0 for rate in column(payload, "ops", "flop_rate_flops_per_s")])
    seconds = np.array(column(payload, "ops", "total_self_time_ps"), float) / PS
    assert float(np.nansum(seconds * rates)) == pytest.approx(8 * JAX_FLOPS, rel=0.01)
