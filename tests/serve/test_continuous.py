"""Continuous profiling from the page: its answers, what it remembers of targets, and who may do it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.capture.targets import Target
from tb_tpuprof.serve.continuous import MAX_REMEMBERED, Continuous
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.rules import CaptureRules
from tests.capture.double import continuously_profiled, free_target, good, serving
from tests.serve.test_capture import Page, kind_of
from tests.test_contract import interfaces

TYPES = interfaces("capture.ts")


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(Logdirs.of(str(tmp_path / "logs"), ""))


def change(page: Page, action: str, *targets: Target, **fields: object) -> dict[str, Any]:
    body = {"action": action, "targets": ", ".join(map(str, targets)), **fields}
    response = page.post("/continuous", body)
    assert response.status_code == 200, response.data
    answer: dict[str, Any] = json.loads(response.data)
    assert set(answer) == TYPES["ContinuousChange"]
    assert all(set(row) == TYPES["ContinuousOutcome"] for row in answer["targets"])
    assert all(set(row) == TYPES["ContinuousTarget"] for row in answer["running"])
    return answer


def running(page: Page) -> list[str]:
    answer = json.loads(page.get("/continuous").data)
    assert set(answer) == TYPES["ContinuousAnswer"]
    return [row["target"] for row in answer["running"]]


def test_start_snapshot_stop(page: Page, tmp_path: Path) -> None:
    with continuously_profiled() as (a, double), continuously_profiled() as (b, _):
        before_ms = time.time_ns() // 10**6
        options = {"host_tracer_level": 1, "advanced_configuration": "k=true\nn=2"}
        answer = change(page, "start", a, b, options=options)
        assert [(row["target"], row["is_ok"]) for row in answer["targets"]] == [
            (str(a), True),
            (str(b), True),
        ]
        assert before_ms <= answer["running"][0]["started_unix_ms"] <= time.time_ns() // 10**6
        assert running(page) == [str(a), str(b)]
        status = page.ended(page.capture(a, is_snapshot=True, options={"run_name": "shot"}))
        assert (status["state"], status["run"]) == ("done", "shot")
        assert running(page) == [str(a), str(b)]
        answer = change(page, "stop", a)
        assert [row["target"] for row in answer["running"]] == [str(b)]
    opts = double.requests[0].opts
    assert opts.host_tracer_level == 1
    assert {one.key for one in opts.advanced_configuration} == {"k", "n", "tpu_circular_buffer_tracing"}
    assert len(list((tmp_path / "logs" / "plugins" / "profile" / "shot").iterdir())) == 1


def test_failures_are_told_by_target(page: Page) -> None:
    nobody = free_target()
    with continuously_profiled() as (a, _), serving(good()) as (old, _):
        answer = change(page, "start", a, old, nobody)
        assert [row["is_ok"] for row in answer["targets"]] == [True, False, False]
        assert "cannot profile continuously" in answer["targets"][1]["message"]
        assert answer["targets"][1]["remedy"]
        assert "refused" in answer["targets"][2]["message"]
        assert running(page) == [str(a)]


def test_what_somebody_else_started_is_learned(page: Page, tmp_path: Path) -> None:
    other = Page(Logdirs.of(str(tmp_path / "others"), ""))
    with continuously_profiled() as (a, _), continuously_profiled() as (b, _):
        change(other, "start", a, b)
        assert running(page) == []
        assert not change(page, "start", a)["targets"][0]["is_ok"]
        assert running(page) == [str(a)]
        assert page.ended(page.capture(b, is_snapshot=True, options={}))["state"] == "done"
        answer = json.loads(page.get("/continuous").data)
        assert [(row["target"], row["started_unix_ms"]) for row in answer["running"]] == [
            (str(a), None),
            (str(b), None),
        ]
        change(other, "stop", a, b)
        assert running(page) == [str(a), str(b)]
        assert page.ended(page.capture(a, is_snapshot=True, options={}))["state"] == "failed"
        assert running(page) == [str(b)]
        change(page, "stop", b)
    assert running(page) == []


def test_a_job_that_is_gone_is_forgotten(page: Page) -> None:
    with continuously_profiled() as (a, _):
        change(page, "start", a)
    assert running(page) == [str(a)]
    assert not change(page, "stop", a)["targets"][0]["is_ok"]
    assert running(page) == []


def test_bad_requests(page: Page) -> None:
    target = str(free_target())
    for body, parameter in (
        ({"targets": target}, "action"),
        ({"targets": target, "action": "pause"}, "action"),
        ({"targets": target, "action": ["start"]}, "action"),
        ({"targets": "nonsense", "action": "start"}, "targets"),
        ({"targets": target, "action": "start", "other": 1}, "other"),
        (
            {"targets": target, "action": "start", "options": {"advanced_configuration": "x"}},
            "advanced_configuration",
        ),
        (
            {"targets": target, "action": "start", "options": {"override_hostnames": "a,b"}},
            "override_hostnames",
        ),
    ):
        refused = page.post("/continuous", body)
        assert (refused.status_code, kind_of(refused)) == (400, "bad_parameter")
        assert json.loads(refused.data)["error"]["parameter"] == parameter
    refused = page.capture(free_target(), is_snapshot="yes")
    assert json.loads(refused.data)["error"]["parameter"] == "is_snapshot"
    assert (
        page.post("/continuous", {"targets": target, "action": "start"}, X_Tpuprof_Token="x").status_code
        == 403
    )


def test_the_owner_s_rules_hold(tmp_path: Path) -> None:
    logdirs = Logdirs.of(str(tmp_path), "")
    page = Page(logdirs, CaptureRules(allowed_targets=("*.internal:8466",)))
    refused = page.post("/continuous", {"targets": "other:1", "action": "start"})
    assert (refused.status_code, kind_of(refused)) == (403, "forbidden")
    page = Page(logdirs, CaptureRules(reason="off"))
    assert page.post("/continuous", {"targets": "a:1", "action": "stop"}).status_code == 403


def test_the_memory_of_targets_is_bounded() -> None:
    continuous = Continuous()
    for i in range(MAX_REMEMBERED + 3):
        continuous.note("start", f"t{i}", "")
    rows = [row["target"] for row in continuous.rows()]
    assert (len(rows), rows[0]) == (MAX_REMEMBERED, "t3")
    continuous.note("snapshot", "t5", "empty")  # it is still profiled
    assert "t5" in [row["target"] for row in continuous.rows()]
    continuous.note("stop", "t5", "unreachable")  # nobody knows
    assert "t5" in [row["target"] for row in continuous.rows()]
