"""Targets as typed by the user → validated addresses of profiler services, and the names of their files."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tb_tpuprof.errors import BadParameter, Forbidden

MAX_TARGETS = 256
_SCHEME = re.compile(r"^(grpc|grpcs|grpc\+insecure|dns)://+", re.IGNORECASE)
_SECURE = re.compile(r"^grpcs:", re.IGNORECASE)
_NUMERIC = re.compile(r"[0-9.*?]+")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?")
_ALLOWED = (
    "host:port, several of them separated by commas, such as localhost:6009, 10.0.0.2:8466; "
    "grpcs://host:port for TLS"
)


@dataclass(frozen=True)
class Target:
    """The address of one profiler service. `address`: the IP address to connect to, if it was looked up
    already. `is_secure`: whether it is reached over TLS. `host_name`: the host's name in the run, if the user
    chose one.
    """

    host: str
    port: int
    address: str = ""
    is_secure: bool = False
    host_name: str = ""

    def __str__(self) -> str:
        scheme = "grpcs://" if self.is_secure else ""
        return f"{scheme}{_address(self.host, self.port)}"

    @property
    def uri(self) -> str:
        """The address for gRPC. Always includes the scheme: a bare `unix:1` would be the path of a file."""
        return f"dns:///{_address(self.address or self.host, self.port)}"


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_targets(text: str, parameter: str = "targets") -> tuple[Target, ...]:
    """The targets of a comma-separated list. Raises BadParameter, with the parameter's name, for an empty
    list, an invalid or repeated address, or too many.
    """
    parts = [part.strip() for part in text[: MAX_TARGETS * 300].split(",")]
    targets = tuple(_target(part, parameter) for part in parts if part)
    if not targets:
        raise BadParameter(parameter, text, _ALLOWED)
    if len(targets) > MAX_TARGETS:
        raise BadParameter(parameter, f"{len(targets)} addresses", f"at most {MAX_TARGETS} at a time")
    addresses = [_address(target.host, target.port) for target in targets]
    repeated = next((one for i, one in enumerate(addresses) if one in addresses[:i]), "")
    if repeated:
        raise BadParameter(parameter, repeated, "each address once")
    return targets


def _target(text: str, parameter: str) -> Target:
    address, is_secure = _SCHEME.sub("", text).rstrip("/"), bool(_SECURE.match(text))
    host, _, port = address.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65_535:
        raise BadParameter(parameter, text, _ALLOWED)
    if host.startswith("[") and host.endswith("]"):
        try:
            return Target(str(ipaddress.IPv6Address(host[1:-1])), int(port), is_secure=is_secure)
        except ValueError:
            raise BadParameter(parameter, text, _ALLOWED) from None
    if not _HOST.fullmatch(host):
        raise BadParameter(parameter, text, _ALLOWED)
    return Target(host.lower(), int(port), is_secure=is_secure)


def named_targets(targets: Sequence[Target], names: Sequence[str], parameter: str) -> tuple[Target, ...]:
    """The targets, named in their order; without names, as they are. Raises BadParameter, with the
    parameter's name, if there are more or fewer names than targets.
    """
    if not names:
        return tuple(targets)
    if len(names) != len(targets):
        raise BadParameter(
            parameter, f"{len(names)} names", f"as many names as targets, {len(targets)}, in the same order"
        )
    return tuple(replace(target, host_name=name) for target, name in zip(targets, names, strict=True))


def file_stem(host: str, port: int) -> str:
    """The name of a profile's file without suffix: `host_port`, with only ASCII letters, digits and `._-`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", f"{host[:200]}_{port}").lstrip("._-") or f"host_{port}"


def file_stems(targets: Iterable[Target]) -> list[str]:
    """A unique file name for each target, used until its profile names the host."""
    stems: list[str] = []
    for target in targets:
        stem = target.host_name or file_stem(target.host, target.port)
        n, unique_stem = 2, stem
        while unique_stem in stems:
            unique_stem, n = f"{stem}_{n}", n + 1
        stems.append(unique_stem)
    return stems


def check_allowed(targets: Iterable[Target], patterns: Sequence[str]) -> tuple[Target, ...]:
    """The targets, if each matches one of the server owner's patterns. No patterns allow all.

    In patterns, `*` matches any characters: `*.internal:8466` names, `10.0.0.*:8466` and `[fd00::*]:*`
    addresses. For patterns of addresses, a name is looked up once, and the target keeps the address that was
    checked. Raises Forbidden.
    """
    return tuple(_allowed(target, patterns) for target in targets) if patterns else tuple(targets)


def _allowed(target: Target, patterns: Sequence[str]) -> Target:
    by_name: list[str] = []
    by_address: list[str] = []
    for pattern in patterns:
        (by_address if _is_of_addresses(pattern) else by_name).append(pattern.lower())
    if any(_matches(target.host, target.port, pattern) for pattern in by_name):
        return target
    if by_address:
        address = target.host if is_address(target.host) else _looked_up(target)
        if any(_matches(address, target.port, pattern) for pattern in by_address):
            return replace(target, address=address)
    raise Forbidden(
        f"The owner of this server does not allow profiling {target}.",
        f"Allowed: {', '.join(patterns)} (TensorBoard's flag --tpuprof_capture_targets).",
        parameter="targets",
    )


def _looked_up(target: Target) -> str:
    """The first IP address of a target's name; empty if it has none."""
    try:
        (*_, address), *_ = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ""
    return str(address[0])


def _split(pattern: str) -> tuple[str, str]:
    """A pattern's host and port; `*` alone means any of both."""
    host, _, port = pattern.rpartition(":")
    return (host, port) if pattern != "*" else ("*", "*")


def _is_of_addresses(pattern: str) -> bool:
    """Whether a pattern matches IP addresses only: it is in brackets, or made of digits and dots."""
    host = _split(pattern)[0]
    return host.startswith("[") or (any(c.isdecimal() for c in host) and _NUMERIC.fullmatch(host) is not None)


def _matches(host: str, port: int, pattern: str) -> bool:
    host_pattern, port_pattern = _split(pattern)
    host_pattern = host_pattern.removeprefix("[").removesuffix("]")
    return _matches_text(host, host_pattern) and _matches_text(str(port), port_pattern)


def _matches_text(text: str, pattern: str) -> bool:
    """Whether `pattern`, in which only `*` and `?` are special, matches the whole text."""
    parts = (".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def is_address(host: str) -> bool:
    """Whether it is an IP address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
