"""The flame graph as files of other programs: speedscope's JSON, and collapsed stacks.

speedscope: https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts. A profile per thread,
`sampled` for merged stacks (a stack and its weight per sample), `evented` for calls in time order.

Collapsed stacks: `thread;main;load 1234`, one line per path with its self time, as Brendan Gregg's
flamegraph.pl reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from tb_tpuprof.analysis.flame.frames import label_of
from tb_tpuprof.analysis.flame.nodes import Node
from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import File, Param, Params
from tb_tpuprof.tools.flame_graph.flame import Flame, open_flame

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_PS_PER_NS = 1000


def speedscope_file(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, Iterable[bytes]]:
    """The run's name, and speedscope's JSON."""
    flame = open_flame(session, hosts, params)
    frames = _Frames()
    by_group = _by_group(flame.nodes())
    profiles = [
        (_evented if flame.is_in_order else _sampled)(flame.groups[group].title, nodes, frames)
        for group, nodes in by_group.items()
    ]
    value = {
        "$schema": _SCHEMA,
        "name": session.run,
        "exporter": "tb_tpuprof",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.all},
        "profiles": profiles,
    }
    return f"{session.run}_flame_graph", (json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"),)


def collapsed_file(session: Session, hosts: tuple[str, ...], params: Params) -> tuple[str, Iterable[bytes]]:
    """The run's name, and a line per path: the names from the thread inwards, then the self time in ns of all
    steps shown.
    """
    flame = open_flame(session, hosts, {**params, "order": "merged"})
    return f"{session.run}_flame_graph", _lines(flame)


def _lines(flame: Flame) -> Iterator[bytes]:
    paths: dict[int, str] = {}
    for i, node in enumerate(flame.nodes()):
        above = paths[node.parent] if node.parent >= 0 else _safe(flame.groups[node.group].title)
        paths[i] = f"{above};{_safe(_title(node))}"
        weight = node.own_ps[0] // _PS_PER_NS
        if weight:
            yield f"{paths[i]} {weight}\n".encode("utf-8", "replace")


def _title(node: Node) -> str:
    label = label_of(node.name)
    name = f"({node.n_smaller:,} smaller)" if node.n_smaller else label.function
    return f"{name} ({label.file}:{label.line})" if label.file else name


def _safe(name: str) -> str:
    """Without the format's own separators: `;` and line ends."""
    return " ".join(name.replace(";", ",").split()) or "(no name)"


class _Frames:
    """Numbers of frames, each written once."""

    def __init__(self) -> None:
        self.all: list[dict[str, object]] = []
        self._numbers: dict[tuple[str, str, int], int] = {}

    def number(self, node: Node) -> int:
        """The frame of a node."""
        label = label_of(node.name)
        name = f"({node.n_smaller:,} smaller)" if node.n_smaller else label.function
        key = name, label.file, label.line
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            place = {"file": label.file, "line": label.line} if label.file else {}
            self.all.append({"name": name, **place})
        return self._numbers[key]


def _by_group(nodes: Sequence[Node]) -> dict[int, list[tuple[int, Node]]]:
    result: dict[int, list[tuple[int, Node]]] = {}
    for i, node in enumerate(nodes):
        result.setdefault(node.group, []).append((i, node))
    return result


def _sampled(title: str, nodes: Sequence[tuple[int, Node]], frames: _Frames) -> dict[str, object]:
    stacks: dict[int, list[int]] = {}
    samples: list[list[int]] = []
    weights: list[float] = []
    for i, node in nodes:
        stacks[i] = [*stacks.get(node.parent, ()), frames.number(node)]
        if node.own_ps[0] > 0:
            samples.append(stacks[i])
            weights.append(node.own_ps[0] / _PS_PER_NS)
    return {
        "type": "sampled",
        "name": title,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


def _evented(title: str, nodes: Sequence[tuple[int, Node]], frames: _Frames) -> dict[str, object]:
    """Calls open and close in order: one that begins before its neighbor's end closes with its caller at the
    latest.
    """
    events: list[dict[str, object]] = []
    open_calls: list[tuple[int, int, int]] = []  # row, frame, end in ps
    now = 0

    def close(until_row: int) -> None:
        nonlocal now
        while open_calls and open_calls[-1][0] != until_row:
            _, frame, end = open_calls.pop()
            now = max(now, end)
            events.append({"type": "C", "frame": frame, "at": now / _PS_PER_NS})

    for i, node in nodes:
        close(node.parent)
        limit = open_calls[-1][2] if open_calls else None
        now = max(now, node.start_ps)
        end = max(now, node.start_ps + node.total_ps[0])
        frame = frames.number(node)
        events.append({"type": "O", "frame": frame, "at": now / _PS_PER_NS})
        open_calls.append((i, frame, end if limit is None else min(end, max(limit, now))))
    close(-1)
    return {
        "type": "evented",
        "name": title,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": now / _PS_PER_NS,
        "events": events,
    }


def files(params: tuple[Param, ...]) -> tuple[File, ...]:
    """The page's files; they take the page's parameters."""
    return (
        File(
            "speedscope",
            "speedscope.json",
            "application/json",
            speedscope_file,
            params,
            "The threads and steps shown as speedscope's JSON, which https://www.speedscope.app opens",
        ),
        File(
            "collapsed",
            "collapsed.txt",
            "text/plain",
            collapsed_file,
            params,
            "The threads and steps shown as collapsed stacks, self times in ns",
        ),
    )
