"""Targets as typed by the user → validated addresses of profiler services, and the names of their files."""

from __future__ import annotations

import fnmatch
import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tb_tpuprof.errors import BadParameter, Forbidden

MAX_TARGETS = 256
_SCHEME = re.compile(r"^(grpc|grpc\+insecure|dns)://+", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?")
_ALLOWED = "host:port, several of them separated by commas, such as localhost:6009, 10.0.0.2:8466"


@dataclass(frozen=True)
class Target:
    """The address of one profiler service."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def uri(self) -> str:
        """The address for gRPC. Always includes the scheme: a bare `unix:1` would be the path of a file."""
        return f"dns:///{self}"


def parse_targets(text: str) -> tuple[Target, ...]:
    """The targets of a comma-separated list. Raises BadParameter for an empty list, an invalid or repeated
    address, or too many.
    """
    parts = [part.strip() for part in text[: MAX_TARGETS * 300].split(",")]
    targets = tuple(_target(part) for part in parts if part)
    if not targets:
        raise BadParameter("targets", text, _ALLOWED)
    if len(targets) > MAX_TARGETS:
        raise BadParameter("targets", f"{len(targets)} addresses", f"at most {MAX_TARGETS} at a time")
    repeated = next((target for i, target in enumerate(targets) if target in targets[:i]), None)
    if repeated:
        raise BadParameter("targets", str(repeated), "each address once")
    return targets


def _target(text: str) -> Target:
    address = _SCHEME.sub("", text).rstrip("/")
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65_535:
        raise BadParameter("targets", text, _ALLOWED)
    if host.startswith("[") and host.endswith("]"):
        try:
            return Target(str(ipaddress.IPv6Address(host[1:-1])), int(port))
        except ValueError:
            raise BadParameter("targets", text, _ALLOWED) from None
    if not _HOST.fullmatch(host):
        raise BadParameter("targets", text, _ALLOWED)
    return Target(host.lower(), int(port))


def file_stems(targets: Iterable[Target]) -> list[str]:
    """A unique file name without suffix for each target: `host_port`, with only letters, digits and `._-`."""
    stems: list[str] = []
    for target in targets:
        stem = (
            re.sub(r"[^A-Za-z0-9._-]+", "_", f"{target.host}_{target.port}").lstrip("._-")
            or f"host_{target.port}"
        )
        n, unique_stem = 2, stem
        while unique_stem in stems:
            unique_stem, n = f"{stem}_{n}", n + 1
        stems.append(unique_stem)
    return stems


def check_allowed(targets: Iterable[Target], patterns: Sequence[str]) -> None:
    """Raises Forbidden for a target that matches none of the server owner's patterns (`*.internal:8466`); no
    patterns allow all.
    """
    for target in targets:
        if patterns and not any(fnmatch.fnmatchcase(str(target), pattern.lower()) for pattern in patterns):
            raise Forbidden(
                f"The owner of this server does not allow profiling {target}.",
                f"Allowed: {', '.join(patterns)} (TensorBoard's flag --tpuprof_capture_targets).",
                parameter="targets",
            )
