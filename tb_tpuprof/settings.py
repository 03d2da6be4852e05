"""The user's settings for this machine, read from files that environment variables name."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PEAKS_VARIABLE = "TPUPROF_PEAKS"


@dataclass(frozen=True)
class PeaksFile:
    """`{"device name": {"flops_per_s": …, "hbm_bytes_per_s": …}}` as the user wrote it; `problem` is the
    reason if it cannot be read.
    """

    path: str = ""
    devices: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


def peaks_file() -> PeaksFile:
    """The file that TPUPROF_PEAKS names; an empty one if it is not set. Read once per process."""
    path = os.environ.get(PEAKS_VARIABLE, "")
    return _read(path) if path else PeaksFile()


@cache
def _read(path: str) -> PeaksFile:
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        return PeaksFile(path, {}, str(error))
    return (
        PeaksFile(path, content)
        if isinstance(content, dict)
        else PeaksFile(path, {}, "it is not a JSON object")
    )
