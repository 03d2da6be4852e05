"""The HTTP routes, requested as by a browser, on good, damaged, changing and missing runs."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from tb_tpuprof.cli import main
from tb_tpuprof.serve import loader
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.plugin import make_plugin
from tb_tpuprof.serve.respond import respond
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.tools import all_tools, verdicts
from tests.ingest.other_files import OPERATIONS
from tests.ingest.xspaces import small_xspace

SESSION = "2025_01_02_03_04_05"
RUN = f"train/{SESSION}"
NOT_IN_THIS_RUN = {
    "communication",
    "inference_profile",
    "megascale_stats",
    "saved_pages",
    "tf_data_bottleneck_analysis",
    "hlo_stats",
    "op_profile",
    "roofline_model",
    "kernel_stats",
    "memory_profile",
    "memory_viewer",
    "graph_viewer",
    "memory_snapshot",
    "tpu_compatibility",
}


@pytest.fixture
def logdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPUPROF_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "logs" / "train" / "plugins" / "profile" / SESSION
    folder.mkdir(parents=True)
    for host in ("a", "b"):
        (folder / f"{host}.xplane.pb").write_bytes(small_xspace())
    broken = tmp_path / "logs" / "train" / "plugins" / "profile" / "broken"
    broken.mkdir()
    (broken / "h.xplane.pb").write_bytes(small_xspace() + b"\0" * 5)
    return tmp_path / "logs"


class Asking:
    """A client of the plugin's routes."""

    def __init__(self, logdir: Path) -> None:
        self.apps = Routes(Logdirs.of(str(logdir), ""), "profile").apps()

    def __call__(
        self, path: str, headers: dict[str, str] | None = None, method: str = "GET", **query: str
    ) -> TestResponse:
        app = self.apps.get(path) or self.apps["/" + path.split("/")[1] + "/*"]
        return Client(app).open(path, method=method, query_string=query, headers=headers)


@pytest.fixture
def ask(logdir: Path) -> Iterator[Asking]:
    return Asking(logdir)


def error_of(response: TestResponse) -> dict[str, Any]:
    """The error object; every error has a kind, a message and is JSON."""
    error: dict[str, Any] = json.loads(response.data)["error"]
    assert error["kind"]
    assert error["message"]
    return error


def test_tools_are_listed_with_the_runs_as_with_each_run(ask: Asking) -> None:
    listed = json.loads(ask("/runs").data)
    of_run = json.loads(ask("/tools", run=listed["runs"][0]["run"]).data)["tools"]
    assert listed["tools"] == [
        {name: tool[name] for name in ("name", "title", "group", "summary")} for tool in of_run
    ]
    assert len(listed["tools"]) > 10


def test_runs_and_tools(ask: Asking) -> None:
    runs = json.loads(ask("/runs").data)["runs"]
    assert {run["run"] for run in runs} == {RUN, "train/broken"}
    answer = json.loads(ask("/tools", run=RUN).data)
    assert [host["host"] for host in answer["hosts"]] == ["a", "b"]
    assert [tool["name"] for tool in answer["tools"]] == [
        tool.name for tool in all_tools() if not tool.only_for
    ]
    off = [tool for tool in answer["tools"] if not tool["available"]]
    assert off
    assert all(tool["reason"] and tool["remedy"] and 0 < len(tool["short_reason"]) <= 12 for tool in off)


def test_where_source_code_is_comes_with_the_runs(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(ask("/runs").data)["sources"] == {"links": [], "problems": []}
    monkeypatch.setenv("TPUPROF_SOURCE", "/a=https://host/x;/a/b=http://other/{path};/c=ftp://host")
    monkeypatch.setenv("TPUPROF_SOURCE_FILES", "relative")
    sources = json.loads(ask("/runs").data)["sources"]
    assert sources["links"] == [
        {"prefix": "/a/b", "address": "http://other/{path}"},
        {"prefix": "/a", "address": "https://host/x"},
    ]
    assert [problem.partition(":")[0] for problem in sources["problems"]] == [
        "TPUPROF_SOURCE",
        "TPUPROF_SOURCE_FILES",
    ]


def test_the_card_of_a_run_names_devices_framework_and_damage(ask: Asking) -> None:
    card = json.loads(ask("/card", run=RUN).data)
    assert (card["device"], card["n_devices"], card["damaged"]) == ("CPU", 0, [])
    assert json.loads(ask("/card", run="train/broken").data)["damaged"] == ["h"]
    assert error_of(ask("/card", run="gone"))["kind"] == "run_not_found"
    assert error_of(ask("/card"))["kind"] == "bad_parameter"


def test_badges_say_what_is_known_and_read_nothing(ask: Asking) -> None:
    assert json.loads(ask("/badges", run=RUN).data) == {"run": RUN, "badges": {}}
    share = json.loads(ask("/data/overview_page", run=RUN).data)["scalars"]["input_fraction"]["value"]
    badges = json.loads(ask("/badges", run=RUN).data)["badges"]
    assert badges.get("input_pipeline_analyzer", "0%") == f"{share * 100:.0f}%"


@pytest.mark.parametrize("tool", [tool.name for tool in all_tools()])
def test_every_tool_answers_and_equals_the_command_line(
    ask: Asking, tool: str, logdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    response = ask(f"/data/{tool}", run=RUN, hosts="a")
    show = [
        "show",
        tool,
        str(logdir / "train" / "plugins" / "profile" / SESSION),
        "--host",
        "a",
        "--format",
        "json",
    ]
    if tool in NOT_IN_THIS_RUN:
        assert (response.status_code, error_of(response)["kind"]) == (409, "tool_unavailable")
        assert main(show) == 5
        return
    assert response.status_code == 200
    assert main(show) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {**json.loads(response.data), "run": ""} == {**shown, "run": ""}


@pytest.mark.parametrize(
    ("path", "query", "status", "kind"),
    [
        ("/data/trace_viewer", {"run": "../../etc"}, 404, "run_not_found"),
        ("/data/trace_viewer", {"run": "gone"}, 404, "run_not_found"),
        ("/data/trace_viewer", {}, 400, "bad_parameter"),
        ("/data/nonsense", {"run": RUN}, 404, "tool_not_found"),
        ("/data/trace_viewer", {"run": RUN, "hosts": "nobody"}, 404, "host_not_found"),
        ("/data/trace_viewer", {"run": RUN, "width_px": "wide"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "width_px": "1e999"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "start_ps": "nan"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "start_ps": "9", "end_ps": "3"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "tracks": "1,x"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "width_px": "-5"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "width_px": "20001"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "end_ps": "-inf"}, 400, "bad_parameter"),
        ("/data/trace_viewer/event", {"run": RUN, "event": "1e300"}, 400, "bad_parameter"),
        ("/data/trace_viewer/event", {"run": RUN, "event": "-1"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "tracks": "-1"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "tracks": "9" * 40}, 400, "bad_parameter"),
        ("/data/trace_viewer/slices", {"run": RUN, "query": "x" * 2001}, 400, "bad_query"),
        ("/data/trace_viewer/slices", {"run": RUN, "query": "(a OR b"}, 400, "bad_query"),
        ("/data/trace_viewer/slices", {"run": RUN, "query": "x", "limit": "0"}, 400, "bad_parameter"),
        ("/data/trace_viewer/slices", {"run": RUN, "query": "x", "limit": "nan"}, 400, "bad_parameter"),
        (
            "/data/trace_viewer/groups",
            {"run": RUN, "depth_from": "3", "depth_to": "1"},
            400,
            "bad_parameter",
        ),
        ("/data/trace_viewer/search", {"run": RUN, "text": "x"}, 400, "bad_parameter"),
        ("/data/trace_viewer/neighbour", {"run": RUN}, 400, "bad_parameter"),
        (
            "/data/trace_viewer/neighbour",
            {"run": RUN, "direction": "sideways", "event": "0"},
            400,
            "bad_parameter",
        ),
        ("/data/trace_viewer/event", {"run": RUN, "hosts": "a", "event": str(2**40)}, 404, "event_not_found"),
        ("/data/trace_viewer", {"run": RUN, "hosts": "a", "tracks": str(2**24)}, 404, "event_not_found"),
        ("/data/trace_viewer", {"run": RUN, "tracks": "99"}, 404, "event_not_found"),
        ("/data/trace_viewer/event", {"run": RUN, "event": "100000"}, 404, "event_not_found"),
        ("/data/trace_viewer", {"run": RUN, "unknown": "1"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "event": "0"}, 400, "bad_parameter"),
        ("/data/trace_viewer/event", {"run": RUN, "format": "trace", "event": "0"}, 400, "bad_parameter"),
        ("/data/trace_viewer/nonsense", {"run": RUN}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "format": "xml"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": RUN, "format": "csv", "table": "none"}, 400, "bad_parameter"),
        ("/data/trace_viewer", {"run": "train/broken"}, 422, "trace_format"),
        ("/data/overview_page", {"run": "train/broken"}, 422, "trace_format"),
        ("/assets/..%2f..%2frouting.py", {}, 404, "storage"),
        ("/assets/nothing-12345678.js", {}, 404, "storage"),
    ],
)
def test_bad_requests_are_told_what_is_wrong(
    ask: Asking, path: str, query: dict[str, str], status: int, kind: str
) -> None:
    response = ask(path, **query)
    assert response.status_code == status
    assert error_of(response)["kind"] == kind
    assert ask("/data/trace_viewer", run=RUN).status_code == 200


def test_files_of_another_kind_are_named(ask: Asking, logdir: Path) -> None:
    folder = logdir / "plugins" / "profile" / "wrong"
    folder.mkdir(parents=True)
    (folder / "h.trie.SSTABLE").write_bytes(b"x")
    listed = {run["run"]: run for run in json.loads(ask("/runs").data)["runs"]}
    assert listed["wrong"]["state"] == "unsupported"
    assert "index of the names" in listed["wrong"]["message"]
    assert ask("/data/overview_page", run="wrong").status_code == 409
    (folder / "h.xplane.pb").write_bytes(OPERATIONS)
    answer = ask("/data/overview_page", run="wrong")
    assert answer.status_code == 422
    assert error_of(answer)["kind"] == "not_a_trace"
    assert error_of(answer)["message"].startswith("h.xplane.pb is not a profile")
    assert str(logdir) not in answer.text


def test_only_get_is_answered(ask: Asking) -> None:
    assert ask("/runs", method="POST").status_code == 405


def test_an_answer_that_the_client_has_is_not_sent_again(ask: Asking, logdir: Path) -> None:
    first = ask("/data/overview_page", run=RUN)
    again = ask("/data/overview_page", {"If-None-Match": first.headers["ETag"]}, run=RUN)
    assert again.status_code == 304
    assert not again.data
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert (
        ask("/data/overview_page", {"If-None-Match": first.headers["ETag"]}, run=RUN, hosts="a").status_code
        == 200
    )
    file = logdir / "train" / "plugins" / "profile" / SESSION / "a.xplane.pb"
    os.utime(file, ns=(1, 1))
    assert ask("/data/overview_page", {"If-None-Match": first.headers["ETag"]}, run=RUN).status_code == 200


def test_a_page_that_can_say_more_after_the_overview_is_sent_again(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "QUICK_BYTES", 0)
    pages = {
        page: ask(f"/data/{page}", run=RUN).headers["ETag"] for page in ("framework_op_stats", "trace_viewer")
    }
    assert all(
        ask(f"/data/{page}", {"If-None-Match": tag}, run=RUN).status_code == 304
        for page, tag in pages.items()
    )
    ask("/data/overview_page", run=RUN)
    sent = [ask(f"/data/{page}", {"If-None-Match": tag}, run=RUN).status_code for page, tag in pages.items()]
    assert sent == [200, 304]


def test_a_request_can_wait_for_what_limits_the_job(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "QUICK_BYTES", 0)
    first, waited, again = (
        ask("/data/framework_op_stats", run=RUN, **wait) for wait in ({}, {"diagnosis": "wait"}, {})
    )
    assert [json.loads(one.data)["is_diagnosed"] for one in (first, waited, again)] == [False, True, True]
    assert first.headers["ETag"] != again.headers["ETag"]
    assert json.loads(waited.data)["verdict"] == json.loads(again.data)["verdict"]
    assert ask("/data/framework_op_stats", run=RUN, diagnosis="now").status_code == 400


def test_answers_are_packed_for_who_takes_it_and_carry_safe_headers(ask: Asking) -> None:
    plain = ask("/data/framework_op_stats", run=RUN)
    packed = ask("/data/framework_op_stats", {"Accept-Encoding": "gzip"}, run=RUN)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert plain.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'self'" in plain.headers["Content-Security-Policy"]


def test_a_run_deleted_while_it_is_open_is_said_to_be_gone(ask: Asking, logdir: Path) -> None:
    assert ask("/data/trace_viewer", run=RUN).status_code == 200
    shutil.rmtree(logdir / "train" / "plugins" / "profile" / SESSION)
    response = ask("/data/trace_viewer", run=RUN)
    assert response.status_code == 404
    assert error_of(response)["kind"] == "run_not_found"
    assert json.loads(ask("/runs").data)["runs"][0]["run"] == "train/broken"


def test_a_file_that_is_overwritten_is_read_anew(ask: Asking, logdir: Path) -> None:
    assert (
        json.loads(ask("/data/trace_viewer", run=RUN, hosts="a").data)["scalars"]["n_events"]["value"] == 80
    )
    file = logdir / "train" / "plugins" / "profile" / SESSION / "a.xplane.pb"
    file.write_bytes(b"\x0a\x0b\x12\x09/host:CPU")
    assert json.loads(ask("/data/trace_viewer", run=RUN, hosts="a").data)["scalars"]["n_events"]["value"] == 0


def test_a_defect_of_ours_is_a_500_without_its_details() -> None:
    def fail(_request: object) -> Any:
        raise RuntimeError("secret")

    response = respond(SimpleNamespace(method="GET", path="/x", headers={}), fail)  # type: ignore[arg-type]
    assert response.status_code == 500
    assert b"secret" not in response.data


def test_the_plugin_is_active_where_a_profile_can_be_seen_or_made(logdir: Path, tmp_path: Path) -> None:
    def plugin_on(folder: Path, **flags: str) -> Any:
        return make_plugin(
            SimpleNamespace(logdir=str(folder), flags=SimpleNamespace(logdir_spec="", **flags)),
            "profile",
            "Profile",
        )

    plugin = plugin_on(logdir)
    assert plugin.plugin_name == "profile"
    assert plugin.frontend_metadata().tab_name == "Profile"
    assert plugin.is_active()
    assert plugin_on(logdir, tpuprof_capture="off").is_active()
    assert plugin_on(tmp_path / "none").is_active()
    assert not plugin_on(tmp_path / "none", tpuprof_capture="off").is_active()


def test_logdir_specs_name_their_runs(logdir: Path) -> None:
    logdirs = Logdirs.of("", f"first:{logdir},{logdir}/train")
    names = {run.name for run in logdirs.runs()}
    assert f"first/{RUN}" in names
    assert SESSION in names
    assert logdirs.run(f"first/{RUN}").files


def test_the_name_gives_way_to_another_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_points(**_group: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="x", value="tb_tpuprof.serve.loader:ProfileLoader"), *other_plugins]

    monkeypatch.setattr(loader.metadata, "entry_points", entry_points)
    other_plugins: list[SimpleNamespace] = []
    assert not loader.is_name_taken()
    alone = loader.ProfileLoader().load(SimpleNamespace(logdir="", flags=None))
    assert (alone.plugin_name, alone.frontend_metadata().tab_name) == ("profile", "Profile")
    other_plugins.append(
        SimpleNamespace(name="profile", value="xprof.profile_plugin_loader:ProfilePluginLoader")
    )
    assert loader.is_name_taken()
    plugin = loader.ProfileLoader().load(SimpleNamespace(logdir="", flags=None))
    assert (plugin.plugin_name, plugin.frontend_metadata().tab_name) == ("tpuprof", "Profile (tpuprof)")


def test_the_timeline_as_a_file(ask: Asking) -> None:
    response = ask("/data/trace_viewer", {"Accept-Encoding": "gzip"}, run=RUN, hosts="a", format="trace")
    assert response.status_code == 200
    assert response.content_type == "application/gzip"
    assert "Content-Encoding" not in response.headers
    assert response.headers["Content-Disposition"] == f"attachment; filename=train_{SESSION}.trace.json.gz"
    assert json.loads(gzip.decompress(response.data))["traceEvents"]
    assert (
        ask(
            "/data/trace_viewer",
            {"If-None-Match": response.headers["ETag"]},
            run=RUN,
            hosts="a",
            format="trace",
        ).status_code
        == 304
    )
    assert error_of(ask("/data/overview_page", run=RUN, format="trace"))["kind"] == "bad_parameter"
    empty = ask("/data/trace_viewer", run=RUN, format="trace", start_ps="5", end_ps="5")
    assert (empty.status_code, error_of(empty)["kind"]) == (400, "bad_parameter")


def test_a_file_that_would_be_too_large_is_refused(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_tpuprof.tools.trace_viewer.export.MAX_EVENTS", 0)
    response = ask("/data/trace_viewer", run=RUN, format="trace")
    assert response.status_code == 413
    assert "Narrow the window" in error_of(response)["remedy"]
