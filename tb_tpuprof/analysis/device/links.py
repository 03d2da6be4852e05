"""What links a GPU to the other GPUs of its server, from public data sheets: `docs/peaks.md` lists them with
their sources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_GB = 1e9


@dataclass(frozen=True)
class Link:
    """All links of one GPU together: their name, and bytes/s in one direction. Data sheets state the sum of
    both directions.
    """

    pattern: str
    name: str
    bytes_per_s: float


# The first match wins.
LINKS = (
    Link(r"\bG?B[123]00", "NVLink 5", 900 * _GB),
    Link(r"\b(H100.*PCIe|H100.*NVL)", "NVLink 4 bridge", 300 * _GB),
    Link(r"\bH200.*NVL", "NVLink 4 bridge", 450 * _GB),
    Link(r"\bG?H[12]00", "NVLink 4", 450 * _GB),
    Link(r"\bA100(?!\d)", "NVLink 3", 300 * _GB),
    Link(r"\bV100S?.*PCIe", "PCIe 3", 16 * _GB),
    Link(r"\bV100", "NVLink 2", 150 * _GB),
    Link(r"\bP100(?!\d).*PCIe", "PCIe 3", 16 * _GB),
    Link(r"\bP100(?!\d)", "NVLink 1", 80 * _GB),
    Link(r"\b(L40S?|L4|A10)\b", "PCIe 4", 32 * _GB),
    Link(r"\bT4\b", "PCIe 3", 16 * _GB),
    Link(r"\bMI35[05]X|gfx950", "Infinity Fabric", 537.6 * _GB),
    Link(r"\bMI3(00X|25X)", "Infinity Fabric", 448 * _GB),
)
_PATTERNS = tuple((re.compile(link.pattern, re.IGNORECASE), link) for link in LINKS)


def link_of(device: str) -> Link | None:
    """The links of a GPU by its name; None if they are not known."""
    return next((link for pattern, link in _PATTERNS if device and pattern.search(device)), None)
