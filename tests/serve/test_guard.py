"""Bodies of requests that change something: their type, length and content."""

from __future__ import annotations

import json

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from tb_tpuprof.errors import BadParameter, Forbidden
from tb_tpuprof.serve.guard import Guard, check_same_origin, json_object
from tb_tpuprof.serve.hosts import HostRules

OWN = {"localhost:6006"}


def request(data: bytes = b"{}", content_type: str = "application/json", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(
        EnvironBuilder(method="POST", data=data, content_type=content_type, headers=named).get_environ()
    )


def of_length(n: int) -> bytes:
    """A JSON object of n bytes."""
    return json.dumps({"a": "x" * (n - 9)}).encode()


@pytest.mark.parametrize("n", [10, 65_535, 262_144])
def test_bodies_of_up_to_64_kib(n: int) -> None:
    assert len(of_length(n)) == n
    assert json_object(request(of_length(n))) == {"a": "x" * (n - 9)}
    assert json_object(request()) == {}


@pytest.mark.parametrize("data", [of_length(262_145), b""])
def test_longer_and_empty_bodies_are_refused_by_their_length(data: bytes) -> None:
    with pytest.raises(BadParameter) as refused:
        json_object(request(data))
    assert refused.value.parameter == "Content-Length"
    assert "from 1 to 262144 bytes" in refused.value.remedy


@pytest.mark.parametrize("length", ["0", "", "-1"])
def test_a_length_must_be_stated(length: str) -> None:
    environ = EnvironBuilder(method="POST", data=b"{}", content_type="application/json").get_environ()
    with pytest.raises(BadParameter) as refused:
        json_object(Request({**environ, "CONTENT_LENGTH": length}))
    assert refused.value.parameter == "Content-Length"


@pytest.mark.parametrize("data", [b"[1]", b"1", b"null", b"{", b"\xff{}", b"[" * 60_000])
def test_bodies_that_are_no_objects(data: bytes) -> None:
    with pytest.raises(BadParameter) as refused:
        json_object(request(data))
    assert refused.value.parameter == "body"


def test_other_types_are_refused() -> None:
    with pytest.raises(BadParameter) as refused:
        json_object(request(content_type="text/plain"))
    assert refused.value.parameter == "Content-Type"
    assert json_object(request(content_type="application/json; charset=utf-8")) == {}


@pytest.mark.parametrize(
    ("site", "origin", "is_own"),
    [
        ("", "", True),
        ("", "http://localhost:6006", True),
        ("", "http://LOCALHOST:6006", True),
        ("", "http://localhost:7000", False),
        ("none", "http://localhost:6006", True),
        ("none", "http://evil.example", False),
        ("same-origin", "http://evil.example", True),  # a proxy may rename the host
        ("same-site", "http://localhost:6006", False),
        ("cross-site", "", False),
    ],
)
def test_the_page_s_own_requests(site: str, origin: str, is_own: bool) -> None:
    sent = request(**({"Sec_Fetch_Site": site} if site else {}), **({"Origin": origin} if origin else {}))
    if is_own:
        check_same_origin(sent, OWN)
    else:
        with pytest.raises(Forbidden):
            check_same_origin(sent, OWN)


def test_a_request_needs_this_server_s_token() -> None:
    guard = Guard(HostRules())
    assert guard.body(request(b'{"a": 1}', X_Tpuprof_Token=guard.token)) == {"a": 1}
    for token in ("", guard.token[:-1], Guard(HostRules()).token):
        with pytest.raises(Forbidden):
            guard.body(request(X_Tpuprof_Token=token))
    assert len(guard.token) >= 32
