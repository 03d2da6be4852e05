"""Limits of requests at both sides, and choices among several unlike hosts, log directories and plugins."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from werkzeug.test import Client, EnvironBuilder
from werkzeug.wrappers import Request

from tb_tpuprof.capture.monitor import MonitorOptions
from tb_tpuprof.errors import BadParameter, Forbidden, RunNotFound
from tb_tpuprof.serve import loader
from tb_tpuprof.serve.capture_request import capture_request
from tb_tpuprof.serve.guard import json_object
from tb_tpuprof.serve.hosts import HostRules
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.monitors import Monitor
from tb_tpuprof.serve.routes import Routes, split_hosts
from tb_tpuprof.serve.rules import CaptureRules
from tests.ingest.xspaces import small_xspace

LOGDIRS = Logdirs((("", "/logs"),))


def request_with(body: bytes) -> Request:
    builder = EnvironBuilder(
        method="POST", data=body, content_type="application/json", headers={"Host": "localhost"}
    )
    return Request(builder.get_environ())


def test_a_body_may_have_256_kib() -> None:
    start, end = b'{"a": "', b'"}'
    whole = start + b"x" * (256 * 1024 - len(start) - len(end)) + end
    assert json_object(request_with(whole))["a"].startswith("xx")
    with pytest.raises(BadParameter) as refused:
        json_object(request_with(whole[:-2] + b"x" + end))
    assert refused.value.parameter == "Content-Length"


def test_every_field_may_be_as_long_as_it_may_be_in_one_body() -> None:
    """The longest list of targets and of workers fit in one body."""
    assert len(json.dumps({"targets": "x" * 71_680, "workers_list": "x" * 71_680})) < 256 * 1024


def test_a_long_name_of_a_host_is_cut_in_the_message() -> None:
    name = "".join(f"{i:03}." for i in range(30)) + "example"
    request = Request(EnvironBuilder(headers={"Host": name}).get_environ())
    with pytest.raises(Forbidden) as refused:
        HostRules().check(request)
    assert f" {name[:80]}." in refused.value.message
    assert refused.value.remedy.endswith(f"={name[:80]}.")


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a,b,c,d", ["a,b,c,d"]),
        ("a,b", ["a,b"]),
        ("a,b,c", ["a,b", "c"]),
        ("c,a,b,c,d,e", ["c", "a,b,c,d", "e"]),
        ("e,,f", ["e", "f"]),
        ("", []),
    ],
)
def test_the_longest_known_host_name_wins(text: str, hosts: list[str]) -> None:
    assert split_hosts(text, ["a,b", "a,b,c,d", "c", "e"]) == hosts


def test_the_size_of_a_run_is_that_of_all_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    whole = small_xspace()
    for host, n_copies in (("a", 1), ("b", 2), ("c", 4)):
        (folder / f"{host}.xplane.pb").write_bytes(whole * n_copies)
    app = Routes(Logdirs.of(str(tmp_path), ""), "profile").apps()["/runs"]
    (run,) = json.loads(Client(app).get("/runs").data)["runs"]
    assert (run["size_bytes"], run["n_hosts"]) == (7 * len(whole), 3)


def test_a_named_folder_answers_only_for_its_own_runs(tmp_path: Path) -> None:
    for logdir in ("one", "two"):
        folder = tmp_path / logdir / "plugins" / "profile" / f"run_of_{logdir}"
        folder.mkdir(parents=True)
        (folder / "h.xplane.pb").write_bytes(small_xspace())
    logdirs = Logdirs.of("", f"one:{tmp_path}/one,two:{tmp_path}/two")
    assert logdirs.run("two/run_of_two").name == "two/run_of_two"
    for name in ("run_of_one", "two/run_of_one", "one/run_of_two"):
        with pytest.raises(RunNotFound):
            logdirs.run(name)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(SimpleNamespace(tpuprof_capture=None), ""), (SimpleNamespace(tpuprof_capture="off"), "off")],
)
def test_a_flag_that_is_no_text_counts_as_missing(
    flags: SimpleNamespace, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TPUPROF_CAPTURE", raising=False)
    rules = CaptureRules.of(flags)
    assert bool(rules.reason) == (expected == "off")


@pytest.mark.parametrize(
    ("name", "value", "is_taken"),
    [
        ("profile", "tensorboard_plugin_profile.profile_plugin_loader:Loader", True),
        ("profile", "somebody.plugin:Loader", True),
        ("other", "xprof.loader:Loader", True),
        ("other", "somebody.xprof:Loader", False),
        ("other", "somebody.plugin:Loader", False),
        ("profile", "tb_tpuprof.serve.loader:ProfileLoader", False),
    ],
)
def test_which_other_plugins_take_the_name(
    name: str, value: str, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = [SimpleNamespace(name=name, value=value)]
    monkeypatch.setattr(loader.metadata, "entry_points", lambda **_group: plugins)
    assert loader.is_name_taken() == is_taken


def test_the_number_of_a_sample_may_have_15_digits(tmp_path: Path) -> None:
    app = Routes(Logdirs.of(str(tmp_path), ""), "profile").apps()["/monitor"]
    errors = [
        json.loads(Client(app).get("/monitor", query_string={"since": "9" * n}).data)["error"]["kind"]
        for n in (15, 16)
    ]
    assert errors[0] != errors[1], "the first names a monitor that does not exist"


@pytest.mark.parametrize(("interval_ms", "patience_s"), [(100, 120), (40_000, 120), (50_000, 150)])
def test_a_monitor_waits_for_three_intervals_at_least(interval_ms: int, patience_s: float) -> None:
    request = capture_request({"targets": "localhost:1"}, CaptureRules(), LOGDIRS)
    assert Monitor(request, MonitorOptions(interval_ms=interval_ms))._patience_s == patience_s


def test_an_unknown_log_directory_is_answered_with_the_known_ones() -> None:
    for logdirs, allowed in (
        (Logdirs((("one", "/1"), ("two", "/2"))), "one of 'one', 'two'"),
        (Logdirs(()), "none: TensorBoard was started without a logdir"),
    ):
        with pytest.raises(BadParameter) as refused:
            capture_request({"targets": "localhost:1", "logdir": "three"}, CaptureRules(), logdirs)
        assert refused.value.parameter == "logdir"
        assert allowed in refused.value.remedy
