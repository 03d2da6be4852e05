"""Names of Cloud TPUs → addresses of their workers' profilers, asked of the Cloud TPU API.

    name, zone, project ─ GET v2/projects/P/locations/Z/nodes/N ─▶ networkEndpoints ─▶ 10.0.0.2:8466,
    10.0.0.3:8466, …
                            credentials: google-auth's default         (v1 TPU nodes: ipAddress and port)

A TPU's node listens for jobs on port 8470 and for profilers on 8466; a job in a TPU VM that started a
profiler server itself listens where it says: `name:9012`.
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
    """Where TPUs are looked up. What is empty is found out: the zone from the machine's metadata, the project
    from the credentials.
    """

    zone: str = ""
    project: str = ""
    api_url: str = ""


@dataclass(frozen=True)
class Login:
    """A bearer token for the API and the project that the credentials belong to (empty: none)."""

    token: str
    project: str = ""


def resolve_tpus(
    text: str, place: TpuPlace = TpuPlace(), login: Callable[[], Login] | None = None
) -> tuple[Target, ...]:
    """The profiler of every worker of the named TPUs, in the API's order; `text` is a list separated by
    commas.

    A name may be a resource's full name (`projects/P/locations/Z/nodes/N`) and may end with a port of its
    own, which then takes the place of 8466. Raises BadParameter, or TpuLookupFailed with what to do.
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names or len(names) > MAX_NAMES:
        raise BadParameter("tpu", text, f"1 to {MAX_NAMES} names of TPUs, separated by commas")
    parsed = [_parsed(name) for name in names]
    for field, value, pattern in (("tpu_zone", place.zone, _PART), ("gcp_project", place.project, _PROJECT)):
        if value and not re.fullmatch(pattern, value, re.ASCII):
            raise BadParameter(field, value, "letters, digits and . _ -")
    api_url = _checked_url(place.api_url or os.environ.get(API_VARIABLE, "") or API_URL)
    access = (login or default_login)()
    found: dict[Target, None] = {}
    for node in parsed:
        project = node["project"] or place.project or access.project
        if not project:
            raise TpuLookupFailed(
                f"The TPU {node['node']} needs a project: none was given and the credentials name none.",
                "Name it: --gcp_project=PROJECT, or run: gcloud config set project PROJECT",
            )
        zone = node["zone"] or place.zone or zone_of_this_machine()
        found.update(
            dict.fromkeys(
                _workers(_Node(api_url, project, zone, node["node"]), access.token, int(node["port"] or 0))
            )
        )
    return tuple(found)


def _parsed(name: str) -> Mapping[str, str]:
    match = _NAME.fullmatch(name)
    if not match or int(match["port"] or 1) not in range(1, 65536):
        raise BadParameter(
            "tpu",
            name,
            "a TPU's name such as my-tpu; an address such as 10.0.0.2:8466 belongs into the service address",
        )
    return match.groupdict(default="")


def _checked_url(url: str) -> str:
    """The API's address without a slash at its end. The token travels there: only over TLS, or within this
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
    if answer.status == 404:  # nodes of the first kind, without VMs, are known to the first version only
        first = get_json(node.url("v1"), token, _TIMEOUT_S)
        answer = first if first.status == 200 else answer
    if answer.status != 200:
        raise _refused(node, answer)
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
        raise _strange(node)
    return [_address(node, endpoint, port) for endpoint in endpoints]


_LOOK = (
    "Look at it: gcloud compute tpus tpu-vm describe {node.name} --zone={node.zone} --project={node.project}"
)
_STATES = {
    "CREATING": "Wait until it is made, then try again.",
    "STARTING": "Wait until it has started, then try again.",
    "RESTARTING": "Wait until it has started again, then try again.",
    "REIMAGING": "Wait until its image is written, then try again.",
    "REPAIRING": "Wait until it is repaired, then try again.",
    "STOPPED": "Start it, and the job on it: gcloud compute tpus tpu-vm start.",
    "STOPPING": "Start it again when it has stopped: gcloud compute tpus tpu-vm start.",
    "PREEMPTED": "The TPU was preempted. Recreate it and restart the job.",
    "TERMINATED": "The TPU was preempted. Recreate it and restart the job.",
    "DELETING": "It is being deleted. Recreate it and restart the job.",
}


def _address(node: _Node, endpoint: object, port: int) -> Target:
    """The profiler's address of one network endpoint; the port at which it listens for jobs stands for the
    profiler's.
    """
    if not isinstance(endpoint, dict):
        raise _strange(node)
    try:
        ip = ipaddress.ip_address(str(endpoint.get("ipAddress") or ""))
        stated = int(str(endpoint.get("port") or JOB_PORT))
    except ValueError:
        raise _strange(node) from None
    chosen = port or (PROFILER_PORT if stated == JOB_PORT else stated)
    if chosen not in range(1, 65536):
        raise _strange(node)
    return Target(str(ip), chosen)


def _strange(node: _Node) -> TpuLookupFailed:
    return TpuLookupFailed(
        f"The TPU API's answer for {node.where} names no usable address.", _LOOK.format(node=node)
    )


def _refused(node: _Node, answer: Answer) -> TpuLookupFailed:
    """What an answer other than 200 means, and what to do."""
    said, reason = _error(answer.content)
    quoted = f" It says: {said}" if said else ""
    if answer.status == 401:
        return TpuLookupFailed(
            f"The TPU API does not accept the credentials: they are expired or revoked.{quoted}", _LOGIN
        )
    if answer.status == 403 and reason == "SERVICE_DISABLED":
        return TpuLookupFailed(
            f"The TPU API is switched off in the project {node.project}.",
            f"Run: gcloud services enable tpu.googleapis.com --project={node.project}",
        )
    if answer.status == 403:
        remedy = (
            f"Ask for the role TPU Viewer (roles/tpu.viewer) in the project {node.project}, or give "
            "addresses: --service_addr."
        )
        return TpuLookupFailed(f"The credentials may not look at the TPU {node.where}.{quoted}", remedy)
    if answer.status == 404:
        return TpuLookupFailed(
            f"There is no TPU {node.where}.",
            f"See what there is: gcloud compute tpus tpu-vm list --zone={node.zone} --project={node.project}",
        )
    if answer.status == 400:
        return TpuLookupFailed(
            f"The TPU API does not understand the name, zone or project: {node.where}.{quoted}",
            "Correct them.",
        )
    return TpuLookupFailed(
        f"The TPU API answers with status {answer.status}.{quoted}",
        "Try again in a minute, or give the workers' addresses: --service_addr.",
    )


def _error(content: Mapping[str, Any]) -> tuple[str, str]:
    """Message and reason of an error as Google's APIs write them; what has another form is left out."""
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
    """A text of the API, fit for a terminal: one line, not long."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(value)[:2000]).split())[:300]


def zone_of_this_machine() -> str:
    """The zone of the Google Cloud machine that this runs on. Raises TpuLookupFailed elsewhere."""
    host = os.environ.get(METADATA_VARIABLE, "") or METADATA_HOST
    text = get_text(
        f"http://{host}/computeMetadata/v1/instance/zone", {"Metadata-Flavor": "Google"}, _METADATA_TIMEOUT_S
    )
    found = _ZONE.fullmatch(text.strip())
    if not found:
        raise TpuLookupFailed(
            "The TPU's zone was not given, and this is no Google Cloud machine whose own zone could be "
            "taken.",
            "Name it: --tpu_zone=us-central2-b",
        )
    return found[1]


def default_login() -> Login:
    """A token of google-auth's default credentials. Raises TpuLookupFailed where there are none, or they no
    longer hold.
    """
    try:
        import google.auth
        import google.auth.exceptions
        import google.auth.transport.requests
    except ImportError:
        raise TpuLookupFailed(
            "TPU names are looked up with google-auth, which is not installed.",
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
