"""PyTorch's process groups: the ranks that communicate with one another, and the time of their collectives.

    "distributedInfo" "pg_config" [{"pg_name": "3", "pg_desc": "mesh_tp", "pg_size": 2, "ranks": [4, 5]}]
    all-reduce ▒▒▒▒▒  comm_group "3 (mesh_tp)", comm_ranks 4,5

Groups come from the file's list and from the collectives themselves; files of one job list the same groups.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_tpuprof.analysis.events.memo import once
from tb_tpuprof.analysis.pod.comms import comms
from tb_tpuprof.trace.distinct_rows import distinct_rows
from tb_tpuprof.trace.trace import Trace

_LABEL = re.compile(r"(?P<name>[^ ]*)(?: \((?P<description>.*)\))?", re.DOTALL)
_SHOWN_RANKS = 16


@dataclass(frozen=True)
class ProcessGroup:
    """A group: its name and what the program calls it (empty if unknown), the backend, the number of its
    ranks (-1 unknown) and the ranks (empty if unknown). `n_collectives` and `time_ps`: kernels of its
    collectives.
    """

    name: str
    description: str = ""
    backend: str = ""
    size: int = -1
    ranks: tuple[int, ...] = ()
    n_collectives: int = 0
    time_ps: int = 0

    @property
    def ranks_text(self) -> str:
        """`0–7`, `0, 2, 4`; long lists are cut off."""
        return ranks_text(self.ranks)


def ranks_text(ranks: Sequence[int]) -> str:
    """Ranks as text: consecutive ones as a range, of many the first."""
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[0] + len(ranks))):
        return f"{ranks[0]}–{ranks[-1]}"
    more = f", … ({len(ranks):,} ranks)" if len(ranks) > _SHOWN_RANKS else ""
    return ", ".join(map(str, ranks[:_SHOWN_RANKS])) + more


@once
def process_groups(trace: Trace) -> tuple[ProcessGroup, ...]:
    """The groups of one host's file, those whose collectives take longest first."""
    return sum_process_groups([(*_listed(trace), *_of_collectives(trace))])


def sum_process_groups(parts: Iterable[tuple[ProcessGroup, ...]]) -> tuple[ProcessGroup, ...]:
    """Groups of several hosts; times and numbers of collectives are summed over the hosts."""
    groups: dict[tuple[str, tuple[int, ...]], ProcessGroup] = {}
    for group in (group for part in parts for group in part):
        key = group.name, group.ranks
        first = groups.get(key)
        groups[key] = group if first is None else _sum(first, group)
    return tuple(sorted(groups.values(), key=lambda group: (-group.time_ps, group.name, group.ranks)))


def _sum(first: ProcessGroup, second: ProcessGroup) -> ProcessGroup:
    return replace(
        first,
        description=first.description or second.description,
        backend=first.backend or second.backend,
        size=max(first.size, second.size),
        n_collectives=first.n_collectives + second.n_collectives,
        time_ps=first.time_ps + second.time_ps,
    )


def _listed(trace: Trace) -> list[ProcessGroup]:
    """The groups that the file lists (the stat `comm_groups`, see `ingest/chrome/kineto_collectives`); none
    if another writer's stat of that name says something else.
    """
    texts = trace.plane_stats.texts("comm_groups").value.tolist()
    try:
        entries = json.loads(trace.strings.get(texts[0])) if texts else []
        return [
            ProcessGroup(str(name), str(description), str(backend), int(size), tuple(map(int, ranks)))
            for name, description, backend, size, ranks in entries
        ]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return []


def _of_collectives(trace: Trace) -> list[ProcessGroup]:
    """The groups that collectives name, with the time of these."""
    kernels = comms(trace)
    named = np.flatnonzero(kernels.group >= 0)
    if not len(named):
        return []
    pairs, code = distinct_rows(kernels.group[named], kernels.ranks[named])
    count = np.bincount(code, minlength=len(pairs))
    time_ps = np.zeros(len(pairs), np.int64)
    np.add.at(time_ps, code, trace.events["duration_ps"][kernels.rows[named]])
    size = np.full(len(pairs), -1, np.int64)
    np.maximum.at(size, code, kernels.size[named])
    groups = []
    for i, (label_id, ranks_id) in enumerate(pairs.tolist()):
        label = _LABEL.match(trace.strings.get(label_id))
        ranks = tuple(map(int, trace.strings.get(ranks_id).split(","))) if ranks_id >= 0 else ()
        name, description = (label["name"], label["description"] or "") if label else ("", "")
        groups.append(
            ProcessGroup(name, description, "", int(size[i]), ranks, int(count[i]), int(time_ps[i]))
        )
    return groups
