"""op_profile: the time of compiled programs as a tree, and the details of one operation."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.device.attainable import MISCOUNTED, is_above, known_share, share_of_peak
from tb_tpuprof.analysis.ops.category_sentence import category_sentence, op_categories
from tb_tpuprof.analysis.ops.hlo_record import HloOps
from tb_tpuprof.analysis.ops.roofline import NEAR_A_LIMIT, Roofs, ratio
from tb_tpuprof.analysis.ops.tree import GROUPINGS, KINDS, OpTree, op_tree
from tb_tpuprof.analysis.ops.wasted import wasted_ps
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params, Question
from tb_tpuprof.tools.hlo_session import (
    CompiledOps,
    device_ops_available,
    diagnostics_of,
    every_op_tool,
    find_device_ops,
)
from tb_tpuprof.tools.op_profile.details import details_payload
from tb_tpuprof.tools.op_profile.tables import NODES, OP_SCALARS, OP_TABLES, SCALARS, TILES
from tb_tpuprof.tools.payload import NextStep, Payload, Scalar, Table, Verdict
from tb_tpuprof.tools.spec import Filled, Number, fill_scalars
from tb_tpuprof.tools.sums import busy_note
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.verdicts import limits_of, with_limits
from tb_tpuprof.tools.working import quotient, rest
from tb_tpuprof.units import format_fraction

_IDLES = 0.2
_NO_WORK = "the trace has no FLOP or byte counts"
Level = Literal["good", "warn", "unknown"]
Floats = npt.NDArray[np.float64]


def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """The tree of one, several or all hosts together."""
    compiled = find_device_ops(session, hosts, TOOL.name)
    wasted = wasted_ps(compiled.ops, compiled.roofs)
    tree = op_tree(compiled.ops, str(params["group_by"]), bool(params["idle"]), int(params["limit"]), wasted)
    tables = {"nodes": nodes_table(tree, compiled)}
    verdict = with_limits(TOOL.name, _verdict(tree, compiled), limits_of(session, hosts))
    return Payload(
        TOOL.name,
        session.run,
        hosts,
        tables,
        _scalars(tree, compiled),
        verdict,
        diagnostics_of(session, compiled),
    )


def op_view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
    """One operation's details. Raises BadParameter if the chosen hosts ran none of that name."""
    compiled = find_device_ops(session, hosts, TOOL.name)
    return details_payload(session, compiled, TOOL.name, str(params.get("program", "")), str(params["op"]))


def nodes_table(tree: OpTree, compiled: CompiledOps) -> Table:
    """A row per node, parents before children, siblings by time."""
    ops, peaks = compiled.ops, compiled.roofs
    total_ps = int(tree.self_ps[0]) or 1
    work = tree.work
    seconds, moving = (
        np.where(is_known, tree.work_ps, 0) / 1e12 for is_known in (work.knows_flops, work.knows_bytes)
    )
    flop_rate, hbm_rate = ratio(work.flops, seconds), ratio(work.space_bytes[0], moving)
    roof_rate = ratio(work.roof_flops, seconds)
    is_op = tree.op >= 0
    op_rows = np.maximum(tree.op, 0)
    programs = [
        ops.programs[int(ops.program[i])] if has_op else ""
        for i, has_op in zip(op_rows.tolist(), is_op.tolist(), strict=True)
    ]
    provenance = [
        ops.provenance[i] if has_op else ""
        for i, has_op in zip(op_rows.tolist(), is_op.tolist(), strict=True)
    ]
    chip_read, chip_write = _on_chip(work.space_bytes, moving, peaks)
    columns: Filled = {
        "name": [tree.name[i] for i in range(len(tree))],
        "kind": [KINDS[kind] for kind in tree.kind.tolist()],
        "parent": tree.parent,
        "n_children": tree.n_children,
        "self_time_ps": tree.self_ps,
        "time_fraction": tree.self_ps / total_ps,
        "wasted_ps": tree.wasted_ps,
        "n_occurrences": tree.n_occurrences,
        "avg_time_ps": ratio(tree.self_ps.astype(np.float64), tree.n_occurrences),
        "flops": np.where(work.knows_flops, work.flops, np.nan),
        "model_flops": np.where(work.knows_flops, work.model_flops, np.nan),
        "flop_rate_flops_per_s": np.where(is_above(roof_rate, peaks.flops_per_s), np.nan, flop_rate),
        "flops_fraction": share_of_peak(roof_rate, peaks.flops_per_s),
        "hbm_bytes": np.where(work.knows_bytes, work.space_bytes[0], np.nan),
        "hbm_bytes_per_s": np.where(is_above(hbm_rate, peaks.bytes_per_s[0]), np.nan, hbm_rate),
        "hbm_fraction": share_of_peak(hbm_rate, peaks.bytes_per_s[0]),
        "on_chip_read_fraction": chip_read,
        "on_chip_write_fraction": chip_write,
        "program": programs,
        "provenance": provenance,
        "is_fusion": _is_fusion(ops)[op_rows] & is_op,
    }
    n_left_out = int(np.maximum(tree.n_children - np.bincount(tree.parent[1:], minlength=len(tree)), 0).sum())
    return NODES.fill(columns, f"the {n_left_out:,} shortest are left out" if n_left_out else "")


def _is_fusion(ops: HloOps) -> npt.NDArray[np.bool_]:
    """By the compiler's category or name."""
    return ops.category.is_in([text for text in ops.category.strings if "fusion" in text]) | ops.name.is_in(
        [text for text in ops.name.strings if "fusion" in text]
    )


def _on_chip(space: Floats, seconds: Floats, peaks: Roofs) -> tuple[Floats, Floats]:
    """Reading from and writing to on-chip memories: CMEM's or VMEM's share of its peak, whichever
    is larger.
    """
    results = []
    for cmem, vmem in ((1, 3), (2, 4)):
        shares = np.array(
            [share_of_peak(ratio(space[i], seconds), peaks.bytes_per_s[i]) for i in (cmem, vmem)]
        )
        unknown = np.isnan(shares).all(axis=0)
        results.append(np.where(unknown, np.nan, np.nan_to_num(shares).max(axis=0)))
    return results[0], results[1]


def _scalars(tree: OpTree, compiled: CompiledOps) -> dict[str, Scalar]:
    ops, peaks = compiled.ops, compiled.roofs
    seconds = ops.busy_ps / 1e12
    flops, hbm = _whole_work(tree)
    roof_flops = None if flops is None else float(tree.work.roof_flops[0])
    idle = ops.idle_ps / ops.total_ps if ops.total_ps and ops.kind != "CPU" else None

    def used(amount: float | None, peak: float) -> float | None:
        return known_share(amount / seconds, peak) if seconds and amount is not None else None

    def note(amount: float | None, peak: float) -> str:
        if amount is not None and peak and seconds and used(amount, peak) is None:
            return MISCOUNTED
        return _NO_WORK if amount is None else "while operations run" if peak else "peak unknown"

    def working(amount: float | None, peak: float, unit: str) -> str:
        return "" if used(amount, peak) is None else quotient(((amount or 0.0) / seconds, peak), unit)

    rate = flops / seconds if seconds and flops is not None else None
    is_miscounted = note(roof_flops, peaks.flops_per_s) == MISCOUNTED
    values = {
        "busy_ps": Number(ops.busy_ps, busy_note(ops)),
        "idle_fraction": Number(
            idle,
            f"no {_kind_of(ops)} runs, between the first and the last one"
            if idle is not None
            else "threads run in parallel",
            "",
            "" if idle is None else rest(ops.total_ps - ops.idle_ps, ops.total_ps),
        ),
        "flops_fraction": Number(
            used(roof_flops, peaks.flops_per_s),
            note(roof_flops, peaks.flops_per_s),
            "",
            working(flops, peaks.flops_per_s, "flops_per_s") if roof_flops == flops else "",
        ),
        "hbm_fraction": Number(
            used(hbm, peaks.bytes_per_s[0]),
            note(hbm, peaks.bytes_per_s[0]),
            "",
            working(hbm, peaks.bytes_per_s[0], "bytes_per_s"),
        ),
        "flop_rate_flops_per_s": Number(
            None if is_miscounted else rate,
            MISCOUNTED if is_miscounted else _NO_WORK if rate is None else "while operations run",
        ),
    }
    return fill_scalars(SCALARS, values)


def _kind_of(ops: HloOps) -> str:
    return "compiled operation" if ops.has_hlo else "kernel"


def _whole_work(tree: OpTree) -> tuple[float | None, float | None]:
    """FLOPs and HBM bytes of all operations, None if unknown for all of them."""
    work = tree.work
    return float(work.flops[0]) if work.knows_flops[0] else None, float(
        work.space_bytes[0][0]
    ) if work.knows_bytes[0] else None


def _verdict(tree: OpTree, compiled: CompiledOps) -> Verdict | None:
    """The category that takes the most time, and how well the device is used meanwhile."""
    ops = compiled.ops
    if not ops.busy_ps:
        return None
    details = []
    level: Level = "unknown"
    seconds = ops.busy_ps / 1e12
    flops, hbm = _whole_work(tree)
    roof_flops = None if flops is None else float(tree.work.roof_flops[0])
    amounts = (("FLOPS", roof_flops, compiled.roofs.flops_per_s), ("HBM", hbm, compiled.roofs.bytes_per_s[0]))
    shares = [
        (title, known_share(amount / seconds, peak)) for title, amount, peak in amounts if amount is not None
    ]
    used = [(title, share) for title, share in shares if share is not None]
    if used:
        best = max(value for _, value in used)
        level = "warn" if best < NEAR_A_LIMIT else "good"
        parts = " and ".join(f"{format_fraction(value)} of peak {title}" for title, value in used)
        details.append(
            f"While operations run they use {parts}"
            + (": neither is near its limit." if best < NEAR_A_LIMIT else ".")
        )
    if ops.kind != "CPU" and ops.idle_ps > _IDLES * ops.total_ps:
        level = "warn"
        details.append(
            f"No {_kind_of(ops)} runs for {format_fraction(ops.idle_ps / ops.total_ps)} of the time "
            "between the first and the last one."
        )
    steps = (
        NextStep("See every operation", every_op_tool(compiled.ops)),
        NextStep("Compare with the roofline", "roofline_model"),
    )
    return Verdict(
        level, category_sentence(op_categories(ops, compiled.offload_ps)), "compute", tuple(details), steps
    )


TOOL = Tool(
    name="op_profile",
    title="Op profile",
    group="Compiler",
    summary="Where compiled programs spend their time, and how well they use the device",
    view=view,
    available=device_ops_available,
    params=(
        Param("group_by", "Group by", "choice", "program", "The tree's first levels", GROUPINGS),
        Param("idle", "Include idle", "bool", True, "Include time in which no operation runs"),
        Param(
            "limit",
            "Children",
            "int",
            100,
            "Maximum number of operations below a node, longest first",
            minimum=1,
            maximum=10_000,
        ),
    ),
    tables=(NODES,),
    scalars=SCALARS,
    tiles=TILES,
    questions=(
        Question(
            "op",
            "The details of one operation",
            op_view,
            (
                Param("op", "Operation", "text", None, "Name of the operation", is_required=True),
                Param("program", "Program", "text", None, "Of the operation: name(id), name or id"),
            ),
            OP_TABLES,
            OP_SCALARS,
        ),
    ),
)
