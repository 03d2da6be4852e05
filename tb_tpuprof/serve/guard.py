"""A request that changes something → its JSON body, once it is certain that the plugin's own page sent it.

Another site's page can make a browser send requests here. It cannot read our answers, so it does not know
the token in `GET capture`; and browsers report where a request comes from.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from werkzeug.wrappers import Request

from tb_tpuprof.errors import BadParameter, Forbidden
from tb_tpuprof.serve.hosts import HostRules

TOKEN_HEADER = "X-Tpuprof-Token"
MAX_BODY_BYTES = 256 * 1024  # above the longest list of targets or workers


class Guard:
    """Holds the token of this server process."""

    def __init__(self, hosts: HostRules) -> None:
        self.hosts = hosts
        self.token = secrets.token_urlsafe(24)

    def body(self, request: Request) -> dict[str, Any]:
        """The request's JSON object. Raises Forbidden for a request from elsewhere and BadParameter for a bad
        body.
        """
        check_same_origin(request, self.hosts.names(request))
        if not secrets.compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), self.token.encode()):
            raise Forbidden("The request has no valid token.", "Reload the page: the server was restarted.")
        return json_object(request)


def check_same_origin(request: Request, own_hosts: Collection[str]) -> None:
    """Raise Forbidden if the browser reports that another site's page sent the request. `own_hosts`: names of
    this server, with the port.

    `Sec-Fetch-Site: same-origin` counts more than Origin, because a proxy may rename the host.
    """
    site = request.headers.get("Sec-Fetch-Site", "")
    origin = request.headers.get("Origin", "")
    is_own_origin = not origin or urlsplit(origin).netloc.lower() in own_hosts
    is_own = site == "same-origin" or (site in ("", "none") and is_own_origin)
    if not is_own:
        raise Forbidden(
            "Only the plugin's own page may send this request.", "Open the page at the server's own address."
        )


def json_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object. Raises BadParameter."""
    if request.mimetype != "application/json":
        raise BadParameter("Content-Type", request.mimetype, "application/json")
    size = request.content_length
    if size is None or not 0 < size <= MAX_BODY_BYTES:
        raise BadParameter("Content-Length", size, f"a length from 1 to {MAX_BODY_BYTES} bytes")
    try:
        body = json.loads(request.stream.read(size).decode("utf-8"))
    except (ValueError, RecursionError):
        raise BadParameter("body", "", "a JSON object in UTF-8") from None
    if not isinstance(body, dict):
        raise BadParameter("body", type(body).__name__, "a JSON object")
    return body
