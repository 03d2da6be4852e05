"""megascale_stats: collectives between slices over the data center network: how long they stall the TPUs, and
the bandwidth that they need.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.analysis.dcn.messages import Messages, messages
from tb_tpuprof.analysis.dcn.ops import transfers_between_slices
from tb_tpuprof.analysis.dcn.summary import Summary, summary
from tb_tpuprof.analysis.dcn.transfers import DcnHost, dcn_host
from tb_tpuprof.analysis.events.planes import planes
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Availability, File, Params
from tb_tpuprof.tools.megascale_stats.perfetto import transfers_file
from tb_tpuprof.tools.megascale_stats.sentences import verdict
from tb_tpuprof.tools.megascale_stats.tables import (
    SCALARS,
    TABLES,
    TILES,
    hosts_table,
    queries_table,
    rendezvous_table,
    slices_table,
)
from tb_tpuprof.tools.payload import Diagnostic, Payload, Scalar
from tb_tpuprof.tools.spec import Number, fill_scalars
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.units import counted

_HOSTS_TO_CHECK = 4
_REASON = "no operation of these TPUs sends to or receives from another slice: the job ran on one slice."
_NO_TPU = "only TPUs transfer between slices, and this run has none."
_REMEDY = "Capture a multislice job: its programs send and receive over the data center network (DCN)."
_UNNAMED = "the trace has operations that transfer between slices, but not the programs that name them."
_PROGRAMS = "Capture with HLO protos (the default)."


def view(session: Session, hosts: tuple[str, ...], _params: Params) -> Payload:
    """Transfers between slices of the chosen hosts. Raises ToolUnavailable if there are none."""
    parts = session.map(dcn_host, hosts, messages)
    received = session.map(messages, hosts)
    if not any(part.rendezvous for part in parts):
        if any(part.n_unknown for part in parts):
            raise ToolUnavailable(TOOL.name, _UNNAMED, _PROGRAMS)
        raise ToolUnavailable(TOOL.name, *_why_none(session, hosts)[:2])
    total = summary(parts)
    tables = {
        "rendezvous": rendezvous_table(total),
        "hosts": hosts_table(total),
        **slices_table(received),
        "queries": queries_table(),
    }
    return Payload(
        TOOL.name,
        session.run,
        hosts,
        tables,
        _scalars(total),
        verdict(total, _longest(parts, total)),
        _diagnostics(parts, received),
    )


def _scalars(total: Summary) -> dict[str, Scalar]:
    n_cores = int(total.host_cores.sum())
    required = total.required_bytes_per_s * total.most_on_host
    known = np.isfinite(required)
    worst = int(np.where(known, required, -1.0).argmax()) if known.any() else -1
    is_sized = ~np.isnan(total.network_bytes)
    n_hosts = len(total.hosts)
    of_hosts = f"mean over {counted(n_cores, 'core')} of {counted(n_hosts, 'host')}"
    return fill_scalars(
        SCALARS,
        {
            "stall_fraction": Number(total.stall_fraction, of_hosts),
            "stall_ps": Number(float(total.host_stall_ps.sum()) / n_cores, "over the whole capture"),
            "n_rendezvous": len(total.rendezvous),
            "n_transfers": int(total.count.sum()),
            "network_bytes": Number(
                float(total.host_bytes.sum()) / n_cores if is_sized.any() else None,
                _unsized(int((~is_sized).sum())),
            ),
            "required_bytes_per_s": Number(
                float(required[worst]), f"per host, {total.rendezvous[worst].name}"
            )
            if worst >= 0
            else None,
        },
    )


def _unsized(n: int) -> str:
    return f"{n:,} rendezvous {'is' if n == 1 else 'are'} of unknown size" if n else ""


def _longest(parts: list[DcnHost], total: Summary) -> dict[str, str]:
    """The timeline around the longest stall of the first rendezvous; empty if none completed."""
    if not total.rendezvous:
        return {}
    best, where = -1, {}
    for part in parts:
        names = [one.name for one in part.rendezvous]
        if total.rendezvous[0].name not in names:
            continue
        occurrences = part.occurrences
        stall = np.where(
            occurrences.rendezvous == names.index(total.rendezvous[0].name),
            occurrences.stall_ps.sum(axis=1),
            -1,
        )
        if len(stall) and int(stall.max()) > best:
            row = int(stall.argmax())
            best = int(stall[row])
            start, end = int(occurrences.start_ps[row]), int(occurrences.end_ps[row])
            margin = (end - start) // 4
            where = {
                "hosts": part.host,
                "start_ps": str(max(0, start - margin)),
                "end_ps": str(end + margin),
            }
    return where


def _diagnostics(parts: list[DcnHost], received: list[Messages]) -> tuple[Diagnostic, ...]:
    """What the numbers leave out."""
    n_unknown = sum(part.n_unknown for part in parts)
    n_unfinished = sum(part.n_unfinished for part in parts)
    result = []
    if n_unknown:
        operations = counted(n_unknown, "operation")
        text = f"Transfers by {operations} are left out: the trace lacks the programs that name them."
        result.append(Diagnostic("warning", text, _PROGRAMS))
    if n_unfinished:
        were = "transfer was" if n_unfinished == 1 else "transfers were"
        text = f"{n_unfinished:,} {were} cut off by the capture's end and left out."
        result.append(Diagnostic("info", text))
    if any(part.n_events for part in received) and not any(len(part) for part in received):
        result.append(
            Diagnostic(
                "info",
                "The hosts recorded MegaScale events, but no message with its slices and size.",
            )
        )
    return tuple(result)


def available(session: Session) -> Availability:
    """Whether one of the first hosts transfers between slices."""
    hosts = session.hosts[:_HOSTS_TO_CHECK]
    if any(session.get(transfers_between_slices, host) for host in hosts):
        return Availability()
    return Availability(*_why_none(session, hosts))


def _why_none(session: Session, hosts: Sequence[str]) -> tuple[str, str, str]:
    """Reason, remedy and short reason for a run without transfers between slices."""
    has_tpu = any(session.get(planes, host).tensor_cores for host in hosts[:_HOSTS_TO_CHECK])
    return (_REASON, _REMEDY, "one slice") if has_tpu else (_NO_TPU, _REMEDY, "no TPU")


TOOL = Tool(
    name="megascale_stats",
    title="Megascale stats",
    group="Fleet",
    summary="Collectives between slices: how long they stall the TPUs, and the bandwidth that they need",
    view=view,
    available=available,
    tables=TABLES,
    scalars=SCALARS,
    tiles=TILES,
    files=(
        File(
            "perfetto",
            "trace.json.gz",
            "application/gzip",
            transfers_file,
            (),
            "All transfers with their slack and stall as Chrome trace JSON, for Perfetto and its queries",
        ),
    ),
)
