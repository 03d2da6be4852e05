"""A synthetic multislice job -> an XSpace for each host: cores that transfer data to other slices all the
time.

    python -m bench.dcn_trace OUTPUT_DIR [--hosts 8] [--cores 4] [--transfers 3000]

Each transfer is its four operations with compute between them; six collectives take turns, and slack varies
from one transfer to the next. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.synthetic_dcn import ALL, dcn_host

N_HOSTS, N_CORES, N_TRANSFERS = 8, 4, 3000
SUFFIX = ".xplane.pb"


def core_runs(core: int, n_transfers: int) -> str:
    """What a core runs, as text."""
    at, runs = 0, []
    for i in range(n_transfers):
        kind, slack = i % len(ALL) + 1, 20 + (7 * i + core) % 50
        for name, length in (
            (f"send.{kind}", 3),
            ("fusion", slack),
            (f"send-done.{kind}", 2),
            (f"recv.{kind}", 2),
            ("fusion", slack),
            (f"recv-done.{kind}", 5 + (11 * i + core) % 30),
        ):
            runs.append(f"{name}:{at}-{at + length}")
            at += length
    return " ".join(runs)


def write_multislice(
    folder: Path, n_hosts: int = N_HOSTS, n_cores: int = N_CORES, n_transfers: int = N_TRANSFERS
) -> None:
    """Write the files of all hosts."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n_hosts):
        host = f"synthetic-dcn-{number}"
        cores = [core_runs(number * n_cores + core, n_transfers) for core in range(n_cores)]
        (folder / f"{host}{SUFFIX}").write_bytes(dcn_host(ALL, cores, host=host))


def main() -> None:
    """Write what the arguments say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hosts", type=int, default=N_HOSTS)
    parser.add_argument("--cores", type=int, default=N_CORES)
    parser.add_argument("--transfers", type=int, default=N_TRANSFERS)
    asked = parser.parse_args()
    write_multislice(asked.folder, asked.hosts, asked.cores, asked.transfers)


if __name__ == "__main__":
    main()
