"""Capturing from the page: permissions, refusals, and the status of captures and monitors during and after
a run.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from werkzeug.test import Client, TestResponse

from tb_tpuprof.capture.messages import MONITOR, message_class
from tb_tpuprof.capture.targets import Target
from tb_tpuprof.serve import monitors
from tb_tpuprof.serve.guard import MAX_BODY_BYTES
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.plugin import make_plugin
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.serve.rules import CaptureRules
from tests.capture.double import free_target, good, hanging, raw, serving, status
from tests.ingest.xspaces import small_xspace

QUICK = {"duration_ms": 50, "num_tracing_attempts": 1}


class Page:
    """The plugin's page: sends the same requests as its scripts."""

    def __init__(self, logdirs: Logdirs, rules: CaptureRules | None = None) -> None:
        self.routes = Routes(logdirs, "profile", rules)
        self.apps = self.routes.apps()
        self.token = json.loads(self.get("/capture").data)["token"]

    def get(self, path: str, **query: object) -> TestResponse:
        return Client(self.apps[path]).get(
            path, query_string={name: str(value) for name, value in query.items()}
        )

    def post(self, path: str, body: object, **headers: str) -> TestResponse:
        defaults = {
            "X-Tpuprof-Token": self.token,
            "Origin": "http://localhost",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Client(self.apps[path]).post(
            path,
            data=content,
            headers=defaults,
            content_type=defaults.pop("Content-Type", "application/json"),
        )

    def capture(self, *targets: Target, **fields: object) -> TestResponse:
        body = {"targets": ", ".join(str(target) for target in targets), "options": QUICK, **fields}
        return self.post("/capture", body)

    def ended(self, response: TestResponse) -> dict[str, Any]:
        """The capture's last status."""
        assert response.status_code == 202, response.data
        capture = json.loads(response.data)["capture"]
        assert self.routes.capture.captures.get(capture).wait(20)
        capture_status: dict[str, Any] = json.loads(self.get("/capture/status", capture=capture).data)
        return capture_status


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(Logdirs.of(str(tmp_path / "logs"), ""))


def kind_of(response: TestResponse) -> str:
    error = json.loads(response.data)["error"]
    assert error["message"]
    assert error["remedy"]
    return str(error["kind"])


def test_what_the_dialog_is_told(page: Page, tmp_path: Path) -> None:
    answer = json.loads(page.get("/capture").data)
    assert (answer["enabled"], answer["reason"], answer["allowed_targets"], answer["default_targets"]) == (
        True,
        "",
        [],
        "",
    )
    assert answer["logdirs"] == [{"name": "", "path": str(tmp_path / "logs")}]
    assert len(answer["token"]) >= 32
    options = {option["name"]: option for option in answer["options"]}
    assert list(options) == [
        "duration_ms",
        "host_tracer_level",
        "device_tracer_level",
        "python_tracer_level",
        "delay_ms",
        "num_tracing_attempts",
        "timeout_s",
        "run_name",
        "advanced_configuration",
        "host_traceme_filter_mask",
        "override_hostnames",
    ]
    assert {option["name"]: option["default"] for option in answer["continuous_options"]} == {
        "host_tracer_level": 0,
        "device_tracer_level": 1,
        "python_tracer_level": 0,
        "advanced_configuration": "",
        "host_traceme_filter_mask": "",
    }
    assert [choice["value"] for choice in options["host_tracer_level"]["choices"]] == [0, 1, 2, 3]
    assert all(choice["cost"] for option in options.values() for choice in option["choices"])
    assert all(option["help"] for option in options.values())
    assert Page(Logdirs.of("x", "")).token != page.token


def test_a_capture_shows_among_the_runs_at_once(page: Page) -> None:
    with serving(good(0.1)) as (a, _), serving(good(0.1)) as (b, _):
        capture_status = page.ended(page.capture(a, b))
    assert (capture_status["state"], capture_status["message"]) == ("done", "")
    assert [target["state"] for target in capture_status["targets"]] == ["saved", "saved"]
    (run,) = json.loads(page.get("/runs").data)["runs"]
    assert (run["run"], run["n_hosts"], run["state"]) == (capture_status["run"], 2, "ok")
    tools = json.loads(page.get("/tools", run=capture_status["run"]).data)
    assert {host["host"] for host in tools["hosts"]} == {
        target["host"] for target in capture_status["targets"]
    }


def test_a_run_of_a_given_name_in_a_named_logdir(tmp_path: Path) -> None:
    page = Page(Logdirs.of("", f"a:{tmp_path / 'a'},b:{tmp_path / 'b'}"))
    with serving(good()) as (target, _):
        capture_status = page.ended(
            page.capture(target, logdir="b", options={**QUICK, "run_name": "before_fix"})
        )
        assert capture_status["run"] == "b/before_fix"
        assert (tmp_path / "b" / "plugins" / "profile" / "before_fix").is_dir()
        again = page.ended(page.capture(target, logdir="b", options={**QUICK, "run_name": "before_fix"}))
    assert again["state"] == "failed"
    assert "run_name" in again["message"]


def test_a_failed_target_is_named_and_the_good_one_kept(page: Page) -> None:
    with serving(good()) as (a, _), serving(status(grpc.StatusCode.INTERNAL, "boom")) as (b, _):
        capture_status = page.ended(page.capture(a, b))
    assert capture_status["state"] == "done"
    assert "1 of 2" in capture_status["message"]
    assert "boom" in capture_status["message"]
    assert capture_status["targets"][1]["message"]


def test_nothing_saved_is_a_failure_without_a_run(page: Page) -> None:
    capture_status = page.ended(page.capture(free_target(), free_target()))
    assert capture_status["state"] == "failed"
    assert "None of the 2" in capture_status["message"]
    assert "start_server" in capture_status["remedy"]
    assert json.loads(page.get("/runs").data)["runs"] == []


def test_progress_cancel_and_one_capture_at_a_time(page: Page) -> None:
    gone = threading.Event()
    with serving(hanging(gone)) as (target, double):
        started = page.capture(target, options={**QUICK, "duration_ms": 60_000})
        capture = json.loads(started.data)["capture"]
        while not double.requests:
            time.sleep(0.01)
        begun = time.monotonic()
        capture_status = json.loads(page.get("/capture/status", capture=capture).data)
        assert page.get("/runs").status_code == 200
        assert time.monotonic() - begun < 1, "other requests wait for the capture"
        assert capture_status["state"] == "running"
        (progress,) = capture_status["targets"]
        assert (progress["state"], progress["attempt"], progress["profiling_ms"]) == ("profiling", 1, 60_000)
        assert 50_000 < progress["remaining_ms"] <= 60_000
        busy = page.capture(target)
        assert (busy.status_code, kind_of(busy)) == (409, "capture_busy")
        assert str(target) in json.loads(busy.data)["error"]["message"]
        assert page.post("/capture/cancel", {"capture": capture}).status_code == 202
        capture_status = page.ended(started)
        assert gone.wait(2)
    assert (capture_status["state"], capture_status["targets"][0]["state"]) == ("cancelled", "cancelled")
    with serving(good()) as (target, _):
        assert page.ended(page.capture(target))["state"] == "done"


def test_old_captures_are_forgotten(page: Page) -> None:
    first = page.capture(free_target())
    page.ended(first)
    for _ in range(16):
        page.ended(page.capture(free_target()))
    gone = page.get("/capture/status", capture=json.loads(first.data)["capture"])
    assert (gone.status_code, kind_of(gone)) == (404, "capture_not_found")


FOREIGN: list[dict[str, str]] = [
    {"X_Tpuprof_Token": "wrong"},
    {"X_Tpuprof_Token": ""},
    {"X_Tpuprof_Token": "ü"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize(
    "path", ["/capture", "/capture/cancel", "/monitor", "/monitor/stop", "/monitor/leave"]
)
def test_requests_from_elsewhere_are_refused(page: Page, headers: dict[str, str], path: str) -> None:
    with serving(good()) as (target, double):
        response = page.post(path, {"targets": str(target)}, **headers)
        assert (response.status_code, kind_of(response)) == (403, "forbidden")
        assert not double.requests


def test_a_proxy_may_rename_the_host(page: Page) -> None:
    renamed = page.post(
        "/capture", {"targets": "x"}, Origin="https://colab.example", Sec_Fetch_Site="same-origin"
    )
    assert kind_of(renamed) == "bad_parameter"


@pytest.mark.parametrize("path", ["/capture/cancel", "/monitor/stop", "/monitor/leave"])
def test_what_changes_something_is_no_get(page: Page, path: str) -> None:
    response = page.get(path)
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert Client(page.apps["/runs"]).post("/runs").status_code == 405


def test_the_owner_may_switch_it_off(tmp_path: Path) -> None:
    page = Page(Logdirs.of(str(tmp_path), ""), CaptureRules.of(SimpleNamespace(tpuprof_capture="off")))
    answer = json.loads(page.get("/capture").data)
    assert not answer["enabled"]
    assert "--tpuprof_capture" in answer["reason"]
    with serving(good()) as (target, double):
        for path in ("/capture", "/monitor"):
            assert kind_of(page.post(path, {"targets": str(target)})) == "forbidden"
        assert not double.requests


def test_the_owner_may_allow_some_targets_only(tmp_path: Path) -> None:
    with serving(good()) as (target, double):
        rules = CaptureRules.of(
            SimpleNamespace(tpuprof_capture_targets=f"*.internal:8466, 127.0.0.*:{target.port}")
        )
        page = Page(Logdirs.of(str(tmp_path), ""), rules)
        for path in ("/capture", "/monitor"):
            refused = page.post(path, {"targets": f"{target}, 127.0.0.evil.invalid:{target.port}"})
            assert (refused.status_code, kind_of(refused)) == (403, "forbidden")
            assert "127.0.0.evil.invalid" in json.loads(refused.data)["error"]["message"]
        workers = page.capture(target, workers_list=f"other:{target.port}")
        assert kind_of(workers) == "forbidden"
        assert not double.requests
        assert page.ended(page.capture(target))["state"] == "done"


def test_rules_come_from_flags_then_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_CAPTURE", "OFF")
    monkeypatch.setenv("TPUPROF_CAPTURE_TARGETS", "A:1,b:*")
    assert CaptureRules.of(None).reason
    assert CaptureRules.of(None).allowed_targets == ("a:1", "b:*")
    flags = SimpleNamespace(
        tpuprof_capture="on", tpuprof_capture_targets="c:*", master_tpu_unsecure_channel="h:8466"
    )
    assert CaptureRules.of(flags) == CaptureRules("", ("c:*",), "h:8466")
    assert CaptureRules.of(SimpleNamespace(tpuprof_capture="maybe")).reason


def test_the_plugin_passes_the_flags_on(tmp_path: Path) -> None:
    flags = SimpleNamespace(
        logdir_spec="",
        master_tpu_unsecure_channel="h:8466",
        tpuprof_capture="off",
        tpuprof_capture_targets="",
    )
    apps = make_plugin(
        SimpleNamespace(logdir=str(tmp_path), flags=flags), "profile", "Profile"
    ).get_plugin_apps()
    answer = json.loads(Client(apps["/capture"]).get("/capture").data)
    assert (answer["default_targets"], answer["enabled"]) == ("h:8466", False)


HOSTILE: dict[str, object] = {
    "no JSON": b"targets=localhost:1",
    "no UTF-8": b'{"targets": "\xff"}',
    "deep": b"[" * 60_000,
    "deep object": b'{"options":' * 5000,
    "a list": [],
    "a number": b"1" * 5000,
    "nothing": b"",
    "too long": b'{"targets": "' + b"a" * MAX_BODY_BYTES + b'"}',
    "no targets": {},
    "targets is null": {"targets": None},
    "targets is a list": {"targets": ["localhost:1"]},
    "no port": {"targets": "localhost"},
    "port 0": {"targets": "localhost:0"},
    "large port": {"targets": "localhost:65536"},
    "other digits": {"targets": "localhost:٣"},
    "a path": {"targets": "unix:/var/run/docker.sock"},
    "a path with a port": {"targets": "unix:///x:1"},
    "a URL": {"targets": "http://localhost:6006"},
    "user": {"targets": "user@localhost:1"},
    "twice": {"targets": "localhost:1,LOCALHOST:1"},
    "too many": {"targets": ",".join(f"h{i}:1" for i in range(257))},
    "new line": {"targets": "localhost:1\nx:2"},
    "unknown field": {"targets": "localhost:1", "repository_root": "/etc"},
    "options is a list": {"targets": "localhost:1", "options": [1]},
    "unknown option": {"targets": "localhost:1", "options": {"session_id": "x"}},
    "a fraction": {"targets": "localhost:1", "options": {"duration_ms": 1.5}},
    "true": {"targets": "localhost:1", "options": {"duration_ms": True}},
    "NaN": b'{"targets": "localhost:1", "options": {"duration_ms": NaN}}',
    "too short": {"targets": "localhost:1", "options": {"duration_ms": 0}},
    "too long a time": {"targets": "localhost:1", "options": {"duration_ms": 600_001}},
    "level 4": {"targets": "localhost:1", "options": {"host_tracer_level": 4}},
    "run above": {"targets": "localhost:1", "options": {"run_name": "../x"}},
    "hidden run": {"targets": "localhost:1", "options": {"run_name": ".x"}},
    "run below": {"targets": "localhost:1", "options": {"run_name": "a/b"}},
    "run NUL": {"targets": "localhost:1", "options": {"run_name": "a\0b"}},
    "other logdir": {"targets": "localhost:1", "logdir": "/etc"},
    "tpu and targets": {"targets": "localhost:1", "tpu": "mine"},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("path", ["/capture", "/monitor"])
def test_hostile_bodies(page: Page, name: str, path: str) -> None:
    response = page.post(path, HOSTILE[name])
    assert (response.status_code, kind_of(response)) == (400, "bad_parameter")
    assert len(response.data) < 4000
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tb_tpuprof capture")]


def test_other_content_types_and_bodies_without_a_length(page: Page) -> None:
    body = json.dumps({"targets": "localhost:1"}).encode()
    assert kind_of(page.post("/capture", body, Content_Type="text/plain")) == "bad_parameter"
    headers = {"X-Tpuprof-Token": page.token, "Transfer-Encoding": "chunked"}
    response = Client(page.apps["/capture"]).post(
        "/capture", headers=headers, content_type="application/json"
    )
    assert kind_of(response) == "bad_parameter"


@pytest.mark.parametrize("body", [{}, {"capture": 1}, {"capture": "x", "more": 1}])
def test_bad_ids(page: Page, body: dict[str, object]) -> None:
    assert kind_of(page.post("/capture/cancel", body)) == "bad_parameter"
    assert kind_of(page.post("/capture/cancel", {"capture": "x" * 1000})) == "capture_not_found"
    assert kind_of(page.get("/monitor", monitor="x")) == "capture_not_found"


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def watched(page: Page) -> Iterator[Callable[..., str]]:
    """Starts monitors, and waits for the end of all."""
    ids: list[str] = []

    def start(target: Target, **fields: object) -> str:
        response = page.post("/monitor", {"targets": str(target), "interval_ms": 100, **fields})
        assert response.status_code == 202, response.data
        ids.append(json.loads(response.data)["monitor"])
        return ids[-1]

    yield start
    for monitor in ids:
        running = page.routes.capture.monitors.get(monitor)
        running.stop()
        assert running.wait(10)


def test_a_monitor_without_an_interval_has_the_one_that_the_dialog_shows(page: Page) -> None:
    (option,) = json.loads(page.get("/capture").data)["monitor_options"]
    monitor = json.loads(page.post("/monitor", {"targets": str(free_target())}).data)["monitor"]
    running = page.routes.capture.monitors.get(monitor)
    running.stop()
    assert running.wait(10)
    assert running._options.interval_ms == option["default"] == 1000


def samples(page: Page, monitor: str, since: int = 0) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(page.get("/monitor", monitor=monitor, since=since).data)
    return answer


def test_a_monitor_from_short_profiles(page: Page, watched: Callable[..., str]) -> None:
    with serving(good(xspace=small_xspace())) as (target, _):
        monitor = watched(target)
        wait_for(lambda: len(samples(page, monitor)["samples"]) >= 3)
        answer = samples(page, monitor, since=2)
        assert (answer["state"], answer["source"], answer["samples"][0]["n"]) == ("running", "profile", 2)
        assert answer["samples"][0]["target"] == str(target)
        assert page.post("/monitor/stop", {"monitor": monitor}).status_code == 202
        wait_for(lambda: samples(page, monitor)["state"] == "stopped")


def test_a_monitor_through_the_service(page: Page, watched: Callable[..., str]) -> None:
    result = message_class("MonitorResult")(response_type=1, matrix_unit_utilization_percent=31.0)
    message = bytes(
        message_class("MonitorResponse")(data=b"TPU v4", monitor_result=result).SerializeToString()
    )
    with serving(good(), methods={MONITOR: (raw(message),)}) as (target, _):
        monitor = watched(target)
        wait_for(lambda: samples(page, monitor)["samples"])
        answer = samples(page, monitor)
    assert answer["source"] == "monitor_rpc"
    assert answer["samples"][0]["matrix_unit_fraction"] == pytest.approx(0.31)


def test_a_monitor_of_nobody_fails_in_words(page: Page, watched: Callable[..., str]) -> None:
    monitor = watched(free_target())
    wait_for(lambda: samples(page, monitor)["state"] != "running")
    answer = samples(page, monitor)
    assert answer["state"] == "failed"
    assert "refused" in answer["message"]
    assert answer["remedy"]


def test_a_monitor_that_nobody_asks_about_stops(
    page: Page, watched: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "FORGOTTEN_AFTER_S", 0.3)
    with serving(good()) as (target, _):
        monitor = watched(target)
        assert page.routes.capture.monitors.get(monitor).wait(10)
    assert samples(page, monitor)["state"] == "stopped"
    assert "no page" in samples(page, monitor)["message"]


def test_a_monitor_whose_page_goes_stops_in_a_moment(
    page: Page, watched: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call under way is cut off too: the job is free for others."""
    monkeypatch.setattr(monitors, "LEFT_AFTER_S", 0.2)
    with serving(hanging(threading.Event())) as (target, _):
        monitor = watched(target, interval_ms=60_000)
        assert page.post("/monitor/leave", {"monitor": monitor}).status_code == 202
        begun = time.monotonic()
        assert page.routes.capture.monitors.get(monitor).wait(10)
        assert time.monotonic() - begun < 5
    assert "no page" in samples(page, monitor)["message"]


def test_a_monitor_whose_page_is_loaded_again_goes_on(
    page: Page, watched: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "LEFT_AFTER_S", 0.8)
    monkeypatch.setattr(monitors, "_SETTLED_S", 0.0)
    with serving(good()) as (target, _):
        monitor = watched(target)
        assert page.post("/monitor/leave", {"monitor": monitor}).status_code == 202
        samples(page, monitor)
        assert not page.routes.capture.monitors.get(monitor).wait(1.0)
        assert samples(page, monitor)["state"] == "running"


def test_a_few_monitors_at_a_time(page: Page, watched: Callable[..., str]) -> None:
    with serving(hanging(threading.Event())) as (target, _):
        for _ in range(monitors.MAX_RUNNING):
            watched(target)
        refused = page.post("/monitor", {"targets": str(target)})
        assert (refused.status_code, kind_of(refused)) == (409, "capture_busy")


@pytest.mark.parametrize(
    "fields", [{"interval_ms": "1"}, {"interval_ms": True}, {"interval_ms": 0}, {"interval_ms": 1e9}]
)
def test_bad_intervals(page: Page, fields: dict[str, object]) -> None:
    assert kind_of(page.post("/monitor", {"targets": "localhost:1", **fields})) == "bad_parameter"


@pytest.mark.parametrize("since", ["-1", "x", "1" * 40, "٣"])
def test_bad_sample_numbers(page: Page, since: str) -> None:
    assert kind_of(page.get("/monitor", monitor="x", since=since)) == "bad_parameter"
