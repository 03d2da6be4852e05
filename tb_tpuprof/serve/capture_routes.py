"""Routes that connect to running jobs: capture and monitor. Requests that change something are POSTs
checked by the guard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from werkzeug.wrappers import Request

from tb_tpuprof.capture.monitor import MAX_INTERVAL_MS, MIN_INTERVAL_MS, MonitorOptions
from tb_tpuprof.capture.options import (
    CONTINUOUS_DEFAULTS,
    CONTINUOUS_OPTIONS,
    HOST_NAMES,
    OPTIONS,
    TEXT_OPTIONS,
    Option,
    TextOption,
)
from tb_tpuprof.encode.json import dumps
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.serve.capture_request import capture_request
from tb_tpuprof.serve.captures import Captures
from tb_tpuprof.serve.continuous import Continuous, action_of
from tb_tpuprof.serve.guard import Guard
from tb_tpuprof.serve.hosts import HostRules
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.monitors import Monitors
from tb_tpuprof.serve.respond import Body, wsgi
from tb_tpuprof.serve.rules import CaptureRules

_RUN_NAME: dict[str, object] = {
    "name": "run_name",
    "title": "Run name",
    "kind": "text",
    "unit": "",
    "default": "",
    "min": None,
    "max": None,
    "choices": [],
    "help": "The new run's name, and the session id that the targets get; if empty, the current time.",
    "placeholder": "",
}
_INTERVAL: dict[str, object] = {
    "name": "interval_ms",
    "title": "Interval",
    "kind": "int",
    "unit": "ms",
    "default": 1000,
    "choices": [],
    "min": MIN_INTERVAL_MS,
    "max": MAX_INTERVAL_MS,
    "help": "How long each sample profiles the job; longer steps are missed.",
    "placeholder": "",
}
_MAX_DIGITS = 15


class CaptureRoutes:
    """Routes over the logdirs' folders, within the owner's rules."""

    def __init__(self, logdirs: Logdirs, rules: CaptureRules, hosts: HostRules) -> None:
        self.logdirs = logdirs
        self.rules = rules
        self.guard = Guard(hosts)
        self.continuous = Continuous()
        self.captures = Captures(self.continuous)
        self.monitors = Monitors()

    def apps(self) -> dict[str, Callable[..., object]]:
        """WSGI applications by route."""
        checked = partial(wsgi, check=self.guard.hosts.check)
        return {
            "/capture": checked(self.describe, self.start),
            "/capture/status": checked(self.status),
            "/capture/cancel": checked(None, self.cancel),
            "/continuous": checked(self.continuous_targets, self.change_continuous),
            "/monitor": checked(self.samples, self.watch),
            "/monitor/stop": checked(None, self.stop),
            "/monitor/leave": checked(None, self.leave),
        }

    def describe(self, _request: Request) -> Body:
        """What the dialog needs: the token, the options with their limits, and where runs may be saved."""
        running = self.captures.running()
        return _json(
            {
                "enabled": not self.rules.reason,
                "reason": self.rules.reason,
                "token": self.guard.token,
                "allowed_targets": list(self.rules.allowed_targets),
                "default_targets": self.rules.default_targets,
                "logdirs": [{"name": name, "path": path} for name, path in self.logdirs.paths],
                "options": [
                    *(option_object(option) for option in OPTIONS),
                    _RUN_NAME,
                    *(text_option_object(option) for option in TEXT_OPTIONS),
                ],
                "continuous_options": [
                    *(
                        {
                            **option_object(option),
                            "default": CONTINUOUS_DEFAULTS.get(option.name, option.default),
                        }
                        for option in CONTINUOUS_OPTIONS
                    ),
                    *(text_option_object(option) for option in TEXT_OPTIONS if option.name != HOST_NAMES),
                ],
                "monitor_options": [_INTERVAL],
                "running": running.id if running else None,
            }
        )

    def start(self, request: Request) -> Body:
        """Start a capture."""
        body = self._allowed(request)
        return _json(
            {"capture": self.captures.start(capture_request(body, self.rules, self.logdirs)).id}, 202
        )

    def status(self, request: Request) -> Body:
        """A capture's progress."""
        return _json(self.captures.get(request.args.get("capture", "")).status())

    def cancel(self, request: Request) -> Body:
        """Cancel a capture."""
        self.captures.get(_id(self._allowed(request), "capture")).cancel.set()
        return _json({}, 202)

    def continuous_targets(self, _request: Request) -> Body:
        """The targets that are being profiled continuously, as far as this server has started them."""
        return _json({"running": self.continuous.rows()})

    def change_continuous(self, request: Request) -> Body:
        """Start or stop continuous profiling."""
        body = self._allowed(request)
        action = action_of(body)
        body.pop("action")
        validated = capture_request(body, self.rules, self.logdirs)
        targets = self.continuous.change(action, validated)
        return _json({"targets": targets, "running": self.continuous.rows()})

    def watch(self, request: Request) -> Body:
        """Start monitoring."""
        body = self._allowed(request)
        interval_ms = body.pop("interval_ms", 1000)
        if isinstance(interval_ms, bool) or not isinstance(interval_ms, int):
            raise BadParameter("interval_ms", interval_ms, "a whole number of milliseconds")
        validated = capture_request(body, self.rules, self.logdirs)
        return _json(
            {"monitor": self.monitors.start(validated, MonitorOptions(interval_ms=interval_ms)).id}, 202
        )

    def samples(self, request: Request) -> Body:
        """A monitor's samples from number `since` on."""
        since = request.args.get("since", "0")
        if not since.isascii() or not since.isdigit() or len(since) > _MAX_DIGITS:
            raise BadParameter("since", since, "the number of a sample")
        return _json(self.monitors.get(request.args.get("monitor", "")).status(int(since)))

    def stop(self, request: Request) -> Body:
        """Stop monitoring."""
        self.monitors.get(_id(self._allowed(request), "monitor")).stop()
        return _json({}, 202)

    def leave(self, request: Request) -> Body:
        """Stop monitoring soon, unless the page requests samples again."""
        self.monitors.get(_id(self._allowed(request), "monitor")).leave()
        return _json({}, 202)

    def _allowed(self, request: Request) -> dict[str, Any]:
        body = self.guard.body(request)
        self.rules.check_on()
        return body


def option_object(option: Option) -> dict[str, object]:
    """One option as the dialog shows it."""
    return {
        "name": option.name,
        "title": option.title,
        "kind": "choice" if option.choices else "int",
        "unit": option.unit,
        "default": option.default,
        "min": option.minimum,
        "max": option.maximum,
        "choices": [{"value": value, "title": title, "cost": cost} for value, title, cost in option.choices],
        "help": option.help,
        "placeholder": "",
    }


def text_option_object(option: TextOption) -> dict[str, object]:
    """One option that is typed as text, as the dialog shows it."""
    return {
        "name": option.name,
        "title": option.title,
        "kind": "lines" if option.has_lines else "text",
        "unit": "",
        "default": "",
        "min": None,
        "max": None,
        "choices": [],
        "help": option.help,
        "placeholder": option.placeholder,
    }


def _id(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name, "")
    if not isinstance(value, str) or set(body) != {name}:
        raise BadParameter(name, value, "the id that starting returned, and no other field")
    return value


def _json(value: object, status: int = 200) -> Body:
    return Body(dumps(value), "application/json", status=status)
