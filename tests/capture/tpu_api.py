"""A double of the Cloud TPU API, of Google's token endpoint and of a machine's metadata server, on one local
port.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "a-good-token"
PROJECT, ZONE = "my-project", "us-central2-b"


def node(name: str, n_workers: int = 1, state: str = "READY") -> dict[str, Any]:
    """A TPU VM as the second version of the API describes it."""
    endpoints = [
        {
            "ipAddress": f"10.130.{i // 250}.{i % 250 + 2}",
            "port": 8470,
            "accessConfig": {"externalIp": f"34.1.0.{i}"},
        }
        for i in range(n_workers)
    ]
    return {
        "name": f"projects/{PROJECT}/locations/{ZONE}/nodes/{name}",
        "acceleratorType": f"v4-{8 * n_workers}",
        "state": state,
        "runtimeVersion": "tpu-vm-tf-2.16.1-pjrt",
        "networkEndpoints": endpoints,
        "health": "HEALTHY",
        "id": "123",
        "acceleratorConfig": {"type": "V4", "topology": "2x2x1"},
    }


OLD_NODE = {
    "name": f"projects/{PROJECT}/locations/{ZONE}/nodes/old",
    "acceleratorType": "v2-8",
    "ipAddress": "10.240.1.2",
    "port": "8470",
    "state": "READY",
    "tensorflowVersion": "1.15",
    "cidrBlock": "10.240.1.0/29",
}


def refusal(code: int, status: str, message: str, reason: str = "") -> dict[str, Any]:
    """An error as Google's APIs write it."""
    details = (
        [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}]
        if reason
        else []
    )
    return {"error": {"code": code, "message": message, "status": status, "details": details}}


class TpuApi:
    """What it answers: `nodes[version][name]` is an object, bytes as they are, or (status, object).
    `requests`: paths asked for.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Any]] = {"v1": {}, "v2": {}}
        self.token_answer: tuple[int, dict[str, Any]] = (
            200,
            {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"},
        )
        self.zone = f"projects/123/zones/{ZONE}"
        self.delay_s = 0.0
        self.requests: list[str] = []
        self.url = ""

    def answer(self, path: str, token: str) -> tuple[int, Any]:
        """Status and body for a GET."""
        self.requests.append(path)
        time.sleep(self.delay_s)
        if path.startswith("/computeMetadata/"):
            return 200, self.zone.encode()
        parts = path.strip("/").split("/")
        if token != TOKEN:
            return 401, refusal(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        version, project, zone, name = parts[0], parts[2], parts[4], parts[6]
        found = self.nodes[version].get(name)
        if found is None or (project, zone) != (PROJECT, ZONE):
            return 404, refusal(404, "NOT_FOUND", f"Resource '{path}' was not found")
        return found if isinstance(found, tuple) else (200, found)


@contextmanager
def serving(api: TpuApi) -> Iterator[TpuApi]:
    """The double, listening while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send(*api.answer(self.path, self.headers.get("Authorization", "").removeprefix("Bearer ")))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send(*api.token_answer)

        def send(self, status: int, content: Any) -> None:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", body.decode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_request: None  # type: ignore[method-assign]  # a client that gave up
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
