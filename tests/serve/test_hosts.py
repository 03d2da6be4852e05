"""Names under which a server answers: its own, and those that its owner gave; never another site's."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from werkzeug.test import Client, TestResponse

from tb_tpuprof.serve.hosts import HostRules, host_name
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.routes import Routes

LOCAL = HostRules()
NAMED = HostRules(allowed=("tb.example.org",))
OPEN = HostRules(is_loopback=False)
OPEN_NAMED = HostRules(is_loopback=False, allowed=("tb.example.org",))
ROUTES = ("/runs", "/tools", "/progress", "/capture", "/data/overview_page")


def get(rules: HostRules, path: str, host: str, **headers: str) -> TestResponse:
    apps = Routes(Logdirs.of("/nowhere", ""), "profile", hosts=rules).apps()
    return Client(apps[path]).get(path, headers={"Host": host, **headers})


@pytest.mark.parametrize("path", ROUTES)
def test_a_name_of_another_site_reads_nothing_and_gets_no_token(path: str) -> None:
    """DNS rebinding: the browser believes that evil.example is the page's own origin."""
    answer = get(LOCAL, path, "evil.example:6006")
    assert answer.status_code == 403
    error = json.loads(answer.data)["error"]
    assert "evil.example" in error["message"]
    assert "--tpuprof_allowed_hosts=evil.example" in error["remedy"]
    assert b"token" not in answer.data


@pytest.mark.parametrize(
    "path", ["/capture", "/capture/cancel", "/monitor", "/monitor/stop", "/monitor/leave"]
)
def test_a_name_of_another_site_changes_nothing_even_with_the_token(path: str) -> None:
    routes = Routes(Logdirs.of("/nowhere", ""), "profile")
    headers = {
        "Host": "evil.example:6006",
        "Origin": "http://evil.example:6006",
        "Sec-Fetch-Site": "same-origin",
        "X-Tpuprof-Token": routes.capture.guard.token,
    }
    answer = Client(routes.apps()[path]).post(path, json={"targets": "localhost:1"}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("rules", "host", "is_allowed"),
    [
        (LOCAL, "localhost:6006", True),
        (LOCAL, "LOCALHOST", True),
        (LOCAL, "localhost.:6006", True),
        (LOCAL, "127.0.0.1:6006", True),
        (LOCAL, "[::1]:6006", True),
        (LOCAL, "10.0.0.5:6006", True),  # nobody can point an address elsewhere
        (LOCAL, "localhost.evil.example", False),
        (LOCAL, "127.0.0.1.evil.example", False),
        (LOCAL, "tb.example.org", False),
        (NAMED, "tb.example.org:443", True),
        (NAMED, "TB.example.org", True),
        (NAMED, "not-tb.example.org", False),
        (OPEN, "worker-3:6006", True),
        (OPEN_NAMED, "worker-3:6006", False),
        (OPEN_NAMED, "localhost:6006", True),
    ],
)
def test_names(rules: HostRules, host: str, is_allowed: bool) -> None:
    assert get(rules, "/progress", host).status_code == (200 if is_allowed else 403)


def test_the_pages_own_files_are_served_under_any_name() -> None:
    """So that the page can say why it shows nothing."""
    assert get(LOCAL, "/index.html", "evil.example").status_code != 403


@pytest.mark.parametrize(
    ("flags", "is_loopback"),
    [
        (SimpleNamespace(), True),
        (SimpleNamespace(host=None, bind_all=False), True),
        (SimpleNamespace(host="localhost", bind_all=False), True),
        (SimpleNamespace(host="127.0.0.1"), True),
        (SimpleNamespace(host="::1"), True),
        (SimpleNamespace(host="0.0.0.0"), False),
        (SimpleNamespace(host="worker-0"), False),
        (SimpleNamespace(host=None, bind_all=True), False),
    ],
)
def test_whether_only_this_machine_reaches_the_server(flags: SimpleNamespace, is_loopback: bool) -> None:
    assert HostRules.of(flags).is_loopback == is_loopback


def test_names_come_from_the_flag_then_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPUPROF_ALLOWED_HOSTS", "a.example, B.example")
    assert HostRules.of(SimpleNamespace()).allowed == ("a.example", "b.example")
    assert HostRules.of(SimpleNamespace(tpuprof_allowed_hosts="c.example")).allowed == ("c.example",)


@pytest.mark.parametrize(
    ("header", "name"),
    [("[::1]:6006", "::1"), ("[::1]", "::1"), ("a.b:1", "a.b"), ("a.b.", "a.b"), ("", ""), (" A ", "a")],
)
def test_the_name_in_a_header(header: str, name: str) -> None:
    assert host_name(header) == name


def posted(rules: HostRules, path: Path, **headers: str) -> int:
    routes = Routes(Logdirs.of(str(path), ""), "profile", hosts=rules)
    sent = {
        "X-Tpuprof-Token": routes.capture.guard.token,
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    return Client(routes.apps()["/capture"]).post("/capture", json={"targets": "x"}, headers=sent).status_code


def test_a_forwarded_name_counts_only_if_the_owner_named_it(tmp_path: Path) -> None:
    """400: the request is accepted, its target is not."""
    headers = {
        "Host": "localhost:6006",
        "Origin": "https://tb.example.org",
        "X_Forwarded_Host": "tb.example.org",
    }
    assert posted(LOCAL, tmp_path, **headers) == 403
    assert posted(NAMED, tmp_path, **headers) == 400


@pytest.mark.parametrize(
    ("site", "origin", "status"),
    [
        ("none", "", 400),
        ("none", "http://localhost:6006", 400),
        ("none", "http://evil.example", 403),
        ("same-origin", "http://localhost:6006", 400),
        ("same-site", "http://localhost:7000", 403),
        ("cross-site", "http://evil.example", 403),
        ("", "http://evil.example", 403),
        ("", "null", 403),
    ],
)
def test_requests_of_other_sites_pages_are_refused(
    tmp_path: Path, site: str, origin: str, status: int
) -> None:
    headers = {"Host": "localhost:6006"} | ({"Origin": origin} if origin else {})
    assert posted(LOCAL, tmp_path, **headers, **({"Sec_Fetch_Site": site} if site else {})) == status


def test_long_names_are_shown_in_part() -> None:
    error = json.loads(get(LOCAL, "/progress", f"{'a' * 81}.example").data)["error"]
    assert f"the name {'a' * 80}." in error["message"]
    assert f"--tpuprof_allowed_hosts={'a' * 80}." in error["remedy"]
