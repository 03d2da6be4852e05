"""The runs that are measured: the demo logs, and those generated into `.bench/traces` on first use.

Each side gets a folder of its own with hard links to the same files, since the peer writes caches next to
the files it reads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.dcn_trace import write_multislice
from bench.device_trace import write_device_trace
from bench.environments import ROOT, ml_python, work_dir
from bench.large_program import large_program
from bench.many_hosts import write_fleet
from bench.overlap_trace import write_overlap_trace
from bench.snapshot_trace import N_ENTRIES, write_snapshot
from bench.snapshot_trace import SUFFIX as SNAPSHOT_SUFFIX
from bench.stream_trace import SUFFIX as STREAM_SUFFIX
from bench.stream_trace import write_stream
from bench.synthetic_trace import write_trace
from bench.table_trace import N_EVENTS as N_TABLE_EVENTS
from bench.table_trace import SUFFIX as TABLE_SUFFIX
from bench.table_trace import write_table
from bench.tf_data_trace import write_copies
from bench.track_events_trace import N_SLICES, write_track_events
from bench.track_events_trace import SUFFIX as TRACK_EVENTS_SUFFIX
from tests.synthetic_serving import Server, serving

XPLANE_SUFFIX = ".xplane.pb"
SUFFIXES = (XPLANE_SUFFIX, STREAM_SUFFIX, TRACK_EVENTS_SUFFIX, SNAPSHOT_SUFFIX, TABLE_SUFFIX)
N_HOSTS = 8
N_SYNTHETIC_EVENTS = 10_000_000
N_LARGE_EVENTS = 50_000_000

JAX_CPU = "jax_cpu"
SYNTHETIC = "synthetic_10m"
SYNTHETIC_50M = "synthetic_50m"
EIGHT_HOSTS = "eight_hosts"
FLEETS = {"hosts_8": 8, "hosts_64": 64, "hosts_256": 256}
DEVICES = "kernels_and_memory"
MULTISLICE = "multislice"
OVERLAP = "overlap"
PROGRAM = "large_program"
TF_DATA = "tf_data"
REQUESTS = "requests"
STREAM = "stream"
TRACK_EVENTS = "track_events"
SNAPSHOT = "snapshot"
TABLE = "viewer_table"
N_REQUESTS = 100_000
N_COPIES = 50


@dataclass(frozen=True)
class Run:
    """A run and its files in the logdir or in `.bench/traces`."""

    name: str
    files: tuple[Path, ...]
    n_events: int = 0  # 0 is unknown

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(file.stat().st_size for file in self.files)

    @property
    def first_host(self) -> str:
        """The host whose trace is drawn."""
        name = self.files[0].name
        return next(name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix))

    def linked(self, side: str) -> Path:
        """The folder of one side with nothing in it but links to the files."""
        folder = work_dir() / "sides" / side / self.name
        folder.mkdir(parents=True, exist_ok=True)
        names = {file.name for file in self.files}
        for sibling in folder.iterdir():
            if sibling.name not in names:
                shutil.rmtree(sibling) if sibling.is_dir() else sibling.unlink()
        for file in self.files:
            link = folder / file.name
            if not (link.exists() and link.samefile(file)):
                link.unlink(missing_ok=True)
                _link(file, link)
        return folder

    def read(self) -> None:
        """Bring the files into the page cache."""
        for file in self.files:
            with file.open("rb") as data:
                while data.read(1 << 24):
                    pass


def demo_runs() -> list[Run]:
    """The runs of demo_logs/, by the folder of their logdir."""
    demo_logs = ROOT / "demo_logs"
    run_dirs = sorted({file.parent for file in demo_logs.rglob(f"*{XPLANE_SUFFIX}")})
    return [_run(folder.relative_to(demo_logs).parts[0], folder) for folder in run_dirs]


def jax_cpu_run() -> Run:
    """The real run of 1.7 M events."""
    folder = work_dir() / "traces" / JAX_CPU
    if not list(folder.glob(f"*{XPLANE_SUFFIX}")):
        subprocess.run([ml_python(), str(ROOT / "bench" / "jax_cpu_trace.py"), str(folder)], check=True)
    return _run(JAX_CPU, folder)


def synthetic_run() -> Run:
    """The synthetic run of 10 M events."""
    return _synthetic(SYNTHETIC, N_SYNTHETIC_EVENTS)


def large_run() -> Run:
    """The synthetic run of 50 M events: 1.2 GB, and 5 GB of memory to write it."""
    return _synthetic(SYNTHETIC_50M, N_LARGE_EVENTS)


def _synthetic(name: str, n_events: int) -> Run:
    folder = work_dir() / "traces" / name
    if not list(folder.glob(f"*{XPLANE_SUFFIX}")):
        write_trace(folder / f"host0{XPLANE_SUFFIX}", n_events)
    return _run(name, folder)


def devices_run() -> Run:
    """The synthetic run of kernels and allocations."""
    folder = work_dir() / "traces" / DEVICES
    if not list(folder.glob(f"*{XPLANE_SUFFIX}")):
        write_device_trace(folder / f"host0{XPLANE_SUFFIX}")
    return _run(DEVICES, folder)


def multislice_run() -> Run:
    """The synthetic run of eight hosts that transfer data to other slices."""
    folder = work_dir() / "traces" / MULTISLICE
    if not list(folder.glob(f"*{XPLANE_SUFFIX}")):
        write_multislice(folder)
    return _run(MULTISLICE, folder)


def overlap_run() -> Run:
    """The synthetic run of eight GPUs whose collectives overlap with compute."""
    folder = work_dir() / "traces" / OVERLAP
    if not list(folder.glob(f"*{XPLANE_SUFFIX}")):
        write_overlap_trace(folder / f"host0{XPLANE_SUFFIX}")
    return _run(OVERLAP, folder)


def program_run() -> Run:
    """The synthetic run of a program of 200,000 instructions."""
    folder = work_dir() / "traces" / PROGRAM
    if not list(folder.glob(f"*{XPLANE_SUFFIX}")):
        large_program(folder)
    return _run(PROGRAM, folder)


def eight_hosts_run() -> Run:
    """Eight hosts with the JAX CPU run's file each."""
    source = jax_cpu_run().files[0]
    folder = work_dir() / "traces" / EIGHT_HOSTS
    folder.mkdir(parents=True, exist_ok=True)
    for host in range(N_HOSTS):
        link = folder / f"host{host}{XPLANE_SUFFIX}"
        link.unlink(missing_ok=True)
        _link(source, link)
    return _run(EIGHT_HOSTS, folder)


def fleet_run(name: str) -> Run:
    """Many hosts of about 5 MB each."""
    folder = work_dir() / "traces" / name
    if len(list(folder.glob(f"*{XPLANE_SUFFIX}"))) != FLEETS[name]:
        source = next(run for run in demo_runs() if run.name == "jax_train").files[0]
        write_fleet(source, folder, FLEETS[name])
    return _run(name, folder)


def tf_data_run() -> Run:
    """The demo run with the slow input pipeline, as if it had run for longer: about 1.8 M events in 56 MB."""
    folder = work_dir() / "traces" / TF_DATA
    if not list(folder.glob(f"*{XPLANE_SUFFIX}")):
        source = next(run for run in demo_runs() if run.name == "keras_slow_input").files[0]
        write_copies(source, folder / source.name, N_COPIES)
    return _run(TF_DATA, folder)


def requests_run() -> Run:
    """The synthetic model server with 100,000 requests on a TPU core."""
    folder = work_dir() / "traces" / REQUESTS
    if not list(folder.glob(f"*{XPLANE_SUFFIX}")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"host0{XPLANE_SUFFIX}").write_bytes(serving(Server(n_requests=N_REQUESTS)).data)
    return _run(REQUESTS, folder)


def stream_run() -> Run:
    """A host's file of `hosts_8` as a stream of records."""
    folder = work_dir() / "traces" / STREAM
    if not list(folder.glob(f"*{STREAM_SUFFIX}")):
        write_stream(fleet_run(next(iter(FLEETS))).files[0], folder / f"host0{STREAM_SUFFIX}")
    return _run(STREAM, folder, STREAM_SUFFIX)


def track_events_run() -> Run:
    """The synthetic Perfetto trace of 500,000 slices."""
    folder = work_dir() / "traces" / TRACK_EVENTS
    if not list(folder.glob(f"*{TRACK_EVENTS_SUFFIX}")):
        write_track_events(folder / f"host0{TRACK_EVENTS_SUFFIX}")
    return _run(TRACK_EVENTS, folder, TRACK_EVENTS_SUFFIX, N_SLICES)


def snapshot_run() -> Run:
    """The synthetic memory snapshot of PyTorch with a history of 300,000 entries."""
    folder = work_dir() / "traces" / SNAPSHOT
    if not list(folder.glob(f"*{SNAPSHOT_SUFFIX}")):
        write_snapshot(folder / f"host0{SNAPSHOT_SUFFIX}")
    return _run(SNAPSHOT, folder, SNAPSHOT_SUFFIX, N_ENTRIES)


def table_run() -> Run:
    """The synthetic table of an older profiler's trace viewer."""
    folder = work_dir() / "traces" / TABLE
    if not list(folder.glob(f"*{TABLE_SUFFIX}")):
        write_table(folder / f"host0{TABLE_SUFFIX}")
    return _run(TABLE, folder, TABLE_SUFFIX, N_TABLE_EVENTS)


def _run(name: str, folder: Path, suffix: str = XPLANE_SUFFIX, n_events: int = 0) -> Run:
    return Run(name, tuple(sorted(folder.glob(f"*{suffix}"))), n_events)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)
