"""The pod viewer on synthetic pods: parts, waiting, groups, links, stragglers, all planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.pod_viewer.view import TOOL
from tests.builders import drawing
from tests.golden_files import demo_runs
from tests.payload_columns import table
from tests.synthetic import GpuJob, Parts, gpu_xspace, write_run
from tests.synthetic_pod import (
    COMPUTE_US,
    IDLE_US,
    INFEED_US,
    PERMUTE_US,
    TRANSFER_US,
    Pod,
    busy_us,
    pod_hosts,
)
from tests.tools.drawn_session import session_of

US = 1_000_000
SLOW = Pod(slow=((2, 3, 200.0, "infeed"),))


def session(folder: Path, pod: Pod, with_hlo: bool = True) -> Session:
    return Session(str(write_run(folder / "run", pod_hosts(pod, with_hlo))), cache=False)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Payload:
    return TOOL.run(session(tmp_path_factory.mktemp("pod"), SLOW), None, {})


def test_every_core_s_parts_are_those_that_were_planted(tmp_path: Path) -> None:
    cores = table(TOOL.run(session(tmp_path, SLOW), None, {"step": 5}), "cores")
    assert len(cores["core"]) == SLOW.n_cores
    slow_cores = np.arange(SLOW.n_cores) // 4 == 2
    same_group = np.arange(SLOW.n_cores) >= SLOW.n_cores // 2
    np.testing.assert_array_equal(cores["input_ps"], (INFEED_US + 200 * slow_cores) * US)
    np.testing.assert_array_equal(cores["high_flops_ps"], np.full(SLOW.n_cores, COMPUTE_US * US))
    np.testing.assert_array_equal(
        cores["collective_ps"], np.full(SLOW.n_cores, (TRANSFER_US + PERMUTE_US) * US)
    )
    np.testing.assert_array_equal(
        cores["collective_wait_ps"], np.where(same_group & ~slow_cores, 200 * US, 0)
    )
    np.testing.assert_array_equal(cores["idle_ps"], np.where(same_group, IDLE_US, IDLE_US + 200) * US)
    parts = np.sum(
        [
            cores[name]
            for name in ("input_ps", "high_flops_ps", "collective_ps", "collective_wait_ps", "idle_ps")
        ],
        axis=0,
    )
    np.testing.assert_array_equal(parts, cores["total_ps"])
    busy = INFEED_US + COMPUTE_US + TRANSFER_US + PERMUTE_US + IDLE_US
    # The other half idles at the step's end without holding up others: that is not its own time.
    np.testing.assert_array_equal(cores["own_ps"], (busy + 200 * slow_cores) * US)
    assert cores["chip"][:4] == [0, 0, 1, 1]
    assert cores["device"] == list(range(SLOW.n_cores))


def test_collectives_and_links_come_from_the_program(slow: Payload) -> None:
    collectives = table(slow, "collectives")
    row = collectives["op"].index("all-reduce.3")
    halves = " ".join("{" + ",".join(map(str, group)) + "}" for group in SLOW.groups)
    assert (collectives["groups"][row], collectives["n_groups"][row], collectives["group_size"][row]) == (
        halves,
        2,
        8,
    )
    assert collectives["size_bytes"][row] == 512 * 512 * 4
    assert collectives["transfer_ps"][row] == TRANSFER_US * US
    # 4 of 16 cores wait for 200 µs in 5 of 8 steps.
    assert collectives["wait_ps"][row] == pytest.approx(200 * US * 4 / 16 * 5 / 8)
    links = table(slow, "channels")
    assert sorted(zip(links["source_row"], links["target_row"], strict=True)) == [
        (i, (i + 1) % 16) for i in range(16)
    ]
    assert set(links["size_bytes"]) == {512 * 512 * 4}
    assert set(links["n_per_step"]) == {1.0}
    first = links["source_row"].index(0.0)
    assert links["latency_ps"][first] == pytest.approx(PERMUTE_US * US)
    assert links["bytes_per_s"][first] == pytest.approx(512 * 512 * 4 / (PERMUTE_US * 1e-6))


def test_the_straggler_is_named_with_its_step_cause_and_gain(slow: Payload) -> None:
    rows = table(slow, "stragglers")
    assert rows["straggler"] == ["synthetic-pod-2"]
    assert (rows["since"], rows["cause"]) == (["3"], ["input"])
    assert rows["excess_ps"] == [pytest.approx(200 * US)]
    assert rows["gain_ps"] == [pytest.approx(200 * US)]
    assert rows["gain_fraction"] == [
        pytest.approx(200 / (200 + INFEED_US + COMPUTE_US + TRANSFER_US + PERMUTE_US + IDLE_US))
    ]
    assert rows["input_ps"] == [pytest.approx(200 * US)]
    assert slow.verdict
    assert slow.verdict.level == "bad"
    assert "`synthetic-pod-2`" in slow.verdict.text
    assert "since step 3" in slow.verdict.text
    assert slow.verdict.next[0].params == {"hosts": "synthetic-pod-2"}


def test_equal_hosts_are_not_accused(tmp_path: Path) -> None:
    payload = TOOL.run(session(tmp_path, Pod(noise=0.02, n_steps=20)), None, {})
    assert payload.tables["stragglers"].n_rows == 0
    assert payload.verdict
    assert payload.verdict.text.startswith("Moderately communication-bound: ")
    assert payload.verdict.text.endswith(
        "No straggler: none of 4 hosts is consistently slower than the others by 5% or more."
    )


def test_a_straggler_among_noisy_hosts_is_found_in_a_pod_of_two_groups(tmp_path: Path) -> None:
    pod = Pod(n_hosts=16, n_chips=4, n_steps=20, noise=0.02, slow=((5, 6, 120.0, "infeed"),))
    rows = table(TOOL.run(session(tmp_path, pod), None, {}), "stragglers")
    assert (rows["straggler"], rows["since"], rows["cause"]) == (["synthetic-pod-5"], ["6"], ["input"])
    assert rows["input_ps"] == [pytest.approx(120 * US)]
    # What the same job without the slowness takes, step by step: each group waits for its own last core.
    slow_us, equal_us = (
        np.sum(busy_us(one), axis=0)[:, 6:].max(axis=0).mean() for one in (pod, replace(pod, slow=()))
    )
    assert rows["gain_ps"] == [pytest.approx((slow_us - equal_us) * US, rel=0.1)]


def test_without_hlo_all_cores_are_one_group(tmp_path: Path) -> None:
    payload = TOOL.run(session(tmp_path, replace(SLOW, n_groups=1), with_hlo=False), None, {})
    assert payload.tables["channels"].n_rows == 0
    assert set(table(payload, "collectives")["groups"]) == {"all"}
    assert table(payload, "stragglers")["straggler"] == ["synthetic-pod-2"]
    assert [one.message for one in payload.diagnostics] == [
        "The trace does not say which cores run 2 of 2 collectives together: for 0, groups are inferred from "
        "which cores finish together; the rest are treated as one group of all."
    ]


def test_without_hlo_groups_are_told_by_who_leaves_together(tmp_path: Path) -> None:
    pod = Pod(noise=0.02, n_steps=20, n_groups=2, slow=((2, 3, 200.0, "infeed"),))
    payload = TOOL.run(session(tmp_path, pod, with_hlo=False), None, {})
    collectives = table(payload, "collectives")
    row = collectives["op"].index("all-reduce.3")
    assert collectives["groups"][row] == "{0,1,2,3,4,5,6,7} {8,9,10,11,12,13,14,15}"
    assert collectives["groups_from"][row] == "common end times"
    assert table(payload, "stragglers")["straggler"] == ["synthetic-pod-2"]
    assert "for 1, groups are inferred" in payload.diagnostics[0].message


def test_cells_are_one_measure_of_all_cores_and_steps(tmp_path: Path) -> None:
    opened = session(tmp_path, SLOW)
    payload = TOOL.run(opened, None, {"measure": "input"}, "cells")
    assert set(payload.tables) == {"cells"}
    values = payload.tables["cells"].columns[0].values.reshape(SLOW.n_cores, SLOW.n_steps)
    assert values[8, 2] == INFEED_US * US
    assert values[8, 3] == (INFEED_US + 200) * US
    with pytest.raises(BadParameter, match="measure"):
        TOOL.run(opened, None, {"measure": "nonsense"}, "cells")
    with pytest.raises(BadParameter, match="measure"):
        TOOL.run(opened, None, {"measure": "input"})
    with pytest.raises(BadParameter, match="step"):
        TOOL.run(opened, None, {"step": SLOW.n_steps})


def test_the_cores_of_a_step_are_those_of_the_page_in_that_step(tmp_path: Path) -> None:
    opened = session(tmp_path, SLOW)
    page, cores = (TOOL.run(opened, None, {"step": 3}, question) for question in ("", "cores"))
    assert set(cores.tables) == {"cores"}
    assert table(cores, "cores") == table(page, "cores") != table(TOOL.run(opened, None, {}), "cores")
    assert cores.scalars == page.scalars


def test_some_hosts_of_the_pod_say_which_links_lead_out(tmp_path: Path) -> None:
    payload = TOOL.run(session(tmp_path, SLOW), ["synthetic-pod-0"], {})
    assert payload.tables["channels"].n_rows == 3
    assert "13 more lead to cores outside" in payload.tables["channels"].note


def test_gpus_have_kernels_copies_and_collectives(tmp_path: Path) -> None:
    job = GpuJob(Parts(0.5, 0.1, 0.05, 0.2), n_gpus=2)
    payload = TOOL.run(
        Session(str(write_run(tmp_path / "run", {"gpu": gpu_xspace(job)})), cache=False), None, {}
    )
    cores = table(payload, "cores")
    assert cores["core"] == ["gpu GPU:0", "gpu GPU:1"]
    ratio = np.array(cores["input_ps"]) / np.array(cores["compute_ps"])
    np.testing.assert_allclose(ratio, 0.2, rtol=1e-6)
    np.testing.assert_allclose(
        np.array(cores["collective_ps"]) / np.array(cores["compute_ps"]), 0.4, rtol=1e-6
    )


def test_without_steps_it_says_why() -> None:
    opened = session_of(drawing("main [work ]"))
    assert not TOOL.available(opened)
    with pytest.raises(ToolUnavailable, match="no steps"):
        TOOL.run(opened, None, {})


def test_a_straggler_that_only_waits_for_input_is_not_said_to_write_output() -> None:
    """The slow worker's host compute and unrecorded time are longer, too, but input accounts for most."""
    payload = TOOL.run(Session(str(demo_runs()["tf_two_workers"]), cache=False), None, {})
    assert payload.verdict
    assert "mostly in waiting for input. If it ran" in payload.verdict.text
