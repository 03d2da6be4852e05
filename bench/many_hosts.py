"""A real run as a fleet of hosts of about 5 MB each, profiled for longer.

The demo run of a JAX job, repeated in time (`tf_data_trace.write_copies`), in eight variants of different
length; hosts are hard links to these, since a fleet of 256 would fill a disk. Every host is read and analysed
by itself all the same.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bench.tf_data_trace import write_copies

N_VARIANTS = 8
HOST_BYTES = 5_000_000


def write_fleet(source: Path, folder: Path, n_hosts: int) -> None:
    """Write the hosts `host000.xplane.pb` … into the folder; `source` is one host's file."""
    folder.mkdir(parents=True, exist_ok=True)
    variants = folder.parent / f"{folder.name}_variants"
    paths: list[Path] = []
    n_copies = copies_for(source, variants / "probe")
    for i in range(min(N_VARIANTS, n_hosts)):
        paths.append(variants / str(i))
        write_copies(source, paths[-1], n_copies + i % 3)
    for host in range(n_hosts):
        target = folder / f"host{host:03d}.xplane.pb"
        target.unlink(missing_ok=True)
        try:
            os.link(paths[host % len(paths)], target)
        except OSError:  # a file system without links
            shutil.copyfile(paths[host % len(paths)], target)
    shutil.rmtree(variants)


def copies_for(source: Path, probe: Path) -> int:
    """How many copies of a run make a file of `HOST_BYTES`: names and programs are not repeated,
    events are.
    """
    write_copies(source, probe, 2)
    once = source.stat().st_size
    each = probe.stat().st_size - once
    return max(3, 1 + round((HOST_BYTES - once) / each))
