"""The flame graph's answers: its numbers against a plain script over the file, its verdict against the
diagnosis, its files against their formats.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.analysis.flame.nodes import Node
from tb_tpuprof.errors import BadParameter, ToolUnavailable
from tb_tpuprof.session import Session
from tb_tpuprof.tools import get_tool
from tb_tpuprof.tools.flame_graph.rows import nodes_table
from tb_tpuprof.tools.flame_graph.tables import FUNCTIONS
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.why import diagnosis
from tb_tpuprof.trace.trace import Trace
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing
from tests.golden_files import demo_runs
from tests.plain_protobuf import plain_fields
from tests.tools.drawn_session import session_of

TOOL = get_tool("flame_graph")
JAX = "jax_train"
# Two steps, of 60 and 40 µs, on the first thread; another function on the second.
DRAWN = drawing(
    """
    python    [train                                                     ][train                                 ]
    python     [$train.py:9 load                 ] [PjitFunction(step)]    [$train.py:9 load   ] [Mul:Mul]
    python      [$queue.py:171 get        ]                                  [$queue.py:171 get]
    python2   [$data.py:22 produce                                                                              ]
    python2    [$augment.py:7 crop         ]
    """,
    {"train": [{"_r": 1, "step_num": 1}, {"_r": 1, "step_num": 2}]},
)


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(str(demo_runs()[JAX]), cache=False)


def run(session: Session, question: str = "", **params: object) -> Payload:
    return TOOL.run(session, None, params, question)


def cells(payload: Payload, table: str, name: str) -> list[Any]:
    """A column's cells; unknown texts are empty."""
    (column,) = (one for one in payload.tables[table].columns if one.name == name)
    if column.strings is None:
        return list(column.values.tolist())
    return [column.strings[code] if code >= 0 else "" for code in column.values.tolist()]


def texts_of(payload: Payload, table: str) -> list[str]:
    """All texts of a table."""
    return [
        text
        for column in payload.tables[table].columns
        for text in column.strings or ()
        if isinstance(text, str)
    ]


def plain_self_times(path: Path, thread: str) -> dict[str, int]:
    """Self time in ps by event name on one thread, with a stack and nothing else."""
    result: dict[str, int] = {}
    for number, plane in plain_fields(path.read_bytes()):
        if number != 1:
            continue
        fields = list(plain_fields(plane))
        if (2, b"/host:CPU") not in fields:
            continue
        names = {}
        for field, entry in fields:
            if field == 4:
                metadata = dict(plain_fields(dict(plain_fields(entry))[2]))
                names[metadata.get(1, 0)] = metadata.get(2, b"").decode()
        for field, line in fields:
            if field == 3 and (2, thread.encode()) in (parts := list(plain_fields(line))):
                add_self_times(result, names, [dict(plain_fields(event)) for key, event in parts if key == 4])
    return result


def add_self_times(result: dict[str, int], names: dict[int, str], events: list[dict[int, Any]]) -> None:
    rows = sorted(
        ((event.get(2, 0), -event.get(3, 0), names[event.get(1, 0)]) for event in events),
        key=lambda row: row[:2],
    )
    # The last one to begin has the time, until it ends: then the one before it.
    stack: list[tuple[int, str]] = []
    now = 0
    for start, negative, name in [*rows, (2**62, 0, "")]:
        while stack and now < start:
            end, running = stack[-1]
            result[running] = result.get(running, 0) + max(min(end, start) - now, 0)
            now = max(now, min(end, start))
            if end <= start:
                stack.pop()
        now = max(now, start) if start < 2**62 else now
        stack.append((start - negative, name))


def test_self_times_are_those_of_a_plain_script(session: Session) -> None:
    (path,) = demo_runs()[JAX].glob("*.xplane.pb")
    expected = plain_self_times(path, "python")
    payload = run(session, steps="trace", threads="0")
    assert cells(payload, "threads", "name")[cells(payload, "threads", "is_shown").index(True)] == "python"
    found = dict(zip(cells(payload, "functions", "key"), cells(payload, "functions", "self_ps"), strict=True))
    assert len(found) > 30
    assert {name: time for name, time in found.items() if time} == {
        name: time for name, time in expected.items() if time
    }
    covered = cells(payload, "threads", "busy_ps")[0]
    assert sum(cells(payload, "nodes", "self_ps")) == covered == sum(expected.values())


def test_the_nodes_of_a_tree_add_up(session: Session) -> None:
    for params in ({}, {"steps": "median"}, {"against": "slowest"}, {"order": "time", "steps": "train 3"}):
        payload = run(session, **params)
        parent, own, total = (cells(payload, "nodes", name) for name in ("parent", "self_ps", "total_ps"))
        below = np.zeros(len(parent))
        for i, above in enumerate(parent):
            assert above < i
            if above >= 0:
                below[above] += total[i]
        assert np.allclose(below + np.array(own), total, rtol=1e-12)
    assert payload.scalars["n_steps_shown"].value == 1


def test_steps_are_compared(session: Session) -> None:
    one, other = run(session, steps="train 3"), run(session, steps="train 7")
    both = run(session, steps="train 3", against="train 7")
    keys = cells(both, "functions", "key")
    for payload, prefix in ((one, ""), (other, "other_")):
        of = dict(
            zip(cells(payload, "functions", "key"), cells(payload, "functions", "self_ps"), strict=True)
        )
        found = dict(zip(keys, cells(both, "functions", f"{prefix}self_ps"), strict=True))
        assert {key: time for key, time in found.items() if time} == of | {
            key: time for key, time in found.items() if key not in of and time
        }
        assert set(of) <= set(found)
    assert both.scalars["other_step_time_ps"].value == other.scalars["step_time_ps"].value
    assert cells(both, "steps", "is_compared").count(True) == 1


def test_operations_of_a_scope_are_those_of_one_step() -> None:
    """4 steps: 20 FLOPs of the first scope, unknown of the second, none of the third."""
    flame: Any = SimpleNamespace(
        tree_group=0, n_windows=(4,), n_summed=(4,), is_in_order=False, is_of_modules=False
    )
    nodes = [
        Node(0, -1, f"scope{i}", 0, [8], [8], [4], flops=flops) for i, flops in enumerate((20.0, None, 0.0))
    ]
    table = nodes_table(flame, nodes)
    column = next(one for one in table.columns if one.name == "flops")
    np.testing.assert_array_equal(np.array(column.values, float), [5.0, np.nan, 0.0])


def test_columns_of_the_steps_to_compare_with_are_marked() -> None:
    titles = {column.name: column.title for column in FUNCTIONS.columns}
    for column, title in {"self_ps": "Self", "total_ps": "Total", "calls": "Calls"}.items():
        assert (titles[column], titles[f"other_{column}"]) == (title, f"{title} (B)")


def test_the_verdict_names_your_function_and_agrees_with_the_diagnosis(session: Session) -> None:
    verdict = run(session).verdict
    assert verdict is not None
    top = diagnosis(session).top
    assert top is not None
    assert verdict.text.startswith(diagnosis(session).text)
    assert f"`{top.culprit.name}` ({top.culprit.file}:{top.culprit.line})" in verdict.text
    functions = run(session)
    name, file, line = (cells(functions, "functions", key)[0] for key in ("name", "file", "line"))
    assert f"Most self time in your code: `{name}` ({file}:{int(line)}) takes" in verdict.text
    own = cells(functions, "functions", "with_calls_ps")
    assert own[0] == max(time for time in own if time == time)


def test_the_verdict_of_a_drawn_job() -> None:
    session = session_of(DRAWN)
    payload = run(session)
    assert payload.scalars["step_time_ps"].value == 50 * PS
    # load waits for 35 of its 35 + 21 µs: 27 and 18 in `get`; on the steps' own thread it takes the most.
    own = dict(
        zip(cells(payload, "functions", "name"), cells(payload, "functions", "with_calls_ps"), strict=True)
    )
    waits = dict(
        zip(cells(payload, "functions", "name"), cells(payload, "functions", "waiting_ps"), strict=True)
    )
    load = len("[$train.py:9 load                 ]") + len("[$train.py:9 load   ]")
    get = len("[$queue.py:171 get        ]") + len("[$queue.py:171 get]")
    crop = len("[$augment.py:7 crop         ]")
    assert own["load"] == load * PS / 2
    assert waits["load"] == get * PS / 2
    assert own["crop"] == crop * PS / 2
    verdict = payload.verdict
    assert verdict is not None
    assert "Most self time in your code: `load` (train.py:9) takes 28.0 µs (56.0%) per step" in verdict.text
    assert f"{get / 2:.1f} µs of it waiting" in verdict.text
    assert {"function": "$train.py:9 load"} in [step.params for step in verdict.next]


def test_without_python_calls_the_verdict_says_how_to_record_them() -> None:
    payload = run(Session(str(demo_runs()["keras_slow_input"]), cache=False))
    assert payload.verdict is not None
    assert "so none of your functions can be named" in payload.verdict.text
    assert any("tpuprof capture --python_tracer_level 1" in detail for detail in payload.verdict.details)
    jax = session_of(drawing("python   [PjitFunction(step)   ]"))
    verdict = run(jax).verdict
    assert verdict is not None
    assert "The largest call is `PjitFunction(step)`: 23.0 µs (71.9%)." in verdict.text
    assert "`python_tracer_level=1`" in verdict.details[0]


def test_the_device_is_named_where_one_of_several_is_shown_and_ran_the_operation() -> None:
    def gpu(number: int, duration: int) -> DrawnPlane:
        return DrawnPlane(
            f"/device:GPU:{number}", {"Stream #1": [DrawnEvent("void f<float>(int)", 9 * PS, duration * PS)]}
        )

    launch = [DrawnEvent("PjitFunction(g)", 0, 8 * PS), DrawnEvent("void f<float>(int)", PS, 2 * PS)]
    planes = [DrawnPlane("/host:CPU", {"main": launch}), gpu(0, 7), gpu(1, 31)]
    text = {n: _text(build(planes[:n])) for n in (2, 3)}
    assert text[2].startswith("The largest operation is `void f<float>(int)`: 7.00 µs")
    assert text[3].startswith("The largest operation on GPU:1 is `void f<float>(int)`: 31.0 µs")
    of_kernel = run(session_of(build(planes)), "function", function="void f<float>(int)")
    assert of_kernel.scalars["self_ps"].value == (7 + 31) * PS  # without the launch
    waits = [DrawnEvent("PjitFunction(g)", 0, 90 * PS), DrawnEvent("Acquire semaphore", PS, 80 * PS)]
    waiting = _text(build([DrawnPlane("/host:CPU", {"main": waits}), gpu(0, 7), gpu(1, 31)]))
    assert waiting.startswith("The largest operation is `Acquire semaphore`, which only waits: 80.0 µs")


def _text(trace: Trace) -> str:
    verdict = run(session_of(trace)).verdict
    assert verdict is not None
    return verdict.text


def test_a_function_from_both_sides(session: Session) -> None:
    key = "$capture_jax_train.py:62 make_batch"
    payload = run(session, "function", function=key, steps="train 5")
    page = run(session, steps="train 5")
    row = cells(page, "functions", "key").index(key)
    for name in ("self_ps", "total_ps", "calls"):
        assert payload.scalars[name].value == cells(page, "functions", name)[row]
    sides, parents = cells(payload, "sides", "side"), cells(payload, "sides", "parent")
    roots = [i for i, parent in enumerate(parents) if parent == -1]
    assert [sides[i] for i in roots] == ["callers", "callees"]
    assert [cells(payload, "sides", "key")[i] for i in roots] == [key] * 2
    shown = cells(payload, "by_step", "is_shown").index(True)
    assert cells(payload, "by_step", "step")[shown] == "train 5"
    assert cells(payload, "by_step", "total_ps")[shown] == payload.scalars["total_ps"].value
    event = cells(payload, "longest_calls", "event")[0]
    details = get_tool("trace_viewer").run(session, None, {"event": event}, "event")
    assert details.scalars["duration_ps"].value == cells(payload, "longest_calls", "duration_ps")[0]
    assert key in [cell for name in details.tables for cell in texts_of(details, name)]


def test_what_is_not_there_is_refused(session: Session) -> None:
    for params, name in (
        ({"steps": "train 999"}, "steps"),
        ({"against": "no"}, "against"),
        ({"threads": "0,x"}, "threads"),
        ({"order": "sideways"}, "order"),
    ):
        with pytest.raises(BadParameter, match=name):
            run(session, **params)
    with pytest.raises(BadParameter, match="function"):
        run(session, "function", function="nothing like it")
    with pytest.raises(BadParameter, match="function"):
        run(session, "function", function="x" * 100_000)
    with pytest.raises(ToolUnavailable, match="modules"):
        run(session, mode="modules")


def test_hosts_count_as_means() -> None:
    """Three hosts, of which one has another function: times are means per step and host."""
    other = drawing(
        """
        python    [train                                                     ]
        python     [$eval.py:3 score  ]  [Mul:Mul]
        """,
        {"train": [{"_r": 1, "step_num": 1}]},
    )
    payload = run(session_of(DRAWN, DRAWN, other))
    assert payload.scalars["n_steps_shown"].value == 5
    own = dict(zip(cells(payload, "functions", "name"), cells(payload, "functions", "self_ps"), strict=True))
    alone = run(session_of(DRAWN))
    before = dict(zip(cells(alone, "functions", "name"), cells(alone, "functions", "self_ps"), strict=True))
    assert own["load"] == pytest.approx(before["load"] * 4 / 5)
    assert own["score"] == pytest.approx(len("[$eval.py:3 score  ]") * PS / 5)


def test_calls_in_time_order_on_three_unlike_hosts() -> None:
    """Each host has threads of its own, and a call the time that it takes: no mean over hosts. The third host
    does not have the step.
    """
    second = drawing(
        """
        python    [train                                                                 ]
        python     [$eval.py:3 score          ]
        python2   [$data.py:30 shuffle  ]
        """,
        {"train": [{"_r": 1, "step_num": 1}]},
    )
    third = drawing("python    [$idle.py:9 nap       ]")
    payload = run(session_of(DRAWN, second, third), order="time", steps="1")
    threads = cells(payload, "threads", "name")
    columns = [cells(payload, "nodes", name) for name in ("thread", "key", "start_ps", "total_ps")]
    found = [
        (threads[group], key, start // PS, time // PS)
        for group, key, start, time in zip(*columns, strict=True)
    ]
    assert found == [
        ("python (worker-0)", "train", 0, 60),
        ("python (worker-0)", "$train.py:9 load", 1, 35),
        ("python (worker-0)", "$queue.py:171 get", 2, 27),
        ("python (worker-0)", "PjitFunction(step)", 37, 20),
        ("python2 (worker-0)", "$data.py:22 produce", 0, 60),
        ("python2 (worker-0)", "$augment.py:7 crop", 1, 29),
        ("python (worker-1)", "train", 0, 72),
        ("python (worker-1)", "$eval.py:3 score", 1, 28),
        ("python2 (worker-1)", "$data.py:30 shuffle", 0, 23),
    ]
    busy = dict(zip(threads, cells(payload, "threads", "busy_ps"), strict=True))
    assert {name: time // PS for name, time in busy.items()} == {
        "python (worker-0)": 60,
        "python2 (worker-0)": 60,
        "python (worker-1)": 72,
        "python2 (worker-1)": 23,
        "python (worker-2)": 0,
    }
    assert payload.scalars["n_steps_shown"].value == 2
    assert payload.scalars["step_time_ps"].value == (60 + 72) / 2 * PS


def file_of(session: Session, form: str, **params: object) -> bytes:
    _, parts = TOOL.file(session, None, params, form)
    return b"".join(parts)


@pytest.mark.parametrize(
    "params", [{}, {"steps": "trace", "threads": "0,1"}, {"order": "time"}, {"mode": "scopes"}]
)
def test_speedscope_files_follow_its_format(session: Session, params: dict[str, object]) -> None:
    value = json.loads(file_of(session, "speedscope", **params))
    assert value["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = value["shared"]["frames"]
    assert all(set(frame) <= {"name", "file", "line", "col"} and frame["name"] for frame in frames)
    assert {"name": "make_example", "file": "capture_jax_train.py", "line": 54} in frames or "mode" in params
    assert value["profiles"]
    payload = run(session, **params)
    own, thread = cells(payload, "nodes", "self_ps"), cells(payload, "nodes", "thread")
    n = max(payload.scalars["n_steps_shown"].value or 1, 1)
    for profile, group in zip(value["profiles"], dict.fromkeys(thread), strict=True):
        assert profile["unit"] == "nanoseconds"
        assert profile["name"] == cells(payload, "threads", "name")[group]
        expected = sum(time for time, one in zip(own, thread, strict=True) if one == group) * n / 1000
        (check_evented if profile["type"] == "evented" else check_sampled)(profile, len(frames), expected)


def check_sampled(profile: dict[str, Any], n_frames: int, expected: float) -> None:
    assert profile["type"] == "sampled"
    assert len(profile["samples"]) == len(profile["weights"])
    assert all(sample and all(0 <= frame < n_frames for frame in sample) for sample in profile["samples"])
    assert sum(profile["weights"]) == pytest.approx(profile["endValue"] - profile["startValue"])
    assert sum(profile["weights"]) == pytest.approx(expected)


def check_evented(profile: dict[str, Any], n_frames: int, expected: float) -> None:
    stack: list[int] = []
    now, busy = profile["startValue"], 0.0
    for event in profile["events"]:
        assert event["at"] >= now
        busy += (event["at"] - now) * bool(stack)
        now = event["at"]
        if event["type"] == "O":
            assert 0 <= event["frame"] < n_frames
            stack.append(event["frame"])
        else:
            assert event["type"] == "C"
            assert stack.pop() == event["frame"]
    assert not stack
    assert now <= profile["endValue"]
    assert busy == pytest.approx(expected, rel=1e-3)


def test_collapsed_stacks_are_paths_with_weights(session: Session) -> None:
    lines = file_of(session, "collapsed", steps="trace", threads="0").decode().splitlines()
    assert all(re.fullmatch(r"[^;\n]+(?:;[^;\n]+)* \d+", line) for line in lines)
    payload = run(session, steps="trace", threads="0")
    total = sum(int(time) // 1000 for time in cells(payload, "nodes", "self_ps"))
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == total
    assert any(
        line.startswith("python;") and ";make_batch (capture_jax_train.py:62)" in line for line in lines
    )


def test_names_cannot_break_the_files() -> None:
    session = session_of(drawing("python   [a;b  c 7   ]"))
    assert file_of(session, "collapsed").decode() == f"python;a,b c 7 {13 * PS // 1000}\n"


def test_captures_that_do_not_overlap_are_not_averaged() -> None:
    """Two hosts captured together and one two hours later: their times are those of the two alone, and a
    notice names the third."""
    start_ns = (10**15, 10**15 + 1_000, 10**15 + 7_200 * 10**9)
    traces = [replace(DRAWN, info=replace(DRAWN.info, start_ns=start)) for start in start_ns]
    payload, together = run(session_of(*traces)), run(session_of(*traces[:2]))
    assert payload.hosts == ("worker-0", "worker-1")
    assert cells(payload, "nodes", "total_ps") == cells(together, "nodes", "total_ps")
    assert payload.scalars["n_steps_shown"].value == together.scalars["n_steps_shown"].value == 4
    (notice,) = (one for one in payload.diagnostics if "left out: captures" in one.message)
    assert notice.message.startswith("worker-2 was captured at another time")
    assert not any("left out: captures" in one.message for one in together.diagnostics)
