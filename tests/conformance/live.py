"""`make conformance`: the peer, run live on synthetic TPU and GPU runs and on real ones, beside this project,
field by field.

`python -m tests.conformance.live [RUN …]` prints a row per field and ends with status 1 if a difference is
not listed, or a listed one is gone. RUN is a pattern such as `corpus_*gemm`; without any all runs are
compared. The peer runs in an environment of its own (`TPUPROF_PEER_PYTHON`, else `.bench/peer`, made on first
use).
"""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.environments import peer_python
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.framework_op_stats import view as framework_op_stats
from tb_tpuprof.tools.kernel_stats import view as kernel_stats
from tb_tpuprof.tools.memory_profile import view as memory_profile
from tb_tpuprof.tools.overview_page import view as overview_page
from tb_tpuprof.tools.payload import Payload
from tests.conformance import live_compiled, live_corpus, live_devices, live_pods
from tests.conformance.live_devices import table
from tests.conformance.live_differences import DIFFERENCES
from tests.conformance.live_runs import RUNS
from tests.conformance.peer import STEP_COLUMNS, rows
from tests.synthetic import write_run

Value = float | str | None
Row = dict[str, Any]
PS_PER_MS, PS_PER_US, GIB = 1e9, 1e6, 2**30
ALL_DIFFERENCES = DIFFERENCES | live_corpus.DIFFERENCES


@dataclass(frozen=True)
class Compared:
    """One field of one tool. Numbers count as equal within `tolerance`, which follows from the digits that
    the peer prints.

    It is relative above `floor`, absolute below.
    """

    tool: str
    field: str
    ours: Value
    theirs: Value
    tolerance: float = 1e-6
    floor: float = 1.0

    @property
    def is_equal(self) -> bool:
        """Whether both say the same."""
        if isinstance(self.ours, (int, float)) and isinstance(self.theirs, (int, float)):
            return abs(self.ours - self.theirs) <= self.tolerance * max(self.floor, abs(self.theirs))
        return self.ours == self.theirs


def percent(text: str | None) -> Value:
    """`12.3%` as 12.3."""
    return float(text.rstrip("%")) if text else None


def number(text: str | None) -> Value:
    """A number that the peer prints as text; of a single step it prints no deviation."""
    return None if text is None else 0.0 if "nan" in text else float(text)


def times_100(value: Any) -> Value:
    """A fraction as percent."""
    return None if value is None else 100.0 * float(value)


def step_times(tool: str, payload: Payload, properties: Row) -> list[Compared]:
    """Statistics of the step time; the peer prints one decimal (GPU) or two (TPU)."""
    names = {"avg": "average", "sd": "standard_deviation", "min": "minimum", "max": "maximum"}
    found = []
    for ours, theirs in names.items():
        printed = properties.get(f"steptime_ms_{theirs}")
        value = payload.scalars[f"step_time_{ours}_ps"].value
        digits = len(printed.partition(".")[2]) if printed else 0
        mine = None if value is None else round(value / PS_PER_MS, digits)
        found.append(Compared(tool, f"step time, {theirs} (ms)", mine, number(printed)))
    return found


_NOT_SHOWN_WHERE_NONE = (
    "device_eager_fraction",
)  # the overview leaves such a share out where it is 0; the peer prints 0.0%
_TPU_COLUMNS = {
    "tcComputeTimeMs": ("device_compute", "device_collectives", "device_to_device"),
    "tcInfeedTimeMs": ("input",),
    "tcOutfeedTimeMs": ("output",),
    "tcIdleTimeMs": ("other",),
}


def step_parts(tool: str, payload: Payload, peer: list[Row], is_tpu: bool) -> list[Compared]:
    """Each part of a step, the mean over the steps (in ms), and how many steps there are."""
    mine = table(payload.tables["steps"])
    found = [Compared(tool, "number of steps", float(len(mine)), float(len(peer)))]
    if not mine or not peer:
        return found
    columns = _TPU_COLUMNS if is_tpu else {theirs: (ours,) for ours, theirs in STEP_COLUMNS.items()}
    for theirs, ours in columns.items():
        means = (
            sum(row[f"{name}_ps"] for row in mine for name in ours) / len(mine) / PS_PER_MS,
            sum(row[theirs] for row in peer) / len(peer),
        )
        found.append(Compared(tool, f"steps: {theirs}", *means))
        worst = max(
            range(min(len(mine), len(peer))), key=lambda i: abs(_part(mine[i], ours) - peer[i][theirs])
        )
        found.append(Compared(tool, f"step {worst}: {theirs}", _part(mine[worst], ours), peer[worst][theirs]))
    return found


def _part(row: Row, names: tuple[str, ...]) -> float:
    return float(sum(row[f"{name}_ps"] for name in names)) / PS_PER_MS


def overview(payload: Payload, answer: Any, is_tpu: bool) -> list[Compared]:
    """The overview: tiles, steps, top operations, environment."""
    tool = "overview_page"
    said, step_said, environment = answer[0]["p"], answer[1].get("p", {}), answer[2]["p"]
    found = step_times(tool, payload, step_said) + step_parts(tool, payload, rows(answer[1]), is_tpu)
    shares = {
        "device_compute_16bit_percent": "device_compute_16bit_fraction",
        "device_compute_32bit_percent": "device_compute_32bit_fraction",
    }
    if is_tpu:
        shares = {
            "device_idle_time_percent": "device_idle_fraction",
            "device_duty_cycle_percent": "duty_cycle_fraction",
            "host_idle_time_percent": "host_idle_fraction",
            "flop_rate_utilization_relative_to_roofline": "roofline_fraction",
            "memory_bw_utilization_relative_to_hw_limit": "hbm_bandwidth_fraction",
        }
    shares["device_op_time_eager_percent"] = "device_eager_fraction"
    for theirs, ours in shares.items():
        scalar = payload.scalars.get(ours)
        absent = 0.0 if ours in _NOT_SHOWN_WHERE_NONE else None
        value = times_100(scalar.value) if scalar else absent
        found.append(
            Compared(
                tool, theirs, None if value is None else round(float(value), 1), percent(said.get(theirs))
            )
        )
    for i, (mine, peer) in enumerate(zip(table(payload.tables["top_ops"]), rows(answer[0]), strict=True), 1):
        found.append(Compared(tool, f"operation {i}", mine["operation"], peer["operation"]))
        found.append(Compared(tool, f"operation {i}: type", mine["type"], peer["category"]))
        found.append(Compared(tool, f"operation {i}: share", mine["self_fraction"], peer["selfTimePercent"]))
        found.append(
            Compared(
                tool, f"operation {i}: cumulative", mine["cumulative_fraction"], peer["cumulativeTimePercent"]
            )
        )
        rate = mine["flop_rate_flops_per_s"]
        found.append(
            Compared(tool, f"operation {i}: GFLOP/s", 0.0 if rate != rate else rate / 1e9, peer["flopRate"])
        )
    facts = {row["name"]: row["value"] for row in table(payload.tables["environment"])}
    found.append(Compared(tool, "device type", facts["Hardware"], environment["device_type"]))
    cores = facts["TPU cores" if is_tpu else "Devices"].split()[0]
    found.append(Compared(tool, "devices", float(cores), float(environment["device_core_count"])))
    return [
        *found,
        Compared(tool, "verdict on the input", bound(payload), bound_of_peer(answer[3]["p"]["statement"])),
    ]


def bound(payload: Payload) -> str:
    """How input-bound we call the run: highly, moderately or not."""
    text = payload.verdict.text + " ".join(payload.verdict.details) if payload.verdict else ""
    return next((word for word in ("highly", "moderately") if f"{word} input-bound" in text.lower()), "not")


def bound_of_peer(statement: str) -> str | None:
    """The same of the peer's sentence; None where it says nothing."""
    words = {"HIGHLY": "highly", "MODERATELY": "moderately", "NOT": "not", "POTENTIALLY": "not"}
    return next((word for said, word in words.items() if f"{said} input-bound" in statement), None)


def operations(payload: Payload, answer: Any, _is_tpu: bool) -> list[Compared]:
    """Framework operations, idle time among them."""
    tool = "framework_op_stats"
    mine = {(row["host_or_device"], row["operation"]): row for row in table(payload.tables["ops"])}
    found = []
    peers = {(row["host_or_device"], row["operation"]): row for row in rows(answer[0])}
    found.append(
        Compared(tool, "operations", "\n".join(sorted(map(str, mine))), "\n".join(sorted(map(str, peers))))
    )
    for key in sorted(set(mine) & set(peers)):
        ours, theirs = mine[key], peers[key]
        name = f"{key[0]} {key[1]}"
        for column, other, scale in (
            ("n_occurrences", "occurrences", 1.0),
            ("total_time_ps", "total_time", PS_PER_US),
            ("total_self_time_ps", "total_self_time", PS_PER_US),
            ("flop_rate_flops_per_s", "measured_flop_rate", 1e9),
            ("memory_bandwidth_bytes_per_s", "measured_memory_bw", GIB),
            ("operational_intensity_flops_per_byte", "operational_intensity", 1.0),
        ):
            value = ours[column] / scale
            found.append(Compared(tool, f"{name}: {other}", 0.0 if value != value else value, theirs[other]))
        for column, other in (("type", "type"), ("nearest_limit", "bound_by"), ("eager", "eager")):
            found.append(Compared(tool, f"{name}: {other}", ours[column], theirs[other]))
    return found


def input_pipeline(payload: Payload, answer: Any, is_tpu: bool) -> list[Compared]:
    """The input pipeline analyzer: statistics of the wait, the host's categories, the verdict."""
    tool = "input_pipeline_analyzer"
    said = answer[1].get("p", {})
    found = step_times(tool, payload, said)
    if is_tpu:
        for ours, theirs in (
            ("", "average"),
            ("_sd", "standard_deviation"),
            ("_min", "minimum"),
            ("_max", "maximum"),
        ):
            value = times_100(payload.scalars[f"input_fraction{ours}"].value)
            found.append(
                Compared(
                    tool,
                    f"infeed_percent_{theirs}",
                    None if value is None else round(float(value), 1),
                    number(said.get(f"infeed_percent_{theirs}")),
                )
            )
    host = answer[2].get("p", {})
    categories = {row["category"]: row["time_ps"] for row in table(payload.tables["host_categories"])}
    for ours, theirs in (
        ("Enqueuing", "enqueue_us"),
        ("Preprocessing", "preprocessing_us"),
        ("Prefetched reads", "advanced_file_read_us"),
        ("On-demand reads", "demanded_file_read_us"),
        ("Other", "unclassified_nonequeue_us"),
    ):
        found.append(
            Compared(tool, theirs, round(categories[ours] / PS_PER_US, 3), number(host.get(theirs)), 1e-3)
        )
    return [
        *found,
        Compared(
            tool, "verdict on the input", bound(payload), bound_of_peer(said.get("input_conclusion", ""))
        ),
    ]


def compare(run: Path, answers: Row) -> list[Compared]:
    """All fields of all tools of one run."""
    session = Session(str(run), cache=False)
    found = []
    if "memory_profile" in answers:
        found += [
            Compared("memory_profile", *field)
            for field in live_devices.memory(_memories(session), answers["memory_profile"])
        ]
    if run.name.startswith(live_corpus.PREFIX):
        of_both = [*live_corpus.fields(session, answers), *live_corpus.as_recorded(run.name, answers)]
        found += [Compared(tool, *field) for tool, field in of_both]
        return found + [
            Compared(tool, *field, floor=1e-9)
            for tool, field in live_corpus.rows_of_programs(session, answers)
        ]
    if found:
        return found
    is_tpu = run.name.startswith("tpu")
    if not is_tpu:
        payload = kernel_stats.TOOL.run(session, None, {})
        found = [
            Compared("kernel_stats", *field)
            for field in live_devices.kernels(payload, answers["kernel_stats"])
        ]
    if "overview_page" not in answers:
        return found
    if "hlo_stats" in answers:
        found += [
            Compared(tool, *field, floor=1e-9) for tool, field in live_compiled.fields(session, answers)
        ]
    found += [Compared("pod_viewer", *field) for field in live_pods.pods(session, answers["pod_viewer"])]
    found += overview(overview_page.TOOL.run(session, None, {}), answers["overview_page"], is_tpu)
    found += operations(
        framework_op_stats.TOOL.run(session, None, {"idle": True}), answers["framework_op_stats"], is_tpu
    )
    analyzer = "tb_tpuprof.tools.input_pipeline_analyzer.view"
    if find_spec(analyzer):
        payload = import_module(analyzer).TOOL.run(session, None, {})
        found += input_pipeline(payload, answers["input_pipeline_analyzer"], is_tpu)
    return found


def _memories(session: Session) -> dict[str, Payload]:
    """A payload of each memory, by the peer's name of it: of a device its number alone."""
    host = session.hosts[:1]  # the peer takes one

    def payload(**params: object) -> Payload:
        return memory_profile.TOOL.run(session, host, {"width_px": 8000, **params})

    try:
        names = [str(row["memory"]) for row in live_devices.table(payload().tables["memories"])]
    except ToolUnavailable:
        return {}
    return {name.removeprefix("device "): payload(memory=name) for name in names}


def reason_of(run: str, field: Compared) -> tuple[tuple[str, str, str], str] | None:
    """The listed difference that a field falls under."""
    for key, why in ALL_DIFFERENCES.items():
        if all(
            fnmatch.fnmatchcase(text, pattern)
            for text, pattern in zip((run, field.tool, field.field), key, strict=True)
        ):
            return key, why
    return None


def _runs_of(pattern: str) -> set[str]:
    """All runs that a listed difference may show in. Where not all of them were compared, nobody knows
    whether it is gone.
    """
    return {run for run in RUNS if fnmatch.fnmatchcase(run, pattern)} | live_corpus.runs_of(pattern)


def shown(value: Value) -> str:
    """A value for the table."""
    return (
        "–"
        if value is None
        else f"{value:.6g}"
        if isinstance(value, (int, float))
        else value.replace("\n", " ")[:60]
    )


def report(compared: dict[str, list[Compared]]) -> int:
    """Print the table; the exit status."""
    used, n_equal, n_listed, wrong = set(), 0, 0, []
    for run, fields in compared.items():
        for field in fields:
            listed = None if field.is_equal else reason_of(run, field)
            if field.is_equal:
                n_equal += 1
                verdict = "equal"
            elif listed:
                used.add(listed[0])
                n_listed += 1
                verdict = f"listed: {listed[1]}"
            else:
                verdict = "DIFFERENT"
                wrong.append(field)
            print(
                f"{run:13} {field.tool:24} {field.field:58} {shown(field.ours):>24} "
                f"{shown(field.theirs):>24}  {verdict}"
            )
    gone = {
        key for key in ALL_DIFFERENCES if 0 < len(_runs_of(key[0])) == len(_runs_of(key[0]) & set(compared))
    } - used
    for key in sorted(gone):
        print(f"A listed difference no longer shows: {key}")
    print(
        f"\n{n_equal} fields equal, {n_listed} differ for a listed reason, {len(wrong)} without one; "
        f"{len(gone)} listed ones are gone."
    )
    return 1 if wrong or gone else 0


def main(patterns: Sequence[str] = ()) -> int:
    """Make the runs, all or those that a pattern names, ask both sides, compare."""

    def is_chosen(run: str) -> bool:
        return not patterns or any(fnmatch.fnmatchcase(run, pattern) for pattern in patterns)

    made = {run: hosts for run, hosts in RUNS.items() if is_chosen(run)}
    with tempfile.TemporaryDirectory(prefix="tpuprof-conformance-") as name:
        folder = Path(name)
        for side in ("ours", "theirs"):
            (folder / side).mkdir()
        for run, hosts in made.items():
            for side in ("ours", "theirs"):
                write_run(folder / side / run, hosts)
        real = live_corpus.write_runs(folder / "ours", is_chosen)
        live_corpus.write_runs(folder / "theirs", is_chosen)
        if not real and not patterns:
            print(
                "*** TPUPROF_CORPUS names no folder of recorded traces: only synthetic runs are compared. ***"
            )
        out = folder / "answers.json"
        script = Path(__file__).with_name("live_peer.py")
        done = subprocess.run(
            [peer_python(), str(script), str(folder / "theirs"), str(out)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(done.stderr[-4000:], file=sys.stderr)
            return 2
        answers = json.loads(out.read_text())
        return report({run: compare(folder / "ours" / run, answers[run]) for run in (*made, *real)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
