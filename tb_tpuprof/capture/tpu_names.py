"""Names of Cloud TPUs → addresses of their workers' profilers, from the Cloud TPU API.

    name, zone, project ─ GET v2/projects/P/locations/Z/nodes/N ─▶ networkEndpoints ─▶ 10.0.0.2:8466,
    10.0.0.3:8466, …
                            credentials: google-auth's default         (v1 TPU nodes: ipAddress and port)

A TPU node listens for jobs on port 8470 and for profilers on 8466. A job on a TPU VM that starts its own
profiler server chooses the port: `name:9012`.
"""

from __future__ import annotations

import ipaddress
import os
import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tb_tpuprof.capture.targets import Target
from tb_tpuprof.capture.tpu_api import Answer, get_json, get_text
from tb_tpuprof.errors import BadParameter, TpuLookupFailed

API_VARIABLE = "TPUPROF_TPU_API"
API_URL = "https://tpu.googleapis.com"
METADATA_VARIABLE = "GCE_METADATA_HOST"  # google-auth's name for it
METADATA_HOST = "169.254.169.254"
JOB_PORT, PROFILER_PORT = 8470, 8466
MAX_NAMES, MAX_WORKERS = 64, 8192
_TIMEOUT_S, _METADATA_TIMEOUT_S = 20.0, 2.0
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_LOGIN = "Run: gcloud auth application-default login"
_PART = r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}"
_PROJECT = r"[a-zA-Z0-9][a-zA-Z0-9.:_-]{0,99}"
_FULL = rf"projects/(?P<project>{_PROJECT})/locations/(?P<zone>{_PART})/nodes/"
_NAME = re.compile(rf"(?:{_FULL})?(?P<node>{_PART})(?::(?P<port>\d{{1,5}}))?", re.ASCII)
_ZONE = re.compile(r"(?:.*/)?([a-z]+-[a-z]+[0-9]+-[a-z])")


@dataclass(frozen=True)
class TpuPlace:
    """Where to look up TPUs. Empty fields have defaults: the zone of this machine's metadata, the project of
    the credentials.
    """

    zone: str = ""
    project: str = ""
    api_url: str = ""


@dataclass(frozen=True)
class Login:
    """A bearer token for the API, and the project of the credentials (empty: none)."""

    token: str
    project: str = ""


def resolve_tpus(
    text: str, place: TpuPlace = TpuPlace(), login: Callable[[], Login] | None = None
) -> tuple[Target, ...]:
    """The profiler of every worker of the named TPUs, in the API's order; `text` is a list separated by
    commas.

    A name may be a resource's full name (`projects/P/locations/Z/nodes/N`) and may end with a port, which
    replaces 8466. Raises BadParameter, or TpuLookupFailed with a remedy.
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names or len(names) > MAX_NAMES:
        raise BadParameter("tpu", text, f"1 to {MAX_NAMES} TPU names, separated by commas")
    parsed = [_parsed(name) for name in names]
    for field, value, pattern in (("tpu_zone", place.zone, _PART), ("gcp_project", place.project, _PROJECT)):
        if value and not re.fullmatch(pattern, value, re.ASCII):
            raise BadParameter(field, value, "letters, digits and . _ -")
    api_url = _checked_url(place.api_url or os.environ.get(API_VARIABLE, "") or API_URL)
    access = (login or default_login)()
    targets: dict[Target, None] = {}
    for node in parsed:
        project = node["project"] or place.project or access.project
        if not project:
            raise TpuLookupFailed(
                f"The TPU {node['node']} needs a project: none was given and the credentials name none.",
                "Name it: --gcp_project=PROJECT, or run: gcloud config set project PROJECT",
            )
        zone = node["zone"] or place.zone or zone_of_this_machine()
        targets.update(
            dict.fromkeys(
                _workers(_Node(api_url, project, zone, node["node"]), access.token, int(node["port"] or 0))
            )
        )
    return tuple(targets)


def _parsed(name: str) -> Mapping[str, str]:
    match = _NAME.fullmatch(name)
    if not match or int(match["port"] or 1) not in range(1, 65536):
        raise BadParameter(
            "tpu",
            name,
            "a TPU's name such as my-tpu; addresses such as 10.0.0.2:8466 go into the service address",
        )
    return match.groupdict(default="")


def _checked_url(url: str) -> str:
    """The API's address without a trailing slash. The token is sent there, so it must use TLS or be on this
    machine.
    """
    parts = urllib.parse.urlsplit(url)
    is_local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_local)):
        raise BadParameter("tpu_api", url, "an https:// address (http:// on this machine only)")
    return url.rstrip("/")


@dataclass(frozen=True)
class _Node:
    """One TPU, as the API addresses it."""

    api_url: str
    project: str
    zone: str
    name: str

    @property
    def where(self) -> str:
        """Its name, zone and project in words."""
        return f"{self.name} in {self.zone} (project {self.project})"

    def url(self, version: str) -> str:
        """Its resource in a version of the API."""
        parts = (urllib.parse.quote(part, safe="") for part in (self.project, self.zone, self.name))
        return "{}/{}/projects/{}/locations/{}/nodes/{}".format(self.api_url, version, *parts)


def _workers(node: _Node, token: str, port: int) -> list[Target]:
    """Addresses of one TPU's profilers."""
    answer = get_json(node.url("v2"), token, _TIMEOUT_S)
    if answer.status == 404:  # only the first version knows nodes of the first kind, without VMs
        v1_answer = get_json(node.url("v1"), token, _TIMEOUT_S)
        answer = v1_answer if v1_answer.status == 200 else answer
    if answer.status != 200:
        raise _lookup_error(node, answer)
    state = answer.content.get("state")
    if state != "READY":
        raise TpuLookupFailed(
            f"The TPU {node.where} is not ready: its state is {_shown(state or 'unknown')}.",
            _STATES.get(str(state), _LOOK.format(node=node)),
        )
    endpoints = answer.content.get("networkEndpoints")
    if not endpoints:
        endpoints = [{"ipAddress": answer.content.get("ipAddress"), "port": answer.content.get("port")}]
    if not isinstance(endpoints, list) or len(endpoints) > MAX_WORKERS:
        raise _unusable(node)
    return [_address(node, endpoint, port) for endpoint in endpoints]


_LOOK = (
    "Inspect it: gcloud compute tpus tpu-vm describe {node.name} --zone={node.zone} --project={node.project}"
)
_STATES = {
    "CREATING": "Wait until it has been created, then try again.",
    "STARTING": "Wait until it has started, then try again.",
    "RESTARTING": "Wait until it has restarted, then try again.",
    "REIMAGING": "Wait until it has been reimaged, then try again.",
    "REPAIRING": "Wait until it has been repaired, then try again.",
    "STOPPED": "Start it, then start the job on it: gcloud compute tpus tpu-vm start.",
    "STOPPING": "Start it again once it has stopped: gcloud compute tpus tpu-vm start.",
    "PREEMPTED": "The TPU was preempted. Recreate it and restart the job.",
    "TERMINATED": "The TPU was preempted. Recreate it and restart the job.",
    "DELETING": "It is being deleted. Recreate it and restart the job.",
}


def _address(node: _Node, endpoint: object, port: int) -> Target:
    """The profiler's address of one network endpoint. If the endpoint has the port for jobs, the profiler's
    port replaces it.
    """
    if not isinstance(endpoint, dict):
        raise _unusable(node)
    try:
        ip = ipaddress.ip_address(str(endpoint.get("ipAddress") or ""))
        endpoint_port = int(str(endpoint.get("port") or JOB_PORT))
    except ValueError:
        raise _unusable(node) from None
    profiler_port = port or (PROFILER_PORT if endpoint_port == JOB_PORT else endpoint_port)
    if profiler_port not in range(1, 65536):
        raise _unusable(node)
    return Target(str(ip), profiler_port)


def _unusable(node: _Node) -> TpuLookupFailed:
    return TpuLookupFailed(
        f"The TPU API's reply for {node.where} has no usable address.", _LOOK.format(node=node)
    )


def _lookup_error(node: _Node, answer: Answer) -> TpuLookupFailed:
    """The error for a status other than 200, with its remedy."""
    api_message, reason = _error(answer.content)
    quoted_message = f" It says: {api_message}" if api_message else ""
    if answer.status == 401:
        return TpuLookupFailed(
            f"The TPU API rejected the credentials: they are expired or revoked.{quoted_message}", _LOGIN
        )
    if answer.status == 403 and reason == "SERVICE_DISABLED":
        return TpuLookupFailed(
            f"The TPU API is disabled in the project {node.project}.",
            f"Run: gcloud services enable tpu.googleapis.com --project={node.project}",
        )
    if answer.status == 403:
        remedy = (
            f"Ask for the role TPU Viewer (roles/tpu.viewer) in the project {node.project}, or give "
            "addresses: --service_addr."
        )
        return TpuLookupFailed(
            f"The credentials do not permit access to the TPU {node.where}.{quoted_message}", remedy
        )
    if answer.status == 404:
        return TpuLookupFailed(
            f"There is no TPU {node.where}.",
            f"List the TPUs: gcloud compute tpus tpu-vm list --zone={node.zone} --project={node.project}",
        )
    if answer.status == 400:
        return TpuLookupFailed(
            f"The TPU API rejected the name, zone or project: {node.where}.{quoted_message}",
            "Correct them.",
        )
    return TpuLookupFailed(
        f"The TPU API answered with status {answer.status}.{quoted_message}",
        "Try again in a minute, or give the workers' addresses: --service_addr.",
    )


def _error(content: Mapping[str, Any]) -> tuple[str, str]:
    """Message and reason of an error in the format of Google's APIs; empty for other formats."""
    error = content.get("error")
    if not isinstance(error, dict):
        return "", ""
    details = error.get("details")
    reasons = (
        [detail.get("reason") for detail in details if isinstance(detail, dict)]
        if isinstance(details, list)
        else []
    )
    return _shown(error.get("message") or ""), next((str(reason) for reason in reasons if reason), "")


def _shown(value: object) -> str:
    """A text from the API for a terminal: one short line."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(value)[:2000]).split())[:300]


def zone_of_this_machine() -> str:
    """The zone of the Google Cloud machine that this runs on. Raises TpuLookupFailed on other machines."""
    host = os.environ.get(METADATA_VARIABLE, "") or METADATA_HOST
    text = get_text(
        f"http://{host}/computeMetadata/v1/instance/zone", {"Metadata-Flavor": "Google"}, _METADATA_TIMEOUT_S
    )
    match = _ZONE.fullmatch(text.strip())
    if not match:
        raise TpuLookupFailed(
            "The TPU's zone was not given, and this is not a Google Cloud machine whose zone could be used "
            "instead.",
            "Name it: --tpu_zone=us-central2-b",
        )
    return match[1]


def default_login() -> Login:
    """A token from google-auth's default credentials. Raises TpuLookupFailed if there are none, or if they
    are invalid.
    """
    try:
        import google.auth
        import google.auth.exceptions
        import google.auth.transport.requests
    except ImportError:
        raise TpuLookupFailed(
            "Looking up TPU names needs google-auth, which is not installed.",
            "Run: pip install 'tb-tpuprof[tpu]', or give the workers' addresses: --service_addr.",
        ) from None
    try:
        request = google.auth.transport.requests.Request()
        credentials: Any
        credentials, project = google.auth.default(scopes=[_SCOPE], request=request)
        credentials.refresh(partial(request, timeout=_TIMEOUT_S))
    except google.auth.exceptions.DefaultCredentialsError:
        raise TpuLookupFailed("There are no Google Cloud credentials on this machine.", _LOGIN) from None
    except google.auth.exceptions.RefreshError as error:
        raise TpuLookupFailed(
            "The Google Cloud credentials are expired or revoked: "
            f"{_shown(error.args[0] if error.args else '')}.",
            _LOGIN,
        ) from None
    except google.auth.exceptions.GoogleAuthError as error:
        raise TpuLookupFailed(
            f"The Google Cloud credentials cannot be renewed: {_shown(error)}.",
            "Check the network, then try again.",
        ) from None
    return Login(str(credentials.token or ""), str(project or ""))
