"""Programs that XLA compiled, with what XLA itself says of them: `tests/data/hlo/programs.json.gz`."""

from __future__ import annotations

import base64
import functools
import gzip
import json
from dataclasses import dataclass
from pathlib import Path

from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.trace.hlo import HloModule

FILE = Path(__file__).resolve().parents[2] / "data" / "hlo" / "programs.json.gz"


@dataclass(frozen=True)
class Recorded:
    """One program: `kind` is matmul, conv, other, or op for a module of a single opcode."""

    name: str
    kind: str
    flops: float
    transcendentals: float
    bytes_accessed: float
    long_text: str
    short_text: str
    proto: bytes

    def module(self) -> HloModule:
        """The program, read by this project."""
        return decode_hlo(self.proto, self.name)


@functools.cache
def recorded(file: Path = FILE) -> dict[str, Recorded]:
    """All programs of the file by name."""
    found = json.loads(gzip.decompress(file.read_bytes()))
    return {name: _recorded(name, facts) for name, facts in found.items()}


def _recorded(name: str, facts: dict[str, object]) -> Recorded:
    numbers = (float(str(facts[key])) for key in ("flops", "transcendentals", "bytes"))
    texts = (str(facts[key]) for key in ("long", "short"))
    return Recorded(name, str(facts["kind"]), *numbers, *texts, base64.b64decode(str(facts["proto"])))
