"""Host names under which a browser may reach this server.

A page of another site can point its own name at this machine (DNS rebinding). For the browser that page and
this server then have the same origin, so only the name in the request shows the attack.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass

from werkzeug.wrappers import Request

from tb_tpuprof.capture.targets import is_address
from tb_tpuprof.errors import Forbidden

HOSTS_VARIABLE = "TPUPROF_ALLOWED_HOSTS"
_LOOPBACK = ("localhost", "")


@dataclass(frozen=True)
class HostRules:
    """`is_loopback`: whether only this machine reaches the server; `allowed`: further names that its owner
    gave, also those of a proxy in front of it.
    """

    is_loopback: bool = True
    allowed: tuple[str, ...] = ()

    @classmethod
    def of(cls, flags: object) -> HostRules:
        """From TensorBoard's flags and the environment."""
        bound_to = getattr(flags, "host", None) or ""
        is_loopback = not getattr(flags, "bind_all", False) and _is_loopback(str(bound_to).lower())
        given = getattr(flags, "tpuprof_allowed_hosts", "") or os.environ.get(HOSTS_VARIABLE, "")
        names = tuple(part.strip().lower() for part in str(given).split(",") if part.strip())
        return cls(is_loopback, names)

    def names(self, request: Request) -> set[str]:
        """`host:port` under which the browser sees this server, in lower case. A proxy's name counts only if
        the owner named it.
        """
        own = {request.headers.get("Host", "").strip().lower()}
        forwarded = request.headers.get("X-Forwarded-Host", "").strip().lower()
        return own | {forwarded} if host_name(forwarded) in self.allowed else own

    def check(self, request: Request) -> None:
        """Raise Forbidden for a name that may be another site's."""
        name = host_name(request.headers.get("Host", ""))
        if self._is_allowed(name):
            return
        raise Forbidden(
            f"This server does not answer to the name {name[:80]}.",
            "Open it as localhost or by its IP address, or have its owner start TensorBoard with "
            f"--tpuprof_allowed_hosts={name[:80]}.",
        )

    def _is_allowed(self, name: str) -> bool:
        # Nobody can point an IP address elsewhere.
        if name in _LOOPBACK or name in self.allowed or is_address(name):
            return True
        return not self.is_loopback and not self.allowed


def host_name(host: str) -> str:
    """The name or address in a Host header, without the port and brackets."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_loopback(name: str) -> bool:
    return name in _LOOPBACK or (is_address(name) and ipaddress.ip_address(name).is_loopback)
