"""The live comparison of the pod viewer: steps, cores and the nine classes of time, of synthetic runs and of
real ones.
"""

from __future__ import annotations

import re
from typing import Any

from tb_tpuprof.analysis.pod.host import WHOLE
from tb_tpuprof.errors import ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools.pod_viewer import view as pod_viewer
from tests.conformance.live_devices import Field, table

PS_PER_US = 1_000_000
# The peer's numbers of classes, and our parts that belong to them.
CLASSES = {
    "1": (
        "device compute",
        ("high_flops", "low_flops", "compute", "copy_wait"),
    ),  # the peer counts waiting for copies as compute
    "2": ("device to device", ("send", "recv", "device_copy")),
    "3": ("collectives", ("collective", "collective_wait")),
    "4": ("host compute", ("host_compute",)),
    "5": ("kernel launch", ("launch",)),
    "6": ("input", ("input",)),
    "7": ("output", ("output",)),
    "8": ("compilation", ("compile",)),
    "9": ("all others", ("idle",)),
}
_PER_HOST = 1000


def _number(step: str) -> int:
    found = re.search(r"\d+$", step)
    return int(found[0]) if found else -1


def pods(session: Session, answer: Any) -> list[Field]:
    """Steps, cores, and per class the mean of the steps that both have and the step that differs
    most; in µs.
    """
    peer = {
        int(step["stepNum"]): step["podStatsPerCore"]
        for step in answer.get("podStatsSequence", {}).get("podStatsMap", [])
    }
    try:
        payload = pod_viewer.TOOL.run(session, None, {})
    except ToolUnavailable:
        return [Field("steps", 0.0, float(len(peer)))]
    names = (
        [str(row["step"]) for row in table(payload.tables["steps"])] if "steps" in payload.tables else [WHOLE]
    )
    found = [Field("steps", 0.0 if names == [WHOLE] else float(len(names)), float(len(peer)))]
    if not peer or names == [WHOLE]:
        return found
    n_cores = {len(cores) for cores in peer.values()}
    found.append(Field("cores", float(payload.tables["cores"].n_rows), float(max(n_cores))))
    both = _paired(names, peer)
    found.append(Field("steps compared", float(len(names)), float(len(both))))
    rows = [(_records(cores), _cores(session, at)) for cores, at in both]
    for label, ours, theirs in (
        ("step time", ("total",), "total"),
        *((title, parts, key) for key, (title, parts) in CLASSES.items()),
    ):
        pairs = [
            (sum(mine.get(f"{part}_ps", 0.0) for part in ours) / PS_PER_US, record.get(theirs, 0.0))
            for records, cores in rows
            for record, mine in zip(records, cores, strict=False)
        ]
        if pairs:
            worst = max(pairs, key=lambda pair: abs(pair[0] - pair[1]))
            found.append(
                Field(
                    f"{label}, mean",
                    sum(a for a, _ in pairs) / len(pairs),
                    sum(b for _, b in pairs) / len(pairs),
                )
            )
            found.append(Field(f"{label}, step that differs most", *worst))
    return found


def _paired(names: list[str], peer: dict[int, Any]) -> list[tuple[Any, int]]:
    """The peer's steps with the places of ours: by number; where it counts from 1, in order, without both
    ends.
    """
    place = {_number(name): i for i, name in enumerate(names)}
    both = [(peer[number], place[number]) for number in peer if number in place]
    n_more = len(peer) - len(names)
    if both or n_more not in (0, 2):
        return both
    ordered = [peer[number] for number in sorted(peer)]
    return [(ordered[i + n_more // 2], i) for i in range(len(names))]


def _records(cores: dict[str, Any]) -> list[dict[str, float]]:
    """The peer's cores in order, host by host."""
    ordered = sorted(cores, key=int)
    return [{"total": cores[core]["totalDurationUs"], **cores[core]["stepBreakdownUs"]} for core in ordered]


def _cores(session: Session, step: int) -> list[dict[str, Any]]:
    """Our cores in the same order."""
    return table(pod_viewer.TOOL.run(session, None, {"step": step}).tables["cores"])
