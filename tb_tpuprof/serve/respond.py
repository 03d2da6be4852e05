"""Bytes or an error → an HTTP response: gzip, ETag, security headers; errors as JSON with the status of their
kind.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request, Response

from tb_tpuprof.encode.gzip import SMALL, gzipped
from tb_tpuprof.encode.json import dumps
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.parallel.turns import TURNS

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment
    from werkzeug.datastructures import Headers

logger = logging.getLogger("tb_tpuprof")
_MIN_GZIP_BYTES = 1024
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'self'"
)


@dataclass(frozen=True)
class Body:
    """A route's response. `tag` is the content's fingerprint if known beforehand; `max_age` allows use
    without revalidation.
    """

    content: bytes
    content_type: str
    tag: str = ""
    filename: str = ""
    max_age: int = 0
    status: int = 200
    gzip_level: int = SMALL


Handler = Callable[[Request], Body]
Check = Callable[[Request], object]


class _Answer(Response):
    """A response that keeps its content type as a 304: werkzeug strips it, and TensorBoard warns of each
    response without one.
    """

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        """The headers that are sent."""
        headers = super().get_wsgi_headers(environ)
        headers.setdefault("Content-Type", self.headers.get("Content-Type", "application/json"))
        return headers


def wsgi(
    get: Handler | None, post: Handler | None = None, check: Check | None = None
) -> Callable[..., object]:
    """A WSGI application from functions of the request, by its method; every failure becomes an
    error object. `check` raises ProfilerError for requests that get no answer.
    """

    def app(environ: dict[str, object], start_response: Callable[..., object]) -> object:
        request = Request(environ)
        return respond(request, get, post, check)(environ, start_response)  # type: ignore[arg-type]

    return app


def respond(
    request: Request, get: Handler | None, post: Handler | None = None, check: Check | None = None
) -> Response:
    """The response to one request."""
    handler = post if request.method == "POST" else get if request.method in ("GET", "HEAD") else None
    if handler is None:
        allowed = [name for name, function in (("GET", get), ("HEAD", get), ("POST", post)) if function]
        text = _error(
            "bad_method",
            f"Only {' and '.join(name for name in allowed if name != 'HEAD')} is allowed here.",
            "",
        )
        return _secured(Response(text, 405, {"Allow": ", ".join(allowed)}, "application/json"))
    try:
        if check:
            check(request)
        with TURNS.short():
            return _success(request, handler(request))
    except ProfilerError as error:
        text = dumps({"error": error_object(error)})
        return _secured(Response(text, error.http_status, mimetype="application/json"))
    except MemoryError:
        text = _error(
            "out_of_memory",
            "This run is too large for the server's memory.",
            "Open fewer hosts, or profile for a shorter time.",
        )
        return _secured(Response(text, 507, mimetype="application/json"))
    except Exception:
        logger.exception("request %s failed", request.path)
        text = _error(
            "internal", "Internal error; see the TensorBoard log.", "Please report it with the log."
        )
        return _secured(Response(text, 500, mimetype="application/json"))


def fingerprint(*parts: str) -> str:
    """An ETag from what the content depends on."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _success(request: Request, body: Body) -> Response:
    tag = body.tag or hashlib.sha256(body.content).hexdigest()[:32]
    content = body.content
    response = _Answer(status=body.status, mimetype=body.content_type)
    can_shrink = len(content) >= _MIN_GZIP_BYTES and body.content_type != "application/gzip"
    if can_shrink and "gzip" in request.headers.get("Accept-Encoding", ""):
        content = gzipped(content, body.gzip_level)
        response.headers["Content-Encoding"] = "gzip"
    response.set_data(content)
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = (
        f"private, max-age={body.max_age}" if body.max_age else "private, no-cache"
    )
    if body.filename:
        response.headers.set("Content-Disposition", "attachment", filename=body.filename)
    if request.method != "POST":
        response.set_etag(tag)
        response.make_conditional(request)
    return _secured(response)


def _secured(response: Response) -> Response:
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def error_object(error: ProfilerError) -> dict[str, str]:
    """An error as the pages read it; details and the invalid parameter only if there are any."""
    more = {"details": error.details, "parameter": error.parameter}
    return {
        "kind": error.kind,
        "message": error.message,
        "remedy": error.remedy,
        **{name: text for name, text in more.items() if text},
    }


def _error(kind: str, message: str, remedy: str) -> bytes:
    return dumps({"error": {"kind": kind, "message": message, "remedy": remedy}})
