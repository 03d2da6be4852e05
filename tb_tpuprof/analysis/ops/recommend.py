"""The verdict on a run: a sentence about what costs its steps most. Thresholds are XProf's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, TENSORFLOW
from tb_tpuprof.analysis.ops.stats import OpStats
from tb_tpuprof.analysis.steps.classes import CATEGORIES, TimeClass
from tb_tpuprof.analysis.steps.record import Steps
from tb_tpuprof.units import format_fraction, format_time, three_digits

Level = Literal["good", "warn", "bad", "unknown"]

# Shares of the step time above which a category is a moderate or a high cost (XProf's `bottleneck`
# thresholds).
THRESHOLDS = {
    "input": (0.05, 0.20),
    "output": (0.05, 0.20),
    "kernel_launch": (0.03, 0.15),
    "device_collectives": (0.03, 0.15),
    "compilation": (0.03, 0.15),
    "host_python": (0.03, 0.15),
    "host_wait": (0.03, 0.15),
    "other": (0.03, 0.15),
}
LOW_PRECISION = 0.1  # below this share of 16-bit compute, mixed precision is worth considering
MUCH_EAGER = 0.1
_ALMOST_ALL = 0.9
_CALLED_AHEAD = "each step's work was called before the previous step's work ended"
_WORTH_SAYING = 0.001
_MUCH_LONGER = 2.0  # times the average
NO_STEPS = "The trace has no steps, so there is no step time."
_MIXED_PRECISION = {
    PYTORCH: "mixed precision (`torch.autocast`)",
    TENSORFLOW: "mixed precision (`mixed_bfloat16` or `mixed_float16`)",
    JAX: "computing in bfloat16 (mixed precision)",
}
_LEVELS: tuple[Level, ...] = ("good", "warn", "bad")


@dataclass(frozen=True)
class Cost:
    """One category of a step's time: its share, mean time per step in ps, and severity (0 fine, 1 moderate, 2
    high).
    """

    category: str
    fraction: float
    mean_ps: float
    severity: int


@dataclass(frozen=True)
class Finding:
    """The verdict: the category it is about (of CATEGORIES, or empty), the main sentence and further ones.

    `why`: what explains the main sentence; `costs`: other costs above the same thresholds; `details`: what
    else is known of the steps; `advice`: what may save time whatever the verdict is.
    """

    level: Level
    category: str
    text: str
    details: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def more(self) -> tuple[str, ...]:
        """All further sentences about the steps."""
        return (*self.why, *self.costs, *self.details)


def costs(steps: Steps) -> list[Cost]:
    """Categories that have thresholds, worst first: by severity, input before others, then by share."""
    ranked = []
    for category, (moderate, high) in THRESHOLDS.items():
        fraction = steps.fraction(category)
        mean_ps = float(steps.category_ps(category).mean()) if len(steps) else 0.0
        ranked.append(Cost(category, fraction, mean_ps, (fraction >= moderate) + (fraction >= high)))
    return sorted(ranked, key=lambda cost: (-cost.severity, cost.category != "input", -cost.fraction))


def finding(steps: Steps, ops: OpStats, kind: str, framework: str = "", n_devices: int = 1) -> Finding:
    """The verdict on a run of the given hardware kind (CPU, GPU, TPU) on `n_devices` that ran something, in
    the terms of its framework.
    """
    details, advice = _first_step(steps), _advice(steps, ops, kind, framework)
    largest = largest_op(ops, kind, n_devices)
    if not len(steps):
        if not largest:
            return Finding("unknown", "", "The trace has neither steps nor operations.", advice=advice)
        return Finding("unknown", "", largest, (NO_STEPS,), advice=advice)
    ranked = costs(steps)
    worst = ranked[0]
    others = tuple(_sentence(cost, kind, steps) for cost in ranked[1:] if cost.severity)
    if not worst.severity:
        why = (largest,) if largest else ()
        return Finding("good", _busiest(steps), _computing(steps, kind), details, why=why, advice=advice)
    sentence = _sentence(worst, kind, steps)
    return Finding(_LEVELS[worst.severity], worst.category, sentence, details, others, advice=advice)


def input_finding(steps: Steps, kind: str) -> Finding:
    """The verdict on the input alone, from the same costs: highly, moderately, possibly or not input-bound.
    It never contradicts `finding`.

    Possibly: the traced waits for input are short, but the untraced or idle time is moderate or high, and may
    be waiting for data that the trace does not show.
    """
    if not len(steps):
        return Finding("unknown", "", "Whether the job waits for input is unknown: the trace has no steps.")
    by_category = {cost.category: cost for cost in costs(steps)}
    waits, untraced, idle = by_category["input"], by_category["other"], by_category["host_wait"]
    covered = ("input", "other", "host_wait")
    others = tuple(
        _sentence(cost, kind, steps)
        for cost in costs(steps)
        if cost.severity and cost.category not in covered
    )
    first = _first_step(steps)
    if waits.severity:
        return Finding(_LEVELS[waits.severity], "input", _sentence(waits, kind, steps), first, others)
    traced = (
        f"each step waits {format_time(waits.mean_ps)} ({format_fraction(waits.fraction)}) for data"
        if waits.mean_ps
        else ""
    )
    if idle.severity:
        where = (
            f"each step waits {format_time(idle.mean_ps)} ({format_fraction(idle.fraction)})"
            f"{_where(steps, 'host_wait')}"
        )
        text = (
            f"Possibly input-bound: {traced or 'no waiting for data was traced'}, but {where}, and the "
            "trace does not show what for."
        )
        return Finding("warn", "host_wait", text, first, others)
    had_data = _why_data_was_there(steps, kind)
    if untraced.severity and not had_data:
        idle_text = "nothing traced ran" if kind == "CPU" else f"the {kind} had no work"
        for_time = (
            f"for {format_time(untraced.mean_ps)} ({format_fraction(untraced.fraction)}) of each step "
            f"{idle_text}"
        )
        waits_text = traced or "no waiting for data was traced"
        text = (
            f"Possibly input-bound: {waits_text}, but {for_time}, which may also be time spent waiting for "
            "data."
        )
        return Finding("warn", "other", text, first, others)
    if untraced.severity:
        text = (
            f"{format_time(untraced.mean_ps)} ({format_fraction(untraced.fraction)}) of each step is Python "
            "or other work between operations"
        )
        others = (f"{text}, not waiting for data: {had_data}.", *others)
    return Finding("good", "input", f"Not input-bound: {traced or 'no step waits for data'}.", first, others)


def _first_step(steps: Steps) -> tuple[str, ...]:
    """A note that the first step, which is left out, waited long for data; empty if it did not."""
    if not steps.first or not steps.first.fills_a_buffer:
        return ()
    waited = f"{format_time(steps.first.input_ps)} of {format_time(steps.first.duration_ps)}"
    return (
        f"The first step ({steps.first.name}) waited {waited} for data and is left out: buffers are "
        "filled and workers started only once.",
    )


def is_fed(steps: Steps, kind: str) -> bool:
    """Whether almost all steps on a host fetched data from a traced input pipeline: their other time is then
    not waiting for data.
    """
    if kind != "CPU" or not len(steps):
        return False
    return float((steps.class_ps[:, TimeClass.HOST_WAIT_INPUT] > 0).mean()) >= _ALMOST_ALL


def _why_data_was_there(steps: Steps, kind: str) -> str:
    """Why the untraced time of steps on a host is not waiting for data; empty if it may be."""
    if is_fed(steps, kind):
        return "each step's fetch from the input pipeline was traced"
    return _CALLED_AHEAD if kind == "CPU" and steps.is_ahead else ""


def _where(steps: Steps, category: str) -> str:
    """The functions or annotations in which the steps spent a category's time, if the trace has frames or
    annotations; else empty.
    """
    waits = [wait for wait in steps.waits if wait.kind in CATEGORIES[category]]
    total_ps = int(steps.category_ps(category).sum())
    if not waits or not total_ps or waits[0].total_ps * 2 < sum(wait.total_ps for wait in waits):
        several = [wait.title for wait in waits if wait.total_ps * 10 >= total_ps][:3]
        return f" in {' and '.join(several)}" if several and total_ps else ""
    return f"{', most of it' if waits[0].total_ps < 0.9 * total_ps else ''} in {waits[0].title}"


def on_worst_host(verdict: Finding, host: str, steps: Steps) -> Finding:
    """The verdict on the input of several hosts, if their mean hides that one of them, `host` with its own
    `steps`, is input-bound.
    """
    waits = next((cost for cost in costs(steps) if cost.category == "input"), None)
    if not len(steps) or not waits or not waits.severity:
        return verdict
    if verdict.category == "input" and verdict.level in _LEVELS[waits.severity :]:
        return verdict
    time = f"{format_time(waits.mean_ps)} ({format_fraction(waits.fraction)})"
    how = "Highly" if waits.severity == 2 else "Moderately"
    where = _where(steps, "input")
    text = (
        f"{how} input-bound on {host}: each of its steps waits {time} for data{where}, and the other hosts "
        "wait for it."
    )
    if verdict.level == "bad" and waits.severity < 2:
        return replace(verdict, costs=(text, *verdict.costs))
    return Finding(
        _LEVELS[waits.severity],
        "input",
        text,
        verdict.details,
        (f"Over all hosts: {verdict.text}", *verdict.costs),
    )


def apart_finding(verdicts: Sequence[tuple[str, Finding]]) -> Finding:
    """The verdict on hosts whose captures do not overlap: the verdict of each host, with the worst level and
    its category.
    """
    order: tuple[Level, ...] = ("bad", "warn", "unknown", "good")
    ranked = sorted(verdicts, key=lambda pair: order.index(pair[1].level))
    worst = ranked[0][1]
    text = (
        f"The captures of {len(verdicts)} hosts do not overlap in time, so each host is judged separately: "
        "select a host to see its details."
    )
    return Finding(
        worst.level, worst.category, text, tuple(f"`{host}`: {verdict.text}" for host, verdict in ranked)
    )


def _sentence(cost: Cost, kind: str, steps: Steps) -> str:
    """A sentence that explains a cost."""
    time = f"{format_time(cost.mean_ps)} ({format_fraction(cost.fraction)})"
    how = "Highly" if cost.severity == 2 else "Moderately"
    if cost.category == "input":
        return f"{how} input-bound: each step waits {time} for data{_where(steps, 'input')}."
    if cost.category == "host_wait":
        return (
            f"Each step waits {time}{_where(steps, 'host_wait')}; the trace does not show what for, possibly "
            "for data."
        )
    if cost.category == "host_python":
        return _python_sentence(how, time, steps)
    if cost.category == "output":
        return f"{how} transfer-bound: each step spends {time} copying results back to the host."
    if cost.category == "kernel_launch":
        return f"{how} dispatch-bound: each step spends {time} launching kernels."
    if cost.category == "device_collectives":
        return f"{how} communication-bound: each step spends {time} in collectives between devices."
    if cost.category == "compilation":
        return f"{how} compilation-bound: each step spends {time} compiling."
    if kind == "CPU" and steps.is_ahead:
        return f"{time} of each step was not recorded: no operation ran, although {_CALLED_AHEAD}."
    if kind == "CPU" and is_fed(steps, kind):
        return f"{time} of each step was not recorded: it is Python or other host work between operations."
    if kind == "CPU":
        return (
            f"{time} of each step was not recorded: it is Python or other host work, or waiting, possibly "
            "for data."
        )
    besides = ", besides waits for data" if _waits_on_host(steps) >= _WORTH_SAYING else ""
    rest = "" if besides else ", possibly for data"
    return (
        f"The {kind} is idle for {time} of each step{besides}: it waits for host work that was not "
        f"recorded{rest}."
    )


def _waits_on_host(steps: Steps) -> float:
    """Share of the steps' time in which the host waited for data and no device worked."""
    total_ps = int(steps.duration_ps.sum())
    classes = [TimeClass.HOST_WAIT_INPUT, TimeClass.HOST_WAIT_LOADER]
    return int(steps.class_ps[:, classes].sum()) / total_ps if total_ps else 0.0


def _python_sentence(how: str, time: str, steps: Steps) -> str:
    """A sentence about time in Python, or in regions that the program annotates and in which no operation was
    traced.
    """
    waits = [wait for wait in steps.waits if wait.kind in CATEGORIES["host_python"]]
    where = _where(steps, "host_python")
    if waits and not waits[0].file and where:
        return (
            f"{time} of each step is{where}, where no operation was traced: Python, other host work, or "
            "waiting."
        )
    return f"{how} Python-bound: each step spends {time} in Python{where}."


def _computing(steps: Steps, kind: str) -> str:
    category = "host_compute" if kind == "CPU" else "device_compute"
    where = "computing on the host" if kind == "CPU" else f"computing on the {kind}"
    return (
        f"Compute-bound: {format_fraction(steps.fraction(category))} of each step is spent {where}; no "
        "other cost is significant."
    )


def _busiest(steps: Steps) -> str:
    return max(("device_compute", "host_compute"), key=steps.fraction)


def largest_op(ops: OpStats, kind: str, n_devices: int) -> str:
    """A sentence about the operation that took the most time, on the device if it ran any; empty without
    operations.
    """
    side, metrics = ("device", ops.device) if len(ops.device) else ("host", ops.host)
    if not metrics.busy_ps:
        return ""
    top = int(metrics.self_ps.argmax())
    time_ps, share = float(metrics.self_ps[top]), float(metrics.self_ps[top] / metrics.busy_ps)
    word = {"TPU": "cores", "GPU": "GPUs"}.get(kind, "devices")
    summed = f" summed over {n_devices:,} {word}" if side == "device" and n_devices > 1 else ""
    return (
        f"The most expensive {side} operation is `{metrics.name[top]}`: {format_time(time_ps)}{summed}, "
        f"{format_fraction(share)} of the time of all {side} operations."
    )


def spread_sentence(steps: Steps) -> str:
    """A sentence about steps that take unlike times; empty if they do not."""
    ratio = float(steps.duration_ps.max()) / float(steps.duration_ps.mean()) if len(steps) > 1 else 1.0
    if ratio <= _MUCH_LONGER:
        return ""
    return f"Step times vary: the slowest step took {three_digits(ratio)} times the average."


def precision(steps: Steps) -> tuple[float, float] | None:
    """Shares of 16-bit and 32-bit compute in the typed compute time of all steps; None if there is none."""
    half, full = (
        int(steps.class_ps[:, c].sum()) for c in (TimeClass.DEVICE_COMPUTE_16, TimeClass.DEVICE_COMPUTE_32)
    )
    return (half / (half + full), full / (half + full)) if half + full else None


def eager_fraction(metrics_self_eager_ps: int, busy_ps: int) -> float:
    """Share of the operations' self time spent in eager mode; 0 without operations."""
    return metrics_self_eager_ps / busy_ps if busy_ps else 0.0


def _share_in_words(share: float) -> str:
    return f"Only {format_fraction(share)}" if share else "None"


def _advice(steps: Steps, ops: OpStats, kind: str, framework: str) -> tuple[str, ...]:
    """Ways to save time that do not depend on the verdict."""
    advice = []
    shares = precision(steps) if kind == "GPU" else None
    if shares and shares[0] < LOW_PRECISION:
        how = _MIXED_PRECISION.get(framework, "mixed precision")
        advice.append(
            f"{_share_in_words(shares[0])} of the device compute time is 16-bit: {how} may save time."
        )
    eager = eager_fraction(int(ops.device.self_ps[ops.device.is_eager].sum()), ops.device.busy_ps)
    if eager > MUCH_EAGER and framework in ("", TENSORFLOW):
        advice.append(
            f"{format_fraction(eager)} of the operations' time on the device was spent in eager mode: "
            "tf.function may save time."
        )
    return tuple(advice)
