"""GET requests to Google's APIs → their JSON, without redirects and limited in size and time. The replies are
not trusted.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import IO, Any

from tb_tpuprof.errors import TpuLookupFailed

MAX_BYTES = 4 * 2**20
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Answer:
    """Status and JSON object of a reply; the object is empty if the body is not one."""

    status: int
    content: Mapping[str, Any]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats redirects as errors, so that the token is not sent elsewhere."""

    def redirect_request(self, *_request: object) -> None:
        """Returns None: do not follow."""


def get_json(url: str, token: str, timeout_s: float) -> Answer:
    """The API's reply to a GET. Raises TpuLookupFailed if there is none in time or if it is too large."""
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        status, body = _fetch(urllib.request.build_opener(_NoRedirects), request, timeout_s)
    except TimeoutError:
        raise TpuLookupFailed(f"The TPU API did not answer within {timeout_s:g} s.", _TRY) from None
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            raise TpuLookupFailed(f"The TPU API did not answer within {timeout_s:g} s.", _TRY) from None
        raise TpuLookupFailed(
            f"The TPU API cannot be reached: {str(reason)[:200] or type(reason).__name__}.", _TRY
        ) from None
    if len(body) > MAX_BYTES:
        raise TpuLookupFailed(f"The TPU API's reply is larger than {MAX_BYTES // 2**20} MiB.", _TRY)
    return Answer(status, _object(body, status))


_TRY = "Check the network (and HTTPS_PROXY), or give the workers' addresses: --service_addr."


def _object(body: bytes, status: int) -> Mapping[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        return content
    if status == 200:
        raise TpuLookupFailed("The TPU API's reply is not a JSON object.", _TRY)
    return {}


def get_text(url: str, headers: Mapping[str, str], timeout_s: float) -> str:
    """A short text from the machine's own metadata server, never through a proxy; empty if there is none."""
    opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))
    try:
        status, body = _fetch(opener, urllib.request.Request(url, headers=dict(headers)), timeout_s)
    except (OSError, HTTPException, ValueError):
        return ""
    return body[:1000].decode("utf-8", "replace") if status == 200 else ""


def _fetch(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout_s: float
) -> tuple[int, bytes]:
    """Status and body, which is cut at MAX_BYTES + 1."""
    deadline = time.monotonic() + timeout_s
    try:
        with opener.open(request, timeout=timeout_s) as response:
            return response.status, _read(response, deadline)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _read(error, deadline)


def _read(stream: IO[bytes], deadline: float) -> bytes:
    """The body. Raises TimeoutError if it is incomplete at the deadline."""
    parts: list[bytes] = []
    size = 0
    read_some = getattr(stream, "read1", stream.read)
    while size <= MAX_BYTES and (part := read_some(_CHUNK)):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(parts)[: MAX_BYTES + 1]
