"""The live comparison on real GPU, TPU and CPU runs, those of the corpus that TPUPROF_CORPUS names: kernels,
memories and pods.

Compiled operations and the memory of programs stand in `live_corpus_compiled` and `live_corpus_memory`.
Of many kernels a field is a column: how many rows there are, and in how many of them the peer says the same.
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.kernel_stats import view as kernel_stats
from tests.conformance import live_corpus_compiled, live_corpus_memory, live_corpus_reasons
from tests.conformance.live_devices import Field, table
from tests.conformance.live_pods import pods
from tests.conformance.peer import NAMES, VERSION, rows

PS_PER_US = 1_000_000
PREFIX = "corpus_"
Key = tuple[Any, ...]

_THREADS = (
    "times since the trace's start; the peer's since each thread's first event, so that events of "
    "several threads change places"
)
_STEP = (
    "allocations of earlier steps that are still there count as active; the peer takes only the peak's step"
)
_LIFETIME = (
    "never below the peak in the capture; the peer's is what the event says that it takes for the "
    "last, without a TPU's stack"
)
_OPERATIONS = (
    "kernels and copies that no `tf_op` names are called by their HLO instruction or by what a "
    "derived line shows; the peer's are empty"
)
_SHARED = "AMD's `group_mem` is read as shared memory; the peer knows NVIDIA's words only"
_ENDS = (
    "steps that the capture's start or end may have cut are left out, as on the overview; the peer keeps them"
)
_HOSTS = (
    "calls of Python and events inside others of their class are counted as host time; the peer leaves "
    "them over as other time"
)
_CORES = "each GPU is a core; the peer has one per host, with the kernels of all its GPUs"
_APART = (
    "a GPU that did its part of the step at another time has a span of its own; the peer's core is its "
    "host, as long as the longest"
)
_MI300, _V100 = "corpus_tracelens_mi300_jax__*", "corpus_xprof_gpu_multi_worker__*"
# (run, tool, field), each a pattern: why the two differ.
DIFFERENCES: dict[tuple[str, str, str], str] = {
    ("corpus_*", "memory_profile", "*: peak_ps"): _THREADS,
    (_MI300, "memory_profile", "*: levels"): _THREADS,
    ("*__jax08_attention", "memory_profile", "GPU_0_bfc: active allocations"): _THREADS,
    ("*__jax_conv_minimal_08", "memory_profile", "GPU_?_bfc: active allocations"): _STEP,
    (_V100, "memory_profile", "gpu_host_bfc: active allocations"): _STEP,
    (_V100, "memory_profile", "GPU_4_bfc: lifetime_peak_bytes"): _LIFETIME,
    ("corpus_xprof_tpu_*", "memory_profile", "?: lifetime_peak_bytes"): _LIFETIME,
    (_V100, "kernel_stats", "kernels with an operation"): _OPERATIONS,
    (_MI300, "kernel_stats", "kernels with an operation"): _OPERATIONS,
    (_MI300, "kernel_stats", "shared memory"): _SHARED,
    (
        _V100,
        "kernel_stats",
        "occupancy that is shown",
    ): "the trace tells none: computed from the launch; the peer prints 0",
    ("corpus_own_jax_*", "pod_viewer", "steps"): _ENDS,
    ("*__remote_capture", "pod_viewer", "steps"): _ENDS,
    (
        "*__keras_callback",
        "pod_viewer",
        "steps",
    ): "steps that Keras' functions tell; the peer finds none without step events",
    ("corpus_own_*", "pod_viewer", "host compute, *"): _HOSTS,
    ("corpus_own_*", "pod_viewer", "all others, *"): _HOSTS,
    (_V100, "pod_viewer", "cores"): _CORES,
    (_V100, "pod_viewer", "device compute, *"): _CORES,
    (_V100, "pod_viewer", "all others, *"): _CORES,
    (_V100, "pod_viewer", "step time, *"): _APART,
    **live_corpus_reasons.DIFFERENCES,
    **live_corpus_memory.DIFFERENCES,
}


def write_runs(folder: Path, is_chosen: Callable[[str], bool]) -> list[str]:
    """Copies of the chosen runs of the corpus (the peer writes beside what it reads); none where no corpus is
    named.
    """
    corpus = Path(os.environ.get("TPUPROF_CORPUS", "") or "/nowhere")
    found = []
    for name in filter(lambda name: is_chosen(PREFIX + name), NAMES):
        log, run = name.split("__")
        files = sorted((corpus / log / "plugins" / "profile" / run).glob("*.xplane.pb"))
        if files:
            found.append(PREFIX + name)
            target = folder / found[-1]
            target.mkdir(parents=True)
            for file in files:
                shutil.copyfile(file, target / file.name)
    return found


def fields(session: Session, answers: dict[str, Any]) -> list[tuple[str, Field]]:
    """(tool, field) of kernels and pods, where tables are long a field for each column."""
    found = [("kernel_stats", field) for field in _kernels(session, answers["kernel_stats"])]
    return found + [("pod_viewer", field) for field in pods(session, answers["pod_viewer"])]


def rows_of_programs(session: Session, answers: dict[str, Any]) -> list[tuple[str, Field]]:
    """(tool, field) of compiled operations and of the memory of programs: a field for each cell."""
    found = live_corpus_compiled.fields(session, answers)
    return found + [
        ("memory_viewer", field) for field in live_corpus_memory.fields(session, answers["memory_viewer"])
    ]


def runs_of(pattern: str) -> set[str]:
    """Names of all real runs that a pattern stands for, whether or not they are at hand."""
    return {PREFIX + name for name in NAMES if fnmatch.fnmatchcase(PREFIX + name, pattern)}


def as_recorded(name: str, answers: dict[str, Any]) -> list[tuple[str, Field]]:
    """Whether the peer still says what was recorded of it, which other tests take us by; nothing without a
    record.
    """
    found = []
    for tool, live in answers.items():
        path = (
            Path(os.environ["TPUPROF_CORPUS"]).parent
            / "oracle"
            / VERSION
            / name.removeprefix(PREFIX)
            / f"{tool}.json.gz"
        )
        if path.is_file():
            with gzip.open(path) as file:
                found.append(
                    (tool, Field("the peer's answer, as recorded", _digest(json.load(file)), _digest(live)))
                )
    return found


def _digest(answer: Any) -> str:
    """Of all that the peer says alike each time: which of several equal allocations it names as an example
    changes from run to run.
    """
    if "memoryProfilePerAllocator" in answer:
        kept = ("profileSummary", "sampledTimelineSnapshots")
        profiles = answer["memoryProfilePerAllocator"]
        answer = {name: {key: profile[key] for key in kept} for name, profile in profiles.items()}
    return hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).hexdigest()[:12]


def _kernels(session: Session, answer: Any) -> list[Field]:
    """Columns of kernels (all operations and hosts together), and of kernels with the operations that the
    peer knows.
    """
    try:
        mine = table(kernel_stats.TOOL.run(session, None, {}).tables["kernels"])
    except ToolUnavailable:
        mine = []
    peer = rows(answer)
    launches = _summed(mine, _our_launch, _OURS), _summed(peer, _peer_launch, _THEIRS)
    found = [Field("kernels", float(len(launches[0])), float(len(set(launches[0]) & set(launches[1]))))]
    if not peer:
        return found
    found += _columns("kernels", *launches, ("launches", "total", "minimum", "maximum"))
    ours_of, theirs_of = (
        {key(row): row for row in listed} for key, listed in ((_our_launch, mine), (_peer_launch, peer))
    )
    pairs = [(ours_of[key], row) for key, row in theirs_of.items() if key in ours_of]
    found.append(
        _equal(
            "shared memory", [(_known(row["shared_bytes"]), theirs["shmem_bytes"]) for row, theirs in pairs]
        )
    )
    occupancy = [
        (
            0.0 if row["is_occupancy_computed"] else 100 * _known(row["occupancy_fraction"]),
            theirs["occupancy_pct"],
        )
        for row, theirs in pairs
    ]
    found.append(_equal("occupancy that the trace tells", occupancy))
    found.append(
        _equal(
            "occupancy that is shown",
            [(100 * _known(row["occupancy_fraction"]), theirs["occupancy_pct"]) for row, theirs in pairs],
        )
    )
    ops = _summed(mine, _our_op, _OURS), _summed([row for row in peer if row["op_name"]], _peer_op, _THEIRS)
    found.append(
        Field("kernels with an operation", float(sum(bool(key[1]) for key in ops[0])), float(len(ops[1])))
    )
    found += _columns("of the peer's operations", ops[0], ops[1], ("launches", "total"))
    flags = {_our_op(row): row for row in mine}
    named = [(flags[_peer_op(row)], row) for row in peer if row["op_name"] and _peer_op(row) in flags]
    found.append(
        _equal(
            "eligible",
            [
                (
                    row["is_tensor_core_eligible"],
                    theirs["is_op_tensor_core_eligible"] or theirs["is_kernel_using_tensor_core"],
                )
                for row, theirs in named
            ],
        )
    )
    return [
        *found,
        _equal(
            "tensor cores",
            [(row["uses_tensor_cores"], theirs["is_kernel_using_tensor_core"]) for row, theirs in named],
        ),
    ]


def _our_launch(row: dict[str, Any]) -> Key:
    return row["kernel"], row["block"], row["grid"], _known(row["n_registers"])


def _peer_launch(row: dict[str, Any]) -> Key:
    registers = row["registers_per_thread"]
    return (
        row["kernel_name"],
        row["block_dim"],
        row["grid_dim"],
        float(registers) if 0 < registers < 2**32 else 0.0,
    )


def _our_op(row: dict[str, Any]) -> Key:
    return row["kernel"], "" if row["op"] == "(no operation)" else row["op"]


def _peer_op(row: dict[str, Any]) -> Key:
    return row["kernel_name"], row["op_name"]


def _known(value: float) -> float:
    return 0.0 if value != value else float(value)


_OURS = ("n_occurrences", "total_ps", "min_ps", "max_ps", PS_PER_US)
_THEIRS = ("occurrences", "total_duration_us", "min_duration_us", "max_duration_us", 1)


def _summed(
    listed: list[dict[str, Any]], key: Callable[[dict[str, Any]], Key], names: tuple[Any, ...]
) -> dict[Key, dict[str, float]]:
    found: dict[Key, dict[str, float]] = {}
    for row in listed:
        into = found.setdefault(
            key(row), {"launches": 0.0, "total": 0.0, "minimum": math.inf, "maximum": 0.0}
        )
        into["launches"] += row[names[0]]
        into["total"] += row[names[1]] / names[4]
        into["minimum"] = min(into["minimum"], row[names[2]] / names[4])
        into["maximum"] = max(into["maximum"], row[names[3]] / names[4])
    return found


def _columns(
    what: str, mine: dict[Key, dict[str, float]], peer: dict[Key, dict[str, float]], names: tuple[str, ...]
) -> list[Field]:
    both = [(mine.get(key, {}), values) for key, values in peer.items()]
    return [
        _equal(f"{what}: {name}", [(ours.get(name, -1.0), theirs[name]) for ours, theirs in both])
        for name in names
    ]


def _equal(name: str, pairs: list[tuple[float, float]]) -> Field:
    """How many rows there are, and how many of them are equal; the peer's times have three digits of a µs."""
    same = sum(abs(float(a) - float(b)) <= 2e-3 + 1e-9 * abs(float(b)) for a, b in pairs)
    return Field(name, float(len(pairs)), float(same))
