"""Responses: methods, compression, caching headers and errors of a handler."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from werkzeug.test import Client, TestResponse

from tb_tpuprof.encode.gzip import FAST, gzipped
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.serve.logdirs import Logdirs
from tb_tpuprof.serve.respond import Body, Handler, fingerprint, wsgi
from tb_tpuprof.serve.routes import Routes
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.base import File

DEMO = Path(__file__).parents[2] / "demo_logs" / "jax_train"
RUN = "python_traced"


def answer(
    get: Handler | None,
    post: Handler | None = None,
    method: str = "GET",
    headers: dict[str, str] | None = None,
) -> TestResponse:
    return Client(wsgi(get, post)).open("/", method=method, headers=headers)


def body(content: bytes = b"{}", content_type: str = "application/json", **more: object) -> Handler:
    return lambda _request: Body(content, content_type, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("get", "post", "method", "named", "allowed"),
    [
        (body(), None, "POST", "Only GET is allowed here.", "GET, HEAD"),
        (body(), None, "PUT", "Only GET is allowed here.", "GET, HEAD"),
        (None, body(), "GET", "Only POST is allowed here.", "POST"),
        (None, body(), "HEAD", "", "POST"),
        (body(), body(), "DELETE", "Only GET and POST is allowed here.", "GET, HEAD, POST"),
    ],
)
def test_another_method_is_refused_with_those_that_are_allowed(
    get: Handler | None, post: Handler | None, method: str, named: str, allowed: str
) -> None:
    response = answer(get, post, method)
    assert response.status_code == 405
    assert response.headers["Allow"] == allowed
    assert response.content_type == "application/json"
    if named:
        error = json.loads(response.data)["error"]
        assert (error["kind"], error["message"]) == ("bad_method", named)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_each_method_has_its_handler(method: str) -> None:
    response = answer(body(b"got"), body(b"posted"), method)
    assert response.status_code == 200
    assert response.data == {"GET": b"got", "HEAD": b"", "POST": b"posted"}[method]
    assert ("ETag" in response.headers) == (method != "POST")


@pytest.mark.parametrize(
    ("size", "content_type", "accepted", "is_packed"),
    [
        (1023, "application/json", "gzip", False),
        (1024, "application/json", "gzip", True),
        (5000, "text/csv", "br, gzip;q=0.5", True),
        (5000, "application/json", "br", False),
        (5000, "application/gzip", "gzip", False),
    ],
)
def test_large_content_is_compressed_once_for_clients_that_accept_it(
    size: int, content_type: str, accepted: str, is_packed: bool
) -> None:
    content = b"x" * size
    response = answer(body(content, content_type), headers={"Accept-Encoding": accepted})
    assert response.headers.get("Content-Encoding", "") == ("gzip" if is_packed else "")
    assert (gzip.decompress(response.data) if is_packed else response.data) == content
    assert response.headers["Vary"] == "Accept-Encoding"


def test_a_body_chooses_its_compression_level() -> None:
    content = b" ".join(str(i * i).encode() for i in range(2000))
    response = answer(body(content, gzip_level=FAST), headers={"Accept-Encoding": "gzip"})
    assert response.data == gzipped(content, FAST) != gzipped(content)


def test_headers_follow_the_body() -> None:
    response = answer(body(b"abc", "text/csv", tag="t1", filename="a.csv", max_age=60, status=201))
    assert response.status_code == 201
    assert response.headers["Cache-Control"] == "private, max-age=60"
    assert response.headers["Content-Disposition"] == "attachment; filename=a.csv"
    assert response.headers["ETag"] == '"t1"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    plain = answer(body(b"abc"))
    assert plain.status_code == 200
    assert plain.headers["Cache-Control"] == "private, no-cache"
    assert "Content-Disposition" not in plain.headers
    # Without a tag the content is its own.
    assert len(plain.headers["ETag"].strip('"')) == 32
    assert plain.headers["ETag"] != answer(body(b"abd")).headers["ETag"]


def test_a_client_that_has_the_content_gets_none() -> None:
    handler = body(b"abc", tag="t1")
    response = answer(handler, headers={"If-None-Match": '"t1"'})
    assert (response.status_code, response.data) == (304, b"")
    assert response.content_type == "application/json"
    assert answer(handler, headers={"If-None-Match": '"t2"'}).status_code == 200
    assert answer(None, handler, "POST", {"If-None-Match": '"t1"'}).status_code == 200


def test_failures_have_a_status_and_an_error_object() -> None:
    def fails(error: BaseException) -> Handler:
        def handler(_request: object) -> Body:
            raise error

        return handler

    for error, status, kind in (
        (BadParameter("width", "x", "a number"), 400, "bad_parameter"),
        (MemoryError(), 507, "out_of_memory"),
        (ZeroDivisionError(), 500, "internal"),
    ):
        response = answer(fails(error))
        error_object = json.loads(response.data)["error"]
        assert (response.status_code, error_object["kind"]) == (status, kind)
        assert error_object["remedy"]
        assert ("parameter" in error_object) == (kind == "bad_parameter")
        assert response.headers["Referrer-Policy"] == "no-referrer"


def test_fingerprints_depend_on_each_part_and_their_order() -> None:
    fingerprints = {
        fingerprint(*parts)
        for parts in (("a", "b", "c"), ("a", "c", "b"), ("ab", "c"), ("a", "bc"), ("a", "b"))
    }
    assert len(fingerprints) == 5
    assert {len(one) for one in fingerprints} == {32}


@pytest.mark.parametrize("form", ["proto", "hlo", "dot", "graph"])
def test_a_download_is_the_file_and_not_the_page(form: str) -> None:
    """A file of a tool has its own content type, name and content."""
    routes = Routes(Logdirs.of(str(DEMO), ""), "profile")
    tool = get_tool("graph_viewer")
    session = Session(str(DEMO / "plugins" / "profile" / RUN), cache=False)
    kind = next(file for file in tool.files if file.format == form)
    response = Client(routes.apps()["/data/graph_viewer"]).get(query_string={"run": RUN, "format": form})
    assert response.status_code == 200, response.data
    assert response.content_type.partition(";")[0] == kind.content_type.partition(";")[0]
    name, parts = tool.file(session, None, {}, form)
    assert response.data == b"".join(parts)
    assert response.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert name.endswith(f".{kind.ending}")


@pytest.mark.parametrize(
    ("given", "name"),
    [("a b/c: (1)", "a_b_c_(1).txt"), ("n" * 150, "n" * 150 + ".txt"), ("n" * 300, "n" * 150 + ".txt")],
)
def test_the_name_of_a_file_is_safe_and_at_most_150_characters_long(given: str, name: str) -> None:
    session = Session(str(DEMO / "plugins" / "profile" / RUN), cache=False)
    kind = File("text", "txt", "text/plain", lambda *_: (given, (b"content",)))
    found, parts = replace(get_tool("graph_viewer"), files=(kind,)).file(session, None, {}, "text")
    assert (found, list(parts)) == (name, [b"content"])
