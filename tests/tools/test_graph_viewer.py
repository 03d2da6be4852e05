"""The graph viewer's answers: the middle, times against the file's own events, search, text by the line,
files, and what is refused.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.ingest.hlo.module import decode_hlo
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tb_tpuprof.session import Session
from tb_tpuprof.tools.graph_viewer.tables import _stack
from tb_tpuprof.tools.graph_viewer.view import TOOL, _root_of
from tb_tpuprof.tools.hlo_stats.view import TOOL as HLO_STATS
from tb_tpuprof.tools.payload import Payload
from tests.golden_files import demo_runs
from tests.ingest.hlo_protos import small_proto
from tests.payload_columns import table
from tests.synthetic import TpuJob, tpu_xspace, write_run


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    run = write_run(tmp_path_factory.mktemp("graph") / "run", {"h": tpu_xspace(TpuJob())})
    (run / "jit_f(7).hlo_proto.pb").write_bytes(small_proto())
    return Session(str(run), cache=False)


@pytest.fixture(scope="module")
def trained() -> Session:
    return Session(str(demo_runs()["jax_train"]), cache=False)


def run(session: Session, **params: object) -> Payload:
    return TOOL.run(session, None, params)


def ask(session: Session, question: str, /, **params: object) -> Payload:
    return TOOL.run(session, None, params, question)


def file(session: Session, form: str, /, **params: object) -> tuple[str, bytes]:
    name, parts = TOOL.file(session, None, params, form)
    return name, b"".join(parts)


def test_without_times_the_entry_s_root_is_in_the_middle(session: Session) -> None:
    payload = run(session)
    assert table(payload, "chosen") == {
        "program": ["jit_f(7)"],
        "op": ["fusion.4"],
        "computation": ["main"],
        "callers": [""],
        "entry": ["main"],
    }
    assert set(table(payload, "nodes")["name"]) == {"fusion.4", "dot.3", "parameter.1", "parameter.2"}
    assert payload.scalars["op_time_ps"].value is None
    assert payload.verdict
    assert payload.verdict.text == (
        "The graph is centered on `fusion.4` (fusion) of `jit_f(7)`. The trace has no events of it."
    )


@pytest.mark.parametrize(
    ("root", "rows", "shown"), [(0, [0, 1, 2], 0), (1, [0, 1, 2], 1), (-1, [4, 7], 7), (-1, [], -1)]
)
def test_the_root_of_a_computation_may_be_its_first_row(root: int, rows: list[int], shown: int) -> None:
    """Without a root it is the last row."""
    module: Any = SimpleNamespace(computations={"root": [root]}, rows_of=lambda _computation: rows)
    assert _root_of(module, 0) == shown


def test_what_is_in_the_link_is_shown(session: Session) -> None:
    nodes = table(run(session, program="jit_f", op="%dot.3", radius=1, open="fusion.4"), "nodes")
    assert dict(zip(nodes["name"], nodes["is_frame"], strict=True))["fusion.4"] is True
    assert "exponential.12" in nodes["name"]
    dot = nodes["name"].index("dot.3")
    assert (nodes["op_name"][dot], nodes["source"][dot], nodes["shape"][dot]) == (
        "jit(f)/dot",
        "a.py:3",
        "f32[8,16]{1,0}",
    )
    assert str(nodes["expression"][dot]).startswith("dot.3 = f32[8,16]{1,0} dot(parameter.1, parameter.2)")
    assert "op_name" not in table(run(session, op="dot.3", metadata=False), "nodes")
    body = run(session, op="body")
    assert table(body, "chosen")["op"] == ["add.13"]
    assert table(body, "chosen")["callers"] == ["fusion.4"]


def test_times_go_from_the_launch_to_the_end_and_are_those_of_hlo_stats(trained: Session) -> None:
    """Counts equal the raw file's; times are between its events (the launching thread's share) and its end
    marks (set too late).
    """
    [path] = Path(str(demo_runs()["jax_train"])).glob("*.xplane.pb")
    xspace = xspace_class()()
    xspace.ParseFromString(path.read_bytes())
    least: Counter[tuple[int, str]] = Counter()
    most: Counter[tuple[int, str]] = Counter()
    ended: dict[int, int] = {}
    launched: list[tuple[tuple[int, str], int, int, int]] = []
    n: Counter[tuple[int, str]] = Counter()
    for plane in xspace.planes:
        keys = {entry.key: entry.value.name.decode() for entry in plane.stat_metadata}
        for epoch_ns, event in ((line.timestamp_ns, event) for line in plane.lines for event in line.events):
            stats = {keys[stat.metadata_id]: stat for stat in event.stats}
            start = epoch_ns * 1000 + event.offset_ps
            if "_c" in stats and stats["_ct"].uint64_value == stats["_ct"].int64_value == 0:
                ended[stats["_c"].uint64_value or stats["_c"].int64_value] = start
            if "hlo_op" in stats and "program_id" in stats:
                op, program = stats["hlo_op"], stats["program_id"]
                name = op.str_value.decode() or keys.get(op.ref_value, "")
                key = (program.int64_value or program.uint64_value, name)
                launched.append(
                    (key, start, event.duration_ps, stats["_p"].uint64_value or stats["_p"].int64_value)
                )
                n[key] += 1
    for key, start, duration_ps, number in launched:
        least[key] += duration_ps
        most[key] += max(duration_ps, ended[number] - start)
    payload = run(trained)
    program = int(str(table(payload, "chosen")["program"][0]).partition("(")[2].rstrip(")"))
    hot = table(payload, "hot")
    assert len(hot["name"]) > 10
    rows = table(HLO_STATS.run(trained, None, {}), "ops")
    times = dict(zip(rows["op"], rows["total_time_ps"], strict=True))
    for name, time_ps, count in zip(hot["name"], hot["time_ps"], hot["n_occurrences"], strict=True):
        assert (time_ps, count) == (times[name], n[program, str(name)])
        writing_the_mark_ps = 1_500_000 * n[program, str(name)]  # the launching event covers that too
        assert (
            least[program, str(name)] - writing_the_mark_ps <= float(str(time_ps)) <= most[program, str(name)]
        )
    assert hot["time_ps"] == sorted(hot["time_ps"], reverse=True)  # type: ignore[type-var]
    assert table(payload, "chosen")["op"] == hot["name"][:1]


@pytest.mark.skipif("TPUPROF_CORPUS" not in os.environ, reason="TPUPROF_CORPUS is not set")
@pytest.mark.parametrize(
    "folder",
    ["xprof_tpu_inference_2_old/plugins/profile/run", "tracelens_mi300_jax/plugins/profile/jax08_attention"],
)
def test_occurrences_and_times_are_those_of_the_other_pages(folder: str) -> None:
    session = Session(str(Path(os.environ["TPUPROF_CORPUS"]) / folder), cache=False)
    rows = table(HLO_STATS.run(session, None, {}), "ops")
    program = str(table(run(session), "chosen")["program"][0])
    expected = {
        str(name): (time_ps, n)
        for title, name, time_ps, n in zip(
            rows["program"], rows["op"], rows["total_time_ps"], rows["n_occurrences"], strict=True
        )
        if title == program
    }
    hot = table(run(session), "hot")
    by_op = {
        str(name): (time_ps, n)
        for name, time_ps, n in zip(hot["name"], hot["time_ps"], hot["n_occurrences"], strict=True)
    }
    assert by_op
    assert by_op == expected


def test_without_times_no_events_are_read(trained: Session) -> None:
    with_times = run(trained)
    chosen = table(with_times, "chosen")
    chosen_params = {"program": chosen["program"][0], "op": chosen["op"][0]}
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    early = run(session, **chosen_params, times=False)
    assert session.size_bytes == 0  # no trace was decoded
    ask(session, "text", program=chosen_params["program"])
    file(session, "proto", program=chosen_params["program"])
    assert session.size_bytes == 0
    times = {"time_ps", "time_fraction", "n_occurrences"}
    expected, nodes = table(run(trained, **chosen_params), "nodes"), table(early, "nodes")
    assert {name: values for name, values in expected.items() if name not in times} == nodes
    assert set(with_times.tables) - set(early.tables) == {"hot"}
    assert not any(name.endswith("time_ps") for name in early.scalars)
    assert early.verdict
    assert "traced" not in " ".join(early.verdict.details)
    later = run(session, **chosen_params)
    assert repr(table(later, "nodes")) == repr(expected)  # NaN is not NaN
    assert (
        session.trace(session.hosts[0]).programs is session.outline(session.hosts[0]).programs
    )  # nothing is opened twice


def test_search_and_text_answer_nothing_else(trained: Session) -> None:
    matches = ask(trained, "search", text="DOT")
    assert set(matches.tables) == {"matches"}
    match_rows = table(matches, "matches")
    assert match_rows["name"]
    assert all(
        "dot" in f"{a}{b}{c}".lower()
        for a, b, c in zip(match_rows["name"], match_rows["opcode"], match_rows["op_name"], strict=True)
    )
    hottest = str(table(run(trained), "chosen")["op"][0])
    text = ask(trained, "text", op=hottest, n_lines=5000)
    line = int(text.scalars["op_line"].value or 0)
    assert f" {hottest} = " in str(table(text, "lines")["text"][line])
    part = ask(trained, "text", first_line=line, n_lines=1)
    assert table(part, "lines")["text"] == [table(text, "lines")["text"][line]]


def test_files_are_whole_and_named(session: Session) -> None:
    name, proto = file(session, "proto")
    assert name == "jit_f(7).pb"
    assert decode_hlo(proto, "f", 7).find("fusion.4") >= 0
    name, text = file(session, "hlo", style="short")
    assert (name, text.decode().splitlines()[0][:15]) == ("jit_f(7).txt", "HloModule jit_f")
    assert "metadata=" not in text.decode()
    assert "metadata=" in file(session, "hlo")[1].decode()
    assert file(session, "dot", op="dot.3")[1].startswith(b'digraph "jit_f" {')
    name, graph = file(session, "graph", op="dot.3", radius=1)
    assert name == "jit_f(7)_dot.3.json"
    assert len(json.loads(graph)["nodes"]) == 4


@pytest.mark.parametrize(
    ("question", "params"),
    [("", {"text": "dot"}), ("search", {"text": "dot", "radius": 1}), ("text", {"times": False})],
)
def test_questions_refuse_the_parameters_of_others(
    session: Session, question: str, params: dict[str, object]
) -> None:
    with pytest.raises(BadParameter, match=list(params)[-1]):
        ask(session, question, **params)


def test_files_refuse_the_parameters_of_the_graph(session: Session) -> None:
    with pytest.raises(BadParameter, match="radius"):
        file(session, "hlo", radius=1)
    with pytest.raises(BadParameter, match="style"):
        file(session, "dot", style="short")


def test_what_is_not_there_is_said(session: Session, tmp_path: Path) -> None:
    with pytest.raises(BadParameter) as unknown:
        run(session, op="dot.99")
    assert "an instruction or a computation of jit_f" in unknown.value.remedy
    with pytest.raises(BadParameter, match="program"):
        run(session, program="jit_none")
    with pytest.raises(BadParameter, match="text"):
        ask(session, "search", text="x" * 201)
    with pytest.raises(BadParameter, match="text"):
        ask(session, "search")
    bare = Session(str(write_run(tmp_path / "bare", {"h": tpu_xspace(TpuJob())})), cache=False)
    assert "no HLO" in TOOL.available(bare).reason
    with pytest.raises(ToolUnavailable):
        run(bare)


def test_the_innermost_twelve_frames_of_a_node_are_listed() -> None:
    places = [SimpleNamespace(text=f"a.py:{i}", function=f"f{i}") for i in range(30)]
    stacks = {5: places, 6: places[:2]}
    module: Any = SimpleNamespace(
        frames=SimpleNamespace(stack=stacks.__getitem__), instructions={"stack_frame": [5, 6]}
    )
    assert _stack(module, 0).splitlines() == [f"a.py:{i} f{i}" for i in range(12)]
    assert _stack(module, 1) == "a.py:0 f0\na.py:1 f1"
