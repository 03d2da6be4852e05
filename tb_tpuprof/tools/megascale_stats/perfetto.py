"""Transfers between slices → Chrome trace JSON, gzipped, for Perfetto.

    process "host TPU:0"    thread "all-reduce.1"   ├──── transfer ────┤   X, with slack, stall and bytes
                            counter                 1        2         1   outstanding transfers

`queries.py` holds questions to ask of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from tb_tpuprof.analysis.dcn.ops import Half
from tb_tpuprof.analysis.dcn.transfers import DcnHost, dcn_host
from tb_tpuprof.errors import TooLarge
from tb_tpuprof.native import EventWriter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Params
from tb_tpuprof.tools.clocks import clocks_of
from tb_tpuprof.trace import schema

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MAX_TRANSFERS = 500_000
_CHUNK_ROWS = 1 << 15
_FAST, _GZIP = 1, 31  # ISA-L's level, and `wbits` for a gzip header and the largest window
_COUNTER = "outstanding transfers"
_PS_PER_US = 1e6


class _Texts:
    """Texts as JSON, by code."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """The code of a text."""
        return self.codes.setdefault(json.dumps(text, ensure_ascii=False), len(self.codes))

    def rendered(self) -> tuple[npt.NDArray[np.uint8], Int64s]:
        """All texts end to end, and the offset of each."""
        parts = [text.encode("utf-8", "replace") for text in self.codes]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return np.frombuffer(b"".join(parts) or b"\0", np.uint8), offsets


def transfers_file(session: Session, hosts: tuple[str, ...], _params: Params) -> tuple[str, Iterator[bytes]]:
    """The run's name, and the file in parts. Raises TooLarge."""
    parts = session.map(dcn_host, hosts)
    n_transfers = sum(len(part.occurrences) for part in parts)
    if n_transfers > MAX_TRANSFERS:
        raise TooLarge(
            f"These hosts made {n_transfers:,} transfers between slices; a file can have at most "
            f"{MAX_TRANSFERS:,}.",
            "Choose fewer hosts.",
        )
    added_ps = _added_ps(session, hosts)
    return f"{session.run} dcn", _packed(_lines(session.run, parts, added_ps))


def _added_ps(session: Session, hosts: tuple[str, ...]) -> list[int]:
    """What is added to the times of each host, so that the earliest trace starts at 0."""
    starts = [
        session.outline(host).info.start_ns + correction
        for host, correction in zip(
            hosts, clocks_of(session, hosts).correction_ns or (0,) * len(hosts), strict=True
        )
    ]
    return [1000 * (start - min(starts)) for start in starts]


def _lines(run: str, parts: Sequence[DcnHost], added_ps: Sequence[int]) -> Iterator[bytes]:
    head = {"displayTimeUnit": "ns", "otherData": {"run": run, "hosts": [part.host for part in parts]}}
    names, first_pid = [], 1
    pids = []
    for part in parts:
        pids.append(first_pid)
        for core, core_name in enumerate(part.cores):
            pid = first_pid + core
            name = f"{part.host} {core_name}"
            names.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})
            names += [
                {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": one.name}}
                for tid, one in enumerate(part.rendezvous, 1)
            ]
        first_pid += len(part.cores)
    dumped = b",\n".join(json.dumps(name, ensure_ascii=False).encode("utf-8", "replace") for name in names)
    yield (
        json.dumps(head, ensure_ascii=False).encode("utf-8", "replace")[:-1] + b',"traceEvents":[\n' + dumped
    )
    for part, pid, added in zip(parts, pids, added_ps, strict=True):
        yield from _written(part, pid, added)
    yield b"\n]}\n"


def _written(part: DcnHost, first_pid: int, added_ps: int) -> Iterator[bytes]:
    """The transfers of a host, then its counters."""
    found, texts = part.occurrences, _Texts()
    n = len(found)
    if not n:
        return
    names = np.array([texts.code(one.name) for one in part.rendezvous], np.int32)
    category = texts.code("dcn")
    at, core, change = _counted(part)
    pid = np.concatenate((first_pid + found.core, first_pid + core)).astype(np.int32)
    n_rows = n + len(at)
    is_transfer = np.arange(n_rows) < n

    def column(transfers: Int64s | int, counters: Int64s | int, dtype: type) -> npt.NDArray[np.generic]:
        return np.concatenate((np.broadcast_to(transfers, n), np.broadcast_to(counters, len(at)))).astype(
            dtype
        )

    rows = (
        column(ord("X"), ord("C"), np.uint8),
        pid,
        column(found.rendezvous + 1, 0, np.int64),
        column(found.start_ps + added_ps, at + added_ps, np.int64),
        column(found.end_ps - found.start_ps, -1, np.int64),
        np.full(n_rows, -1, np.int64),
        column(names[found.rendezvous].astype(np.int64), texts.code(_COUNTER), np.int32),
        np.where(is_transfer, category, -1).astype(np.int32),
        np.full(n_rows, -1, np.int32),
    )
    stats = _stats(part, texts, n_rows, change)
    writer = EventWriter(rows, stats, texts.rendered(), np.zeros(1, np.uint8), np.zeros((0, 6), np.int64))
    for first in range(0, n_rows, _CHUNK_ROWS):
        yield writer.lines(first, first + _CHUNK_ROWS)


def _counted(part: DcnHost) -> tuple[Int64s, Int64s, Int64s]:
    """When the number of outstanding transfers of a core changes, the core, and the number from then on."""
    found = part.occurrences
    at = np.concatenate((found.start_ps, found.end_ps))
    core = np.concatenate((found.core, found.core))
    change = np.concatenate((np.ones(len(found), np.int64), -np.ones(len(found), np.int64)))
    order = np.lexsort((change, at, core))
    core = core[order]
    # Each core's changes add up to 0, so the running sum starts anew with each.
    return at[order], core, np.cumsum(change[order])


def _stats(
    part: DcnHost, texts: _Texts, n_rows: int, outstanding: Int64s
) -> tuple[npt.NDArray[np.generic], ...]:
    """(first stat of each row, key, kind, value) of the rows' arguments."""
    found = part.occurrences
    size_of = [np.nan if one.network_bytes is None else one.network_bytes for one in part.rendezvous]
    size, slack_ps = np.array(size_of)[found.rendezvous], found.slack_ps.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        required = size * 8e3 / slack_ps  # bytes/ps in Gbit/s
    numbers: dict[str, Floats] = {
        "network_bytes": size,
        "slack_us": slack_ps / _PS_PER_US,
        "stall_us": found.stall_ps.sum(axis=1) / _PS_PER_US,
        **{f"in_{half.name.lower()}_us": found.stall_ps[:, half] / _PS_PER_US for half in Half},
        "required_gbit_per_s": required,
    }
    row, key, value = [], [], []
    for name, values in numbers.items():
        is_known = np.flatnonzero(np.isfinite(values))
        row.append(is_known)
        key.append(np.full(len(is_known), texts.code(name)))
        value.append(values[is_known].astype(np.float64).view(np.int64))
    kind = [np.full(len(rows), schema.DOUBLE) for rows in row]
    types = np.array([texts.code(one.transfer_type) if one.transfer_type else -1 for one in part.rendezvous])
    typed = np.flatnonzero(types[found.rendezvous] >= 0)
    row.append(typed)
    key.append(np.full(len(typed), texts.code("transfer_type")))
    kind.append(np.full(len(typed), schema.TEXT))
    value.append(types[found.rendezvous][typed].astype(np.int64))
    counters = np.arange(len(found), n_rows)
    row.append(counters)
    key.append(np.full(len(counters), texts.code("transfers")))
    kind.append(np.full(len(counters), schema.DOUBLE))
    value.append(outstanding.astype(np.float64).view(np.int64))
    rows = np.concatenate(row)
    order = np.argsort(rows, kind="stable")
    return (
        np.searchsorted(rows[order], np.arange(n_rows + 1)).astype(np.int64),
        np.concatenate(key)[order].astype(np.int32),
        np.concatenate(kind)[order].astype(np.uint8),
        np.concatenate(value)[order].astype(np.int64),
    )


def _packed(parts: Iterable[bytes]) -> Iterator[bytes]:
    packer = isal_zlib.compressobj(_FAST, isal_zlib.DEFLATED, _GZIP)
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()
