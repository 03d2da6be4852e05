"""The XSpace of a host -> the same profile as a stream of records, as JAX's continuous profiling writes it.

    python -m bench.stream_trace XSPACE OUTPUT_DIR

Two records, in a transposed chunk that Brotli compresses: the host plane, and everything else. The encoder is
the tests' own and takes some 5 s per megabyte.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.ingest.riegeli_files import RiegeliFile, fields_of, transposed_data, varint

SUFFIX = ".xplane.riegeli"
PLANES = 1


def write_stream(xspace: Path, path: Path) -> None:
    """Write the stream of an XSpace file."""
    planes, rest = [], []
    for tag, value in fields_of(xspace.read_bytes()) or []:
        (planes if tag >> 3 == PLANES else rest).append(varint(tag) + value)
    planes.sort(key=len)
    records = [planes.pop(), b"".join((*planes, *rest))]
    chunk = transposed_data(records)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(RiegeliFile().chunk("t", chunk, len(records), sum(map(len, records))).out)


def main() -> None:
    """Write what the arguments say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("xspace", type=Path)
    parser.add_argument("output_dir", type=Path)
    asked = parser.parse_args()
    write_stream(asked.xspace, asked.output_dir / f"host0{SUFFIX}")


if __name__ == "__main__":
    main()
