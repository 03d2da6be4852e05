"""The pod viewer on both sides of its limits: hosts left out, three unlike channels, words of counts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.pod.collectives import GroupsFrom
from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.analysis.pod.join import Channel, Pod
from tb_tpuprof.analysis.pod.link_times import ChannelTimes
from tb_tpuprof.analysis.pod.parts import Part
from tb_tpuprof.tools.payload import Diagnostic
from tb_tpuprof.tools.pod_viewer import view as page
from tb_tpuprof.tools.pod_viewer.channel_tables import channels_table
from tests.analysis.pod.test_numbers import collective
from tests.analysis.pod.test_senders import any_pod
from tests.payload_columns import cells
from tests.tools.inference_profile.test_words import values

US = 1_000_000
# Without a known trace or notices.
SESSION: Any = SimpleNamespace(map=lambda _function, hosts, *_: [()] * len(hosts))


@pytest.fixture(scope="module")
def pod() -> Pod:
    return replace(any_pod(), collectives=())


def diagnostics(pod: Pod, *more: str) -> tuple[Diagnostic, ...]:
    return page._diagnostics(SESSION, (*pod.hosts, *more), pod)


@pytest.mark.parametrize(
    ("n", "names"), [(1, "x0."), (5, "x0, x1, x2, x3, x4."), (6, "x0, x1, x2, x3, x4 ….")]
)
def test_hosts_left_out_are_named(pod: Pod, n: int, names: str) -> None:
    (notice,) = diagnostics(pod, *(f"x{i}" for i in range(n)))
    do = "does" if n == 1 else "do"
    assert notice.message == f"{n} of {n + 3} hosts {do} not share the steps of the others: {names}"
    assert diagnostics(pod) == ()


@pytest.mark.parametrize(
    ("known_by", "text"),
    [
        ((GroupsFrom.PROGRAM, GroupsFrom.FILE, GroupsFrom.UNKNOWN), ""),
        ((GroupsFrom.PROGRAM, GroupsFrom.NOTHING, GroupsFrom.FILE), "1 of 3 collectives together: for 0, "),
        ((GroupsFrom.ENDS, GroupsFrom.NOTHING, GroupsFrom.ENDS), "3 of 3 collectives together: for 2, "),
    ],
)
def test_collectives_whose_groups_are_not_stated(
    pod: Pod, known_by: tuple[GroupsFrom, ...], text: str
) -> None:
    made = tuple(collective(known_by=one) for one in known_by)
    found = diagnostics(replace(pod, collectives=made))
    assert len(found) == bool(text)
    if found:
        assert text in found[0].message
        assert found[0].remedy.startswith("Profile with HLO protos")
        of_torch = replace(made[1], op=replace(made[1].op, ordinal=0))
        torch = diagnostics(replace(pod, collectives=(made[0], of_torch, made[2])))
        assert torch[0].remedy.startswith("PyTorch 2.3")
    alone = replace(pod, collectives=made, cores=pod.cores[:1])
    assert diagnostics(alone) == ()


SIZES = (1000, 0, 300, 50)
LATENCIES = (5.0 * US, 2.0 * US, 0.0, np.nan)


def channels(pod: Pod) -> Pod:
    made = tuple(
        Channel(
            i, (i + 2) % 6, (f"op{i}", "b"), i, size, latency, 7.0 * i, 2.0 + i, ("send", "r", f"recv{i}")
        )
        for i, (size, latency) in enumerate(zip(SIZES, LATENCIES, strict=True))
    )
    return replace(pod, channels=made)


def test_channels_of_known_and_unknown_size(pod: Pod) -> None:
    one = channels(pod)
    table = channels_table(one, "no topology")
    assert values(table, "size_bytes") == pytest.approx([1000, np.nan, 300, 50], nan_ok=True)
    assert values(table, "bytes_per_s") == pytest.approx([1000 / 5e-6, np.nan, np.nan, np.nan], nan_ok=True)
    assert values(table, "channel_id") == pytest.approx([np.nan, 1, 2, 3], nan_ok=True)
    assert values(table, "send_delay_ps") == [0, 7, 14, 21]
    assert values(table, "n_per_step") == [2, 3, 4, 5]
    assert values(table, "source_row") == [0, 1, 2, 3]
    assert values(table, "target_row") == [2, 3, 4, 5]
    texts = {column.name: cells(column) for column in table.columns if column.strings is not None}
    assert texts["ops"] == [f"op{i}, b" for i in range(4)]
    assert (texts["send_op"], texts["receive_op"]) == (["send"] * 4, [f"recv{i}" for i in range(4)])
    assert "link" not in texts
    assert table.note == ""
    more = channels_table(replace(one, n_unplaced=1200), "no topology")
    assert more.note == "1,200 more lead to cores outside these hosts"


def test_channels_of_one_step_have_its_times(pod: Pod) -> None:
    one = channels(replace(pod, n_unplaced=3))
    times = ChannelTimes(np.array([4.0, 8.0, 2.0, np.nan]) * US, np.arange(4.0), np.array([1.0, 0, 3, 2]))
    table = channels_table(one, "no topology", (1, times))
    assert values(table, "latency_ps") == pytest.approx([4 * US, 8 * US, 2 * US, np.nan], nan_ok=True)
    rates = [1000 / 4e-6, np.nan, 300 / 2e-6, np.nan]
    assert values(table, "bytes_per_s") == pytest.approx(rates, nan_ok=True)
    assert values(table, "n_per_step") == [1, 0, 3, 2]
    assert table.note == f"in step {pod.step_names[1]}; 3 more lead to cores outside these hosts"


def numbers(pod: Pod, step: int = -1) -> dict[str, tuple[float | None, str]]:
    return {
        name: (None if one.value is None else float(one.value), one.note)
        for name, one in page._scalars(pod, step).items()
    }


def drawn(pod: Pod) -> Pod:
    """Unlike times of 6 cores on three hosts in 2 steps, and unlike parts of them."""
    chance = np.random.default_rng(5)
    part = chance.integers(1, 90, pod.part_ps.shape)
    part[:, :, Part.COLLECTIVE_WAIT] += 500
    made = replace(pod, part_ps=part, total_ps=part.sum(axis=2))
    return replace(made, collectives=(collective(),))


def test_numbers_are_means_over_cores_and_steps(pod: Pod) -> None:
    one = drawn(pod)
    n_cores, n_steps = one.total_ps.shape
    for step in (-1, 0, 1):
        rows = range(n_steps) if step < 0 else [step]
        found = numbers(one, step)
        cells_of = [(core, row) for core in range(n_cores) for row in rows]
        total = sum(int(one.total_ps[cell]) for cell in cells_of) / len(cells_of)
        assert found["step_ps"][0] == pytest.approx(total)
        own = [sum(int(one.own_ps[core, row]) for row in rows) / len(rows) for core in range(n_cores)]
        assert found["max_own_ps"][0] == pytest.approx(max(own))
        ordered = sorted(own)
        assert found["median_own_ps"][0] == pytest.approx(
            (ordered[(n_cores - 1) // 2] + ordered[n_cores // 2]) / 2
        )
        for name, parts in (
            ("wait_fraction", (Part.COLLECTIVE_WAIT, Part.RECV)),
            ("idle_fraction", (Part.IDLE,)),
            ("copy_wait_fraction", (Part.COPY_WAIT,)),
        ):
            time = sum(int(one.part_ps[(*cell, part)]) for cell in cells_of for part in parts)
            assert found[name][0] == pytest.approx(time / len(cells_of) / total)
        base = "mean of all steps" if step < 0 else f"step {one.step_names[step]}"
        assert found["step_ps"][1] == f"{base} and cores"
        assert found["job_step_ps"][1] == f"{base}, slowest core"
        if step >= 0:
            assert found["job_step_ps"][0] == max(int(one.total_ps[core, step]) for core in range(n_cores))
    assert numbers(one)["n_hosts"][0] == 3


def test_waiting_that_was_not_captured_is_unknown(pod: Pod) -> None:
    one = replace(drawn(pod), collectives=(collective(n_seen=1),))
    assert numbers(one)["wait_fraction"] == (None, "only one participant of each collective was captured")
    assert "max_own_ps" not in numbers(one)
    several = replace(one, collectives=(collective(n_seen=1), collective(n_seen=2)))
    assert numbers(several)["wait_fraction"][1] == "in collectives and receives"
    assert "max_own_ps" in numbers(several)


def test_a_capture_without_steps_is_called_that(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_remedy", lambda *_: "Mark steps.")
    whole = replace(drawn(pod), step_names=(WHOLE,))
    found = numbers(whole)
    assert found["n_steps"] == (0, "none are marked")
    assert found["job_step_ps"][1] == "from the first operation to the last of any core"
    assert "step_ps" not in found
    (notice,) = [one for one in diagnostics(whole) if "no steps" in one.message]
    assert notice.message == "The trace has no steps: the whole capture is shown."
    assert notice.remedy == "Mark steps."
