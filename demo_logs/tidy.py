"""A freshly captured logdir -> the files worth keeping, with neutral host names.

Profilers name their files after the machine and store that name inside them too. `keep_profile` rewrites each
`<machine>.xplane.pb` as `worker-<n>.xplane.pb` (file name and the XSpace `hostnames` field), drops what else
the profiler left in the run's folder, and renames the run; `rename_event_files` does the same for scalars.
Runs in the environment that captured (it borrows TensorFlow's XSpace messages).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

XPLANE_SUFFIX = ".xplane.pb"


def keep_profile(logdir: Path, run: str, hosts: dict[str, str] | None = None) -> Path:
    """Keep only the XSpace files of the one run found below `logdir`; call the run `run`.

    `hosts` maps the profiler's names to neutral ones; by default they become worker-0, worker-1, … in name
    order.
    """
    files = sorted(logdir.rglob(f"*{XPLANE_SUFFIX}"))
    run_dirs = {file.parent for file in files}
    if len(run_dirs) != 1:
        raise SystemExit(f"expected one profile run below {logdir}, found {len(run_dirs)}")
    old_dir = run_dirs.pop()
    new_dir = old_dir.parent / run
    new_dir.mkdir(exist_ok=True)
    for index, file in enumerate(files):
        name = file.name.removesuffix(XPLANE_SUFFIX)
        neutral = hosts[name] if hosts else f"worker-{index}"
        target = new_dir / f"{neutral}{XPLANE_SUFFIX}"
        target.write_bytes(_with_host_name(file.read_bytes(), neutral))
        _print_summary(target)
    if old_dir != new_dir:
        shutil.rmtree(old_dir)
    for marker in logdir.rglob("*.profile-empty"):
        marker.unlink()
    return new_dir


def rename_event_files(logdir: Path, host: str = "worker-0") -> None:
    """Take the machine's name out of `events.out.tfevents.<time>.<machine>.…`; drop empty profile markers."""
    machine = os.uname().nodename
    for file in sorted(logdir.rglob("events.out.tfevents.*")):
        if file.name.endswith(".profile-empty"):
            file.unlink()
            continue
        target = file.with_name(file.name.replace(f".{machine}.", f".{host}."))
        file.rename(target)
        print(f"wrote {target} ({target.stat().st_size:,} bytes)")


def print_versions(*packages: str) -> None:
    """Say what captured the run, for README.md."""
    from importlib.metadata import version

    found = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"captured with Python {sys.version.split()[0]}, {found}, {os.cpu_count()} cores")


def _with_host_name(data: bytes, host: str) -> bytes:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(data)
    del space.hostnames[:]
    space.hostnames.append(host)
    return space.SerializeToString(deterministic=True)


def _print_summary(file: Path) -> None:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    data = file.read_bytes()
    space = xplane_pb2.XSpace.FromString(data)
    n_events = sum(len(line.events) for plane in space.planes for line in plane.lines)
    print(f"wrote {file} ({len(data):,} bytes, {n_events:,} events)")
