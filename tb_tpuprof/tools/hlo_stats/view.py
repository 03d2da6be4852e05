"""hlo_stats: every operation of compiled programs with its times, work, rates, limiting resource and
source.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import is_above
from tb_tpuprof.analysis.hlo.memory_accesses import SPACES
from tb_tpuprof.analysis.ops.category_sentence import category_sentence, op_categories
from tb_tpuprof.analysis.ops.hlo_record import HloOps, Words, words_of
from tb_tpuprof.analysis.ops.roofline import LIMITS, NEAR_A_LIMIT, Rates, in_words, rates, ratio
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.hlo_session import (
    CompiledOps,
    available,
    diagnostics_of,
    expression_texts,
    find_ops,
    title_of,
)
from tb_tpuprof.tools.hlo_stats.tables import OPS, SCALARS, SHARES, TABLES, TILES
from tb_tpuprof.tools.payload import NextStep, Payload, Scalar, Subject, Table, Verdict
from tb_tpuprof.tools.shares import known_texts, shares_table
from tb_tpuprof.tools.spec import Number, Values, fill_scalars
from tb_tpuprof.tools.sums import busy_note, time_of_ops
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, with_limits
from tb_tpuprof.tools.working import rest
from tb_tpuprof.units import counted, format_fraction

N_ROWS = 10_000
MAX_EXPRESSION = 2_000
_OUTSIDE = "outside_compilation"
_REMAT = ".remat"
_STANDS_OUT = 0.1
_MAX_NAME = 300  # characters of a name in a sentence
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """Operations of one, several or all hosts together."""
    compiled = find_ops(session, hosts, TOOL.name)
    ops = compiled.ops
    shown = table_order(ops)[:N_ROWS]
    speed = rates(ops.work, ops.work_ps, compiled.roofs)
    limits = speed.limits(ops.is_waiting)
    texts = expression_texts(session, compiled, shown)
    on_tensor_cores = ops.kept(~ops.is_sparse)
    sources = _short_sources(on_tensor_cores.source)
    programs = words_of([on_tensor_cores.programs[p] for p in on_tensor_cores.program.tolist()])
    bounds = Words(limits[~ops.is_sparse].astype(np.int64), LIMITS)
    tables = {
        "ops": ops_table(compiled, (speed, limits), shown, texts),
        "by_category": shares_table(SHARES["by_category"], on_tensor_cores.category, on_tensor_cores.self_ps),
        "by_op": shares_table(SHARES["by_op"], _titles(on_tensor_cores), on_tensor_cores.self_ps),
        "by_bound": shares_table(SHARES["by_bound"], bounds, on_tensor_cores.self_ps),
        "by_source": shares_table(SHARES["by_source"], sources, on_tensor_cores.self_ps, "(no source line)"),
        "by_program": shares_table(SHARES["by_program"], programs, on_tensor_cores.self_ps),
    }
    for name, mask in (
        ("by_rematerialized", _is_rematerialized(on_tensor_cores)),
        ("by_outside", _is_outside(on_tensor_cores)),
    ):
        if mask.any():
            words = Words(mask.astype(np.int64), ("No", SHARES[name].title))
            tables[name] = shares_table(SHARES[name], words, on_tensor_cores.self_ps)
    verdict = with_limits(TOOL.name, _verdict(compiled, speed, shown), limits_of(session, hosts))
    return Payload(
        TOOL.name, session.run, hosts, tables, _scalars(ops), verdict, diagnostics_of(session, compiled)
    )


def table_order(ops: HloOps) -> Rows:
    """Rows by self time; those of SparseCores last, since they run in parallel with the others and have no
    share.
    """
    order = ops.by_self_time
    return order[np.argsort(ops.is_sparse[order], kind="stable")]


def _titles(ops: HloOps) -> Words:
    """Unique names of operations: with the program's name if several programs have an operation of that
    name.
    """
    pairs = np.unique(np.column_stack((ops.name.codes, ops.program)), axis=0)
    shared = np.flatnonzero(np.bincount(pairs[:, 0], minlength=len(ops.name.strings))[ops.name.codes] > 1)
    texts = {i: f"{ops.name[i]} of {ops.programs[int(ops.program[i])]}" for i in shared.tolist()}
    return words_of([texts.get(i, ops.name[i]) for i in range(len(ops))]) if texts else ops.name


def _short_sources(source: Words) -> Words:
    """The last two parts of each path, which identify a line in a narrow list."""
    short = words_of(["/".join(text.rsplit("/", 2)[-2:]) for text in source.strings])
    return Words(short.codes[source.codes], short.strings)


def ops_table(compiled: CompiledOps, speeds: tuple[Rates, Rows], rows: Rows, texts: list[str]) -> Table:
    """A row per operation, longest self time first. `speeds`: rates, and rows of LIMITS."""
    ops = compiled.ops
    chosen_ops = ops.taken(rows)
    chosen_rates, limits = _rows_of(speeds[0], rows), speeds[1][rows]
    share = np.where(chosen_ops.is_sparse, np.nan, chosen_ops.self_ps / (ops.busy_ps or 1))
    of_span = np.where(chosen_ops.is_sparse, np.nan, chosen_ops.self_ps / (ops.total_ps or 1))
    titles = [ops.programs[p] for p in chosen_ops.program.tolist()]
    columns = {
        "rank": np.arange(1, len(rows) + 1),
        "program": titles,
        "category": known_texts(chosen_ops.category),
        "op": known_texts(chosen_ops.name),
        "expression": [text[:MAX_EXPRESSION] for text in texts],
        "provenance": known_texts(chosen_ops.provenance),
        "n_occurrences": chosen_ops.n_occurrences,
        "total_time_ps": chosen_ops.time_ps,
        "avg_time_ps": ratio(chosen_ops.time_ps.astype(np.float64), chosen_ops.n_occurrences),
        "total_self_time_ps": chosen_ops.self_ps,
        "avg_self_time_ps": ratio(chosen_ops.self_ps.astype(np.float64), chosen_ops.n_occurrences),
        "self_fraction": share,
        "cumulative_fraction": np.cumsum(np.nan_to_num(share)),
        **({} if ops.kind == "CPU" else {"device_time_fraction": of_span}),
        **_thread_columns(chosen_ops),
        "dma_stall_fraction": _stalls(chosen_ops),
        **_rate_columns(chosen_ops, chosen_rates, compiled.roofs.flops_per_s),
        "bound_by": [LIMITS[i] for i in limits.tolist()],
        "nearest_limit": [chosen_rates.nearest_text(i) for i in range(len(rows))],
        "is_rematerialized": _is_rematerialized(chosen_ops),
        "is_outside_compiled": _is_outside(chosen_ops),
        "source": known_texts(chosen_ops.source),
        "core": known_texts(chosen_ops.core),
        "energy_j": np.where(chosen_ops.energy_j > 0, chosen_ops.energy_j, np.nan),
    }
    note = "" if len(rows) == len(ops) else f"the first {len(rows):,} of {len(ops):,}"
    return OPS.fill(columns, note)


def _thread_columns(ops: HloOps) -> dict[str, Values]:
    """Time of all threads together: XLA:CPU splits an operation over its thread pool."""
    if ops.kind != "CPU":
        return {}
    thread = np.where(ops.thread_ps >= 0, ops.thread_ps, np.nan)
    return {"thread_time_ps": thread, "n_threads": ratio(thread, ops.self_ps)}


def _rate_columns(ops: HloOps, speed: Rates, peak: float) -> dict[str, Values]:
    """Rates while an operation runs. `peak`: FLOP/s of one device, 0 if unknown."""
    scale = ratio(
        ops.work_ps.astype(np.float64), ops.time_ps
    )  # the clock of asynchronous operations is unknown
    flops = np.where(ops.work.knows_flops, ops.work.model_flops, np.nan)
    seconds = ops.normalized_ps * scale / 1e12
    normalized, compared = ratio(flops, seconds), ratio(ops.work.roof_flops, seconds)
    n_memories = len(SPACES) if ops.kind == "TPU" else 1
    return {
        "flop_rate_flops_per_s": speed.model_flops_per_s,
        "normalized_flops_per_s": np.where(is_above(compared, peak), np.nan, normalized),
        "memory_bandwidth_bytes_per_s": speed.bytes_per_s,
        **{f"{SPACES[i]}_bytes_per_s": speed.space_bytes_per_s[i] for i in range(n_memories)},
        "operational_intensity_flops_per_byte": speed.space_intensity[0],
        "all_memories_flops_per_byte": speed.intensity,
    }


def _rows_of(speed: Rates, rows: Rows) -> Rates:
    columns = {
        key: (value[:, rows] if value.ndim == 2 else value[rows]) for key, value in vars(speed).items()
    }
    return Rates(**columns)


def _stalls(ops: HloOps) -> Floats:
    return (
        ratio(ops.stall_ps.astype(np.float64), ops.time_ps)
        if ops.stall_ps.any()
        else np.full(len(ops), np.nan)
    )


def _is_rematerialized(ops: HloOps) -> npt.NDArray[np.bool_]:
    """Recognized by the name that the compiler gives them."""
    return ops.name.is_in([name for name in ops.name.strings if _REMAT in name])


def _is_outside(ops: HloOps) -> npt.NDArray[np.bool_]:
    return ops.provenance.is_in([name for name in ops.provenance.strings if _OUTSIDE in name])


def _scalars(ops: HloOps) -> dict[str, Scalar]:
    idle = ops.idle_ps / ops.total_ps if ops.total_ps and ops.kind != "CPU" else None
    note = (
        "no compiled operation runs, between the first and the last one"
        if ops.kind != "CPU"
        else "threads run in parallel"
    )
    again = int(ops.self_ps[_is_rematerialized(ops)].sum()) / (ops.busy_ps or 1)
    programs = f"of {counted(len(ops.programs), 'program')}"
    return fill_scalars(
        SCALARS,
        {
            "busy_ps": Number(ops.busy_ps, busy_note(ops)),
            "idle_fraction": Number(
                idle, note, "", "" if idle is None else rest(ops.total_ps - ops.idle_ps, ops.total_ps)
            ),
            "n_ops": Number(len(ops), programs),
            "n_occurrences": int(ops.n_occurrences.sum()),
            "rematerialized_fraction": Number(again, "of the operations' time"),
        },
    )


def _verdict(compiled: CompiledOps, speed: Rates, order: Rows) -> Verdict | None:
    """The operation in the table's first row and its limit, and the category that takes the most time."""
    ops = compiled.ops
    if not ops.busy_ps:
        return None
    top = int(order[0])
    share = int(ops.self_ps[top]) / ops.busy_ps
    time = f"{time_of_ops(ops, float(ops.self_ps[top]))}, {format_fraction(share)} of the operations' time"
    name = title_of(ops, top)
    text = f"{name} ({ops.category[top]}) takes the most time: {time}."
    if share < _STANDS_OUT:
        text = f"No single operation stands out: {name} comes first with {time}."
    details = [f"{name} {limit}" for limit in _why(ops, speed, top)]
    categories = op_categories(ops, compiled.offload_ps)
    if categories.waits_most:
        text = f"{category_sentence(categories)} {text}"
    else:
        details.append(category_sentence(categories))
    again = int(ops.self_ps[_is_rematerialized(ops)].sum()) / ops.busy_ps
    if again >= _STANDS_OUT:
        details.append(
            f"{format_fraction(again)} of the time is rematerialization (recomputing values to save memory)."
        )
    steps = (
        NextStep("See where the time goes", "op_profile"),
        NextStep("Compare with the roofline", "roofline_model"),
    )
    values = {
        "total_self_time_ps": float(ops.self_ps[top]),
        "self_fraction": int(ops.self_ps[top]) / ops.busy_ps,
    }
    return Verdict(
        "unknown", text, "compute", tuple(details), steps, (Subject("ops", "op", ops.name[top], values),)
    )


def _why(ops: HloOps, speed: Rates, row: int) -> list[str]:
    """What limits an operation, and where it comes from: ends of sentences that begin with its name."""
    ends = []
    if speed.nearest[row] >= 0 and not ops.is_waiting[row]:
        limit, share = in_words(speed.nearest_text(row)), float(speed.efficiency[row])
        used = f"{format_fraction(share)} of peak {limit}"
        ends.append(
            f"is limited by {limit}: it reaches {used}."
            if share >= NEAR_A_LIMIT
            else f"is not limited by compute or memory: it reaches {used} at most."
        )
    place = _short_sources(ops.source)[row]
    if name := ops.provenance[row][:_MAX_NAME].rstrip(":"):
        ends.append(f"comes from `{name}`{f' ({place})' if place else ''}.")
    elif place:
        ends.append(f"comes from {place}.")
    return ends


TOOL = Tool(
    name="hlo_stats",
    title="HLO stats",
    group="Compiler",
    summary="Operations of compiled programs by time, FLOPs, bytes and their limiting resource",
    view=view,
    available=available,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
)
