"""A logdir → its runs and their hosts, by looking at folders only: no trace is opened."""

from __future__ import annotations

import os

SUFFIXES = (".xplane.pb", ".xplane.pb.gz")


def host_of(path: str) -> str:
    """The host that a trace file is of: its name without the suffix."""
    name = os.path.basename(path)
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return name
