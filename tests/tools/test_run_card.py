"""What a list says of a run: from known results, from small files and outlines, never from large files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool, run_card
from tb_tpuprof.tools.run_card import RunCard
from tests.golden_files import demo_runs
from tests.synthetic import TpuJob, tpu_hosts, write_run
from tests.synthetic_devices import kernels_xspace


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """Three hosts of which one is damaged."""
    hosts = {f"w-{i}": data for i, data in enumerate(tpu_hosts(TpuJob(), (1.0, 1.0)).values())}
    return write_run(tmp_path / "run", {**hosts, "w-2": b"\xff" * 99})


def card_of(run: Path) -> RunCard:
    return run_card.run_card(Session(str(run), cache=False))


def test_devices_are_summed_and_damaged_hosts_named(pod: Path) -> None:
    card = card_of(pod)
    one = card_of(write_run(pod.parent / "one", {"h": (pod / "w-0.xplane.pb").read_bytes()}))
    assert card.device == one.device
    assert card.device.startswith("TPU")
    assert card.n_devices == 2 * one.n_devices > 0
    assert card.damaged == ("w-2",)


def test_the_number_of_devices_is_unknown_where_hosts_were_not_read(tmp_path: Path) -> None:
    hosts = {f"w-{i}": data for i, data in enumerate(tpu_hosts(TpuJob(), (1.0,) * 5).values())}
    run = write_run(tmp_path / "run", hosts)
    card = card_of(run)
    assert (card.n_devices, bool(card.device)) == (0, True)
    session = Session(str(run), cache=False)
    session.map(run_card.hardware, session.hosts, run_card.software)
    assert run_card.run_card(session).n_devices > 0


def test_files_that_are_too_large_are_not_read(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_card, "_SMALL_BYTES", 0)
    outlined = card_of(pod)
    assert outlined.device.startswith("TPU")
    monkeypatch.setattr(run_card, "_LARGEST_OUTLINE_BYTES", 0)
    monkeypatch.setattr(Session, "get", pytest.fail)
    monkeypatch.setattr(Session, "outline", pytest.fail)
    assert card_of(pod) == RunCard()


def test_gpus_and_the_short_reasons_of_tools(tmp_path: Path) -> None:
    run = write_run(tmp_path / "gpu", {"h": kernels_xspace(host="h")})
    assert "GPU" in card_of(run).device
    session = Session(str(run), cache=False)
    assert get_tool("tf_data_bottleneck_analysis").availability(session).short == "no tf.data"
    assert get_tool("kernel_stats").availability(session).short == ""


def test_badges_come_from_known_results_only() -> None:
    session = Session(str(demo_runs()["keras_slow_input"]), cache=False)
    badge = get_tool("input_pipeline_analyzer").badge
    assert badge(session) == ""
    get_tool("overview_page").run(session, None, {})
    assert badge(session) == "87%"


def test_the_pod_viewers_badge_counts_what_holds_the_job_up() -> None:
    session = Session(str(demo_runs()["tf_two_workers"]), cache=False)
    pod = get_tool("pod_viewer")
    assert pod.badge(session) == ""
    stragglers = pod.run(session, None, {}).tables["stragglers"]
    assert len(stragglers.columns[0].values) == 1
    assert pod.badge(session) == "1 slow"
