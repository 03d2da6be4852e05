"""Goldens of what the demo runs lack: TPUs, GPUs, pods, memory events, PyTorch, graphs, and requests with
parameters. They are short: every scalar, and the sums and the first rows of each table.

The runs are synthetic or recorded in `tests/data`. Other tests check such runs against numbers known from
elsewhere; these goldens show which numbers a change moves. `make golden` writes them to
`tests/golden_devices/`.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tb_tpuprof.analysis.pod.parts import PART_TEXTS
from tb_tpuprof.encode import encode_json
from tb_tpuprof.errors import ProfilerError, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools, get_tool
from tests.golden_files import ROOT, demo_runs, rounded, table_of, write_goldens
from tests.synthetic import write_run
from tests.synthetic_comm import comm_hosts
from tests.synthetic_dcn import dcn_hosts
from tests.synthetic_pod import pod_hosts
from tests.synthetic_serving import Server, serving
from tests.synthetic_torus import Slice, torus_hosts
from tests.synthetic_unlike import POD, gpu_run, kernels_run, memory_run, tpu_run

DATA = ROOT / "tests" / "data"
DEVICE_GOLDEN = ROOT / "tests" / "golden_devices"
ROWS_KEPT = 6
_PARTS = {text.name for text in PART_TEXTS.values()}
Answer = dict[str, Any]
Request = tuple[str, dict[str, Any]]

_DRAWN: dict[str, Callable[[], dict[str, bytes]]] = {
    "tpu": tpu_run,
    "tpu_pod": lambda: pod_hosts(POD),
    "tpu_slice": lambda: torus_hosts(Slice((2, 2, 2), late_host=1, late_from=2, n_steps=3)),
    "tpu_dcn": dcn_hosts,
    "tpu_async": comm_hosts,
    "gpu": gpu_run,
    "gpu_kernels": kernels_run,
    "gpu_memory": memory_run,
    "server": lambda: {"synthetic-server": serving(Server(n_requests=150)).data},
}
_RECORDED = {
    "jax_gpu": "gpu/jax_async1.xplane.pb.gz",
    "jax_gpu_item": "gpu_planted/jax_item.xplane.pb.gz",
    "torch_item": "gpu_planted/torch_item.pt.trace.json.gz",
    "torch_loader": "gpu/torch_loader4.pt.trace.json.gz",
    "torch_memory": "kineto/memory.pt.trace.json.gz",
    "jax_four_devices": "corpus/jax_four_devices_python.xplane.pb.gz",
    "jax_memory": "corpus/jax_memory.xplane.pb.gz",
    "tf_slow_input": "corpus/tf_slow_input.xplane.pb.gz",
    "tf_data_both": "tf_data/both_bound.xplane.pb.gz",
    "tf_data_parallel": "tf_data/parallel_more.xplane.pb.gz",
}
GOLDENS = (
    *((run, tool.name) for run in (*_DRAWN, *_RECORDED) for tool in all_tools()),
    ("graphs", "tpu_compatibility"),
)


@cache
def session_of(run: str) -> Session:
    """The run in a new folder, opened."""
    folder = Path(tempfile.mkdtemp(prefix="device_golden_")) / run
    if run in _DRAWN:
        write_run(folder, _DRAWN[run]())
    elif run == "graphs":
        return _with_graphs(folder)
    else:
        folder.mkdir()
        recorded = DATA / _RECORDED[run]
        (folder / recorded.name.removesuffix(".gz")).write_bytes(gzip.decompress(recorded.read_bytes()))
    return Session(str(folder), cache=False)


def _with_graphs(folder: Path) -> Session:
    """A demo run in a log directory that holds graphs."""
    run = folder / "plugins" / "profile" / "run"
    shutil.copytree(demo_runs()["jax_predict"], run)
    shutil.copytree(DATA / "graphs", folder, dirs_exist_ok=True)
    return Session(str(run), cache=False)


def golden_text(run: str, tool: str) -> str:
    """The golden of a page and of the requests to it, or the reason why there is no such page."""
    try:
        page = _answer(run, tool, "", {})
    except ToolUnavailable as error:
        return _text({"unavailable": error.reason, "remedy": error.remedy})
    answers = {"page": _short(page)}
    for question, params in REQUESTS.get(tool, nothing)(page, session_of(run)):
        answers[f"{question} {json.dumps(params)}".strip()] = _requested(run, tool, question, params)
    return _text(answers)


def _requested(run: str, tool: str, question: str, params: dict[str, Any]) -> Answer:
    try:
        return _short(_answer(run, tool, question, params))
    except ProfilerError as error:
        return {"error": str(error)}


def _answer(run: str, tool: str, question: str, params: dict[str, Any]) -> Answer:
    return answer_of(session_of(run), tool, question, params)


def answer_of(session: Session, tool: str, question: str, params: dict[str, Any]) -> Answer:
    """An answer as the browser gets it. Raises as `Tool.run` does."""
    answer: Answer = json.loads(encode_json(get_tool(tool).run(session, None, params, question)))
    return answer


def _short(answer: Answer) -> Answer:
    scalars = {
        name: f"{_value(scalar['value'])} {scalar['unit']}".strip()
        for name, scalar in answer["scalars"].items()
    }
    tables = {name: _short_table(table) for name, table in answer["tables"].items()}
    rest = {key: value for key, value in answer.items() if key not in ("scalars", "tables", "tool", "title")}
    return {"scalars": scalars, "tables": tables, **rest}


def _value(value: Any) -> str:
    return rounded(value) if value is None or isinstance(value, (int, float)) else str(value)


def _short_table(table: dict[str, Any]) -> dict[str, Any]:
    full = table_of(table, ROWS_KEPT)
    return {key: full[key] for key in ("n_rows", "columns", "sums", "rows")}


def _text(answer: Answer) -> str:
    return json.dumps(answer, indent=1, ensure_ascii=False) + "\n"


def nothing(_page: Answer, _session: Session) -> Iterator[Request]:
    return iter(())


def _column(page: Answer, table: str, name: str) -> list[Any]:
    """The values of a column; nothing if the page lacks it."""
    for column in page["tables"].get(table, {}).get("columns", ()):
        if column["name"] == name:
            if column["kind"] != "text":
                return list(column["values"])
            return [column["strings"][code] if code >= 0 else None for code in column["codes"]]
    return []


def _overview(_page: Answer, _session: Session) -> Iterator[Request]:
    yield "", {"step": "2"}


def _framework_ops(_page: Answer, _session: Session) -> Iterator[Request]:
    yield "", {"idle": True}


def _roofline(_page: Answer, _session: Session) -> Iterator[Request]:
    yield "", {"transfers": False}


def _op_profile(page: Answer, _session: Session) -> Iterator[Request]:
    for group_by in ("category", "provenance"):
        yield "", {"group_by": group_by, "limit": 3}
    yield "", {"idle": False}
    for op in [name for name in _column(page, "nodes", "name") if name][-2:]:
        yield "op", {"op": op}


def _memory_profile(page: Answer, _session: Session) -> Iterator[Request]:
    for memory in _column(page, "memories", "memory")[1:3]:
        yield "", {"memory": memory}
    times = _column(page, "timeline", "start_ps")
    if times:
        start, end = times[0], times[-1]
        third = (end - start) / 3
        yield (
            "",
            {"start_ps": start + third, "end_ps": end - third, "width_px": 10, "at_ps": start + 1.5 * third},
        )


def _memory_viewer(page: Answer, _session: Session) -> Iterator[Request]:
    for program in _column(page, "programs", "program")[1:2]:
        yield "", {"program": program}
    yield "", {"space": 1}
    yield "", {"first_step": 2, "last_step": 5, "width_px": 10}


def _graph_viewer(page: Answer, _session: Session) -> Iterator[Request]:
    nodes = [name for name in _column(page, "nodes", "name") if name]
    for op in nodes[1:2]:
        yield "", {"op": op, "radius": 1, "most_nodes": 10}
        yield "text", {"op": op, "style": "long", "n_lines": 5}
    yield "", {"fusions": "opened", "most_nodes": 30}
    yield "search", {"text": "a"}
    yield "text", {"first_line": 3, "n_lines": 5}


def _tpu_compatibility(page: Answer, _session: Session) -> Iterator[Request]:
    for graph in _column(page, "graphs", "graph")[1:3]:
        yield "", {"graph": graph}
    yield "drawing", {}
    yield "drawing", {"boxes": "0.1.2"}


def _pod_viewer(page: Answer, _session: Session) -> Iterator[Request]:
    yield "", {"step": 1}
    yield "cores", {}
    yield "cores", {"step": 2}
    columns = {column["name"].removesuffix("_ps") for column in page["tables"]["cores"]["columns"]}
    for measure in ("own", "total", *sorted(columns & _PARTS)[:2]):
        yield "cells", {"measure": measure}
    if page["tables"]["channels"]["n_rows"]:
        yield "channel", {"channel": page["tables"]["channels"]["n_rows"] - 1}


def _communication(page: Answer, _session: Session) -> Iterator[Request]:
    yield "step", {}
    yield "step", {"device": 1, "step": 2}


def _trace_viewer(page: Answer, session: Session) -> Iterator[Request]:
    start, end = (float(page["scalars"][name]["value"] or 0) for name in ("start_ps", "end_ps"))
    third = (end - start) // 3
    part = {"start_ps": start + third, "end_ps": end - third}
    yield "", {**part, "width_px": 60, "flows": True}
    yield "groups", {**part, "depth_to": 1}
    yield "minimap", {"width_px": 12}
    yield "slices", {**part, "query": "dur>1us -name:launch", "sort": "dur", "descending": True, "limit": 5}
    yield "groups", {**part, "by": "track"}
    yield "groups", {"query": "self>0", "by": "step", "limit": 5}
    yield "groups", {"of": "derived", "by": "category", "limit": 5}
    yield "hits", {**part, "query": "name~[aeiou]", "width_px": 12}
    yield "utilization", part
    yield "fields", {}
    yield "slices", {"query": "name:e OR -dur<2us step:0..3", "limit": 5}
    yield "slices", {"query": "any:1", "limit": 5}
    events = _column(
        answer_of(session, "trace_viewer", "slices", {"query": "e", "limit": 40}), "slices", "event"
    )
    for event in events[1::15]:
        yield "event", {"event": event}
        for direction in ("next", "previous"):
            yield "neighbour", {"event": event, "direction": direction}


REQUESTS: dict[str, Callable[[Answer, Session], Iterator[Request]]] = {
    "overview_page": _overview,
    "framework_op_stats": _framework_ops,
    "roofline_model": _roofline,
    "op_profile": _op_profile,
    "memory_profile": _memory_profile,
    "memory_viewer": _memory_viewer,
    "graph_viewer": _graph_viewer,
    "tpu_compatibility": _tpu_compatibility,
    "pod_viewer": _pod_viewer,
    "communication": _communication,
    "trace_viewer": _trace_viewer,
}


def write() -> None:
    """Write all goldens."""
    write_goldens(
        DEVICE_GOLDEN,
        {DEVICE_GOLDEN / run / f"{tool}.json": golden_text(run, tool) for run, tool in GOLDENS},
    )


if __name__ == "__main__":
    write()
