"""hlo_stats: every operation of compiled programs with its times, work, rates, what binds it and where it came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.hlo_ops import HloOps, Words, words_of
from tb_tpuprof.analysis.memory_accesses import SPACES
from tb_tpuprof.analysis.roofline import TITLES, Rates, rates, ratio
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Column, NextStep, Params, Payload, Scalar, Table, Tool, Unit, Verdict
from tb_tpuprof.tools.columns import text_column
from tb_tpuprof.tools.hlo_session import available, diagnostics_of, expression_texts, find_ops, share_basis
from tb_tpuprof.tools.shares import shares_table
from tb_tpuprof.units import format_fraction, format_time

N_ROWS = 10_000
MAX_EXPRESSION = 2_000
_OUTSIDE = "outside_compilation"
_REMAT = ".remat"
_STANDS_OUT = 0.1
_NEAR_ITS_PEAK = 0.3  # below, an operation waits, for a copy or another core, rather than works
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """Operations of one, several or all hosts together."""
    found = find_ops(session, hosts, TOOL.name)
    ops = found.ops
    order = ops.by_self_time
    shown = order[:N_ROWS]
    speed = rates(ops.work, ops.time_ps, found.roofs)
    texts = expression_texts(session, found, shown)
    bound = Words(speed.bound_by + 1, ("Unknown", "Compute", *TITLES))
    own = ops.kept(~ops.is_sparse)
    main = Words(bound.codes[~ops.is_sparse], bound.strings)
    tables = {
        "ops": ops_table(ops, speed, shown, texts),
        "by_category": shares_table("By category", own.category, own.self_ps),
        "by_op": shares_table("By operation", own.name, own.self_ps),
        "by_bound": shares_table("By what binds", main, own.self_ps),
        "by_source": shares_table("By source line", _short_sources(own.source), own.self_ps, "(no source line)"),
        "by_program": shares_table("By program", words_of([own.programs[p] for p in own.program.tolist()]), own.self_ps),
    }
    for name, title, mask in (
        ("by_rematerialized", "Rematerialized", _is_rematerialized(own)),
        ("by_outside", "Outside compilation", _is_outside(own)),
    ):
        if mask.any():
            tables[name] = shares_table(title, Words(mask.astype(np.int64), ("No", title)), own.self_ps)
    return Payload(TOOL.name, session.run, hosts, tables, _scalars(ops), _verdict(ops, speed), diagnostics_of(session, found))


def _short_sources(source: Words) -> Words:
    """The last two parts of each path: what tells one line from another in a narrow list."""
    short = words_of(["/".join(text.rsplit("/", 2)[-2:]) for text in source.strings])
    return Words(short.codes[source.codes], short.strings)


def ops_table(ops: HloOps, speed: Rates, rows: Rows, texts: list[str]) -> Table:
    """A row per operation, the longest self time first."""
    one = ops.taken(rows)
    chosen = _rows_of(speed, rows)
    share_title, share_of = share_basis(ops.kind)
    share = np.where(one.is_sparse, np.nan, one.self_ps / (ops.total_ps or 1))
    titles = [ops.programs[p] for p in one.program.tolist()]
    ps: Unit = "ps"
    columns = (
        _number("rank", "Rank", np.arange(1, len(rows) + 1), "count", "By self time"),
        text_column("program", "Program", titles, "Name and id of the compiled program"),
        _text("category", "Category", one.category, "As the compiler sorts operations"),
        _text("op", "Operation", one.name, "The compiler's name"),
        text_column("expression", "HLO", [text[:MAX_EXPRESSION] for text in texts], "The operation as the compiler writes it"),
        _text("provenance", "Framework op", one.provenance, "The framework's operation that it came from"),
        _number("n_occurrences", "Occurrences", one.n_occurrences, "count", "On all devices and hosts"),
        _number("total_time_ps", "Total time", one.time_ps, ps, "Of all occurrences, with nested operations"),
        _number("avg_time_ps", "Average time", ratio(one.time_ps.astype(np.float64), one.n_occurrences), ps, "Of an occurrence"),
        _number("total_self_time_ps", "Self time", one.self_ps, ps, "Of all occurrences, without nested operations"),
        _number("avg_self_time_ps", "Average self time", ratio(one.self_ps.astype(np.float64), one.n_occurrences), ps),
        _number("self_fraction", share_title, share, "fraction", share_of),
        _number("cumulative_fraction", "Cumulative", np.cumsum(np.nan_to_num(share)), "fraction", "Share of this and all rows above"),
        *_thread_columns(one),
        _number("dma_stall_fraction", "DMA stalls", _stalls(one), "fraction", "Of its time, waiting for transfers"),
        *_rate_columns(one, chosen),
        text_column("bound_by", "Bound by", [chosen.bound_text(i) for i in range(len(rows))], "The resource it uses closest to its peak"),
        Column("is_rematerialized", "Rematerialized", _is_rematerialized(one), description="Computed again to save memory"),
        Column("is_outside_compiled", "Outside compilation", _is_outside(one), description="Runs on the host, called from the device"),
        _text("source", "Source", one.source, "The line of the program that asked for it"),
        _text("core", "Core", one.core, "TPU: TensorCore or SparseCore"),
        _number("energy_j", "Energy (J)", np.where(one.energy_j > 0, one.energy_j, np.nan), "", "Joules, where the tracer measures them"),
    )
    note = "" if len(rows) == len(ops) else f"the first {len(rows):,} of {len(ops):,}"
    return Table("Operations", columns, note)


def _thread_columns(ops: HloOps) -> tuple[Column, ...]:
    """XLA:CPU splits an operation over its thread pool: what all threads together spent on it."""
    if ops.kind != "CPU":
        return ()
    thread = np.where(ops.thread_ps >= 0, ops.thread_ps, np.nan)
    note = "Of all threads together; unknown where not all of an operation's tasks were traced"
    return (
        _number("cpu_time_ps", "CPU time", thread, "ps", note),
        _number("n_threads", "Threads", ratio(thread, ops.self_ps), "", "On average: CPU time by self time"),
    )


def _rate_columns(ops: HloOps, speed: Rates) -> tuple[Column, ...]:
    """Rates while an operation runs."""
    rate: Unit = "bytes_per_s"
    normalized = ratio(np.where(ops.work.is_known, ops.work.model_flops, np.nan), ops.normalized_ps / 1e12)
    n_memories = len(SPACES) if ops.kind == "TPU" else 1
    memories = list(zip(SPACES, TITLES, speed.space_bytes_per_s, strict=True))[:n_memories]
    return (
        _number("flop_rate_flops_per_s", "FLOP rate", speed.model_flops_per_s, "flops_per_s", "Of the model, per second of total time"),
        _number("normalized_flops_per_s", "FLOP rate at rated clock", normalized, "flops_per_s", "Where the trace tells the clock"),
        _number("memory_bandwidth_bytes_per_s", "Memory bandwidth", speed.bytes_per_s, rate, "All memories together"),
        *(_number(f"{name}_bytes_per_s", title, values, rate) for name, title, values in memories),
        _number("operational_intensity_flops_per_byte", "Operational intensity", speed.intensity, "flops_per_byte", "FLOPs per byte"),
    )


def _number(name: str, title: str, values: npt.NDArray[Any], unit: Unit, description: str = "") -> Column:
    return Column(name, title, values, unit, description=description)


def _text(name: str, title: str, words: Words, description: str = "") -> Column:
    """A column of words; empty ones are unknown. Strings of rows that are not shown stay here."""
    words = words.used()
    empty = words.is_in(("",))
    return Column(name, title, np.where(empty, -1, words.codes).astype(np.int32), strings=words.strings, description=description)


def _rows_of(speed: Rates, rows: Rows) -> Rates:
    columns = {key: (value[:, rows] if value.ndim == 2 else value[rows]) for key, value in vars(speed).items()}
    return Rates(**columns)


def _stalls(ops: HloOps) -> Floats:
    return ratio(ops.stall_ps.astype(np.float64), ops.time_ps) if ops.stall_ps.any() else np.full(len(ops), np.nan)


def _is_rematerialized(ops: HloOps) -> npt.NDArray[np.bool_]:
    """By the compiler's habit to name them so."""
    return ops.name.is_in([name for name in ops.name.strings if _REMAT in name])


def _is_outside(ops: HloOps) -> npt.NDArray[np.bool_]:
    return ops.provenance.is_in([name for name in ops.provenance.strings if _OUTSIDE in name])


def _where(ops: HloOps) -> str:
    if ops.kind == "CPU":
        return "from launch to end, on the host" if ops.n_devices == 1 else f"from launch to end, on {ops.n_devices} CPU devices together"
    return "on one device" if ops.n_devices == 1 else f"on {ops.n_devices} devices together"


def _scalars(ops: HloOps) -> dict[str, Scalar]:
    idle = Scalar(ops.idle_ps / ops.total_ps if ops.total_ps else None, "fraction", "Idle", "of the profiled time, no operation runs")
    if ops.kind == "CPU":
        idle = Scalar(None, "fraction", "Idle", "operations can run side by side: not known")
    again = int(ops.self_ps[_is_rematerialized(ops)].sum()) / (ops.busy_ps or 1)
    return {
        "busy_ps": Scalar(ops.busy_ps, "ps", "Time of operations", _where(ops)),
        "idle_fraction": idle,
        "n_ops": Scalar(len(ops), "count", "Different operations", f"of {len(ops.programs):,} program{'s' * (len(ops.programs) != 1)}"),
        "n_occurrences": Scalar(int(ops.n_occurrences.sum()), "count", "Occurrences"),
        "rematerialized_fraction": Scalar(again, "fraction", "Rematerialized", "of the operations' time"),
    }


def _verdict(ops: HloOps, speed: Rates) -> Verdict | None:
    """Which category and which operation take most, and what binds the latter."""
    if not ops.busy_ps:
        return None
    main = np.where(ops.is_sparse, 0, ops.self_ps)
    top = int(main.argmax())
    share = int(main[top]) / ops.busy_ps
    time = f"{format_time(float(main[top]))}, {format_fraction(share)} of what all operations take"
    text = f"`{ops.name[top]}` ({ops.category[top]}) takes the most time: {time}."
    if share < _STANDS_OUT:
        text = f"No single operation stands out: `{ops.name[top]}` comes first with {time}."
    details = []
    by_category = np.bincount(ops.category.codes, main, len(ops.category.strings))
    first = int(by_category.argmax())
    details.append(
        f"By category, `{ops.category.strings[first]}` comes first with {format_fraction(float(by_category[first]) / ops.busy_ps)}."
    )
    if speed.bound_by[top] >= 0:
        efficiency, bound = float(speed.efficiency[top]), speed.bound_text(top)
        text_of_bound = f"is bound by {bound}" if efficiency >= _NEAR_ITS_PEAK else f"is near no limit, nearest to {bound}'s"
        details.append(f"`{ops.name[top]}` {text_of_bound}: it uses {format_fraction(efficiency)} of its peak.")
    again = int(ops.self_ps[_is_rematerialized(ops)].sum()) / ops.busy_ps
    if again >= _STANDS_OUT:
        details.append(f"{format_fraction(again)} of the time computes values again to save memory (rematerialization).")
    steps = (NextStep("See where the time goes", "op_profile"), NextStep("Compare with the roofline", "roofline_model"))
    return Verdict("unknown", text, "compute", tuple(details), steps)


TOOL = Tool(
    name="hlo_stats",
    title="HLO stats",
    group="Compiler",
    summary="Operations of compiled programs by time, FLOPs, bytes and what binds them",
    view=view,
    available=available,
)
