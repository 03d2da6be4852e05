"""What capturing and monitoring answer, field by field as the page's types declare it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from tb_tpuprof.serve.logdirs import Logdirs
from tests.capture.double import free_target, good, serving
from tests.serve.test_capture import Page
from tests.test_contract import interfaces

TYPES = interfaces("capture.ts")


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(Logdirs.of(str(tmp_path / "logs"), ""))


def error_of(response: TestResponse) -> dict[str, str]:
    """The error object of an answer."""
    error: dict[str, str] = json.loads(response.data)["error"]
    return error


def test_what_the_dialog_is_told(page: Page) -> None:
    answer = json.loads(page.get("/capture").data)
    assert set(answer) == TYPES["CaptureInfo"]
    for option in (*answer["options"], *answer["continuous_options"], *answer["monitor_options"]):
        assert set(option) == TYPES["CaptureOption"]
        assert all(set(choice) == TYPES["CaptureChoice"] for choice in option["choices"])
    assert [option["name"] for option in answer["monitor_options"]] == ["interval_ms"]


def test_a_capture_s_status_and_that_it_runs(page: Page) -> None:
    with serving(good(1.0)) as (target, _):
        assert json.loads(page.get("/capture").data)["running"] is None
        started = page.capture(target)
        assert json.loads(page.get("/capture").data)["running"] == json.loads(started.data)["capture"]
        status = page.ended(started)
    assert json.loads(page.get("/capture").data)["running"] is None
    assert set(status) == TYPES["CaptureStatus"]
    assert all(set(row) == TYPES["TargetStatus"] for row in status["targets"])


def test_a_monitor_s_answer(page: Page) -> None:
    monitor = json.loads(page.post("/monitor", {"targets": str(free_target()), "interval_ms": 10}).data)[
        "monitor"
    ]
    for _ in range(200):
        answer = json.loads(page.get("/monitor", monitor=monitor).data)
        if answer["samples"]:
            break
        time.sleep(0.02)
    page.post("/monitor/stop", {"monitor": monitor})
    assert set(answer) == TYPES["MonitorAnswer"]
    assert TYPES["MonitorSample"] <= set(answer["samples"][0])


@pytest.mark.parametrize(("body", "parameter"), [
    ({"targets": "worker"}, "targets"),
    ({"targets": "a:1", "options": {"duration_ms": 0}}, "duration_ms"),
    ({"targets": "a:1", "options": {"run_name": "../x"}}, "run_name"),
    ({"targets": "a:1", "logdir": "elsewhere"}, "logdir"),
])  # fmt: skip
def test_an_error_names_the_field_that_is_wrong(page: Page, body: dict[str, object], parameter: str) -> None:
    assert error_of(page.post("/capture", body))["parameter"] == parameter


def test_an_error_of_no_field_names_none(page: Page, tmp_path: Path) -> None:
    assert set(error_of(page.get("/tools", run=str(tmp_path)))) == {"kind", "message", "remedy"}
