"""Windows of the timeline beyond what a double holds, around stray events, and the tracks that have events
in them.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bench.synthetic_trace import write_trace
from tb_tpuprof.encode import encode_columns
from tb_tpuprof.encode.gzip import FAST, gzipped
from tb_tpuprof.errors import BadParameter
from tb_tpuprof.session import Session
from tb_tpuprof.tools.payload import Payload
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tests.builders import DrawnEvent, DrawnPlane, build
from tests.tools.trace_viewer.questions import ask, rows

HOUR_PS = 3600 * 10**12


def chrome(folder: Path, events: list[dict[str, Any]], question: str = "", **params: object) -> Payload:
    """The tool's answer for a Chrome trace."""
    run = folder / "plugins" / "profile" / "run"
    run.mkdir(parents=True, exist_ok=True)
    (run / "host.trace.json").write_text(json.dumps({"traceEvents": events}))
    return TOOL.run(Session(str(run), cache=False), None, params, question)


def slices(*starts_us: float, tid: int = 1, dur: float = 1) -> list[dict[str, Any]]:
    return [
        {"ph": "X", "name": f"e{i}", "ts": ts, "dur": dur, "pid": 1, "tid": tid}
        for i, ts in enumerate(starts_us)
    ]


@pytest.mark.parametrize("hours", [3.3, 312, 600])
def test_any_window_of_a_trace_of_many_hours_is_exact(tmp_path: Path, hours: float) -> None:
    last_ps = int(hours * HOUR_PS)
    events = [*slices(0, *range(1, 40)), *slices(*(last_ps / 1e6 + i for i in range(5)), tid=2)]
    whole = chrome(tmp_path, events)
    duration_ps = whole.scalars["trace_duration_ps"].value
    assert isinstance(duration_ps, int)
    assert duration_ps == last_ps + 5_000_000 > 2**53
    start_ps = last_ps + 2_000_001
    payload = chrome(
        tmp_path, events, start_ps=str(start_ps), end_ps=str(start_ps + 1_500_000), width_px=1000
    )
    assert payload.scalars["start_ps"].value == start_ps
    assert [(box["name"], box["start_ps"], box["n_merged"]) for box in rows(payload, "boxes")] == [
        ("e2", last_ps + 2_000_000, 1),
        ("e3", last_ps + 3_000_000, 1),
    ]


@pytest.mark.parametrize("text", [str(2**63), "-1", "1.5", "nan", "1e30", "1" * 5000, "½"])
def test_a_time_that_is_none_is_refused_with_the_exact_limits(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadParameter) as caught:
        chrome(tmp_path, slices(0, 5), start_ps=text)
    assert caught.value.remedy == f"Allowed: a whole number from 0 to {2**63 - 1}."


def test_the_last_possible_window_answers(tmp_path: Path) -> None:
    for question in ("", "groups", "active"):
        chrome(tmp_path, slices(0, 5), question, start_ps=2**63 - 2, end_ps=2**63 - 1)


def focus(payload: Payload) -> tuple[object, object] | None:
    found = [payload.scalars.get(f"focus_{edge}_ps") for edge in ("start", "end")]
    return (found[0].value, found[1].value) if found[0] and found[1] else None


def test_a_stray_event_before_or_after_all_others_is_kept_and_the_page_opens_on_the_others(
    tmp_path: Path,
) -> None:
    others = [5_000_000 + 10 * i for i in range(30)]
    before = chrome(tmp_path, slices(0, *others))
    assert focus(before) == (5_000_000 * 10**6, 5_000_291 * 10**6)
    assert before.scalars["n_events"].value == 31
    assert [notice.message for notice in before.diagnostics] == [
        "host: 1 event is 5.00 s before all others. The page opens on the others; All shows the whole trace."
    ]
    after = chrome(tmp_path, slices(*(i * 10 for i in range(30)), 9_000_000, dur=4))
    assert focus(after) == (0, 294 * 10**6)
    assert [notice.message for notice in after.diagnostics] == [
        "host: 1 event is 9.00 s after all others. The page opens on the others; All shows the whole trace."
    ]


@pytest.mark.parametrize(
    "events",
    [
        slices(0, *(5_000_000 + i for i in range(8))),
        slices(0, 1, *(5_000_000 + i for i in range(30))),
        slices(0, *(5_000_000 + 40_000 * i for i in range(30))),
        [*slices(0, dur=4_999_000), *slices(*(5_000_000 + i for i in range(30)))],
        [*slices(0, dur=5_000_010, tid=3), *slices(*(5_000_000 + i for i in range(30)))],
    ],
    ids=["few events", "two strays", "spread", "it lasts up to the others", "it lasts beyond them"],
)
def test_no_event_is_stray_that_belongs_to_the_trace(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    payload = chrome(tmp_path, events)
    assert focus(payload) is None
    assert not payload.diagnostics


def test_tracks_of_three_hosts_are_active_where_a_loop_finds_an_event() -> None:
    rng = random.Random(5)
    lines = {
        f"line {i}": sorted(
            (DrawnEvent("e", rng.randrange(900), rng.choice((0, 1, 40))) for _ in range(rng.choice((1, 4)))),
            key=lambda event: (event.start_ps, -event.duration_ps),
        )
        for i in range(12)
    }
    # The second host started 1,000 ps after the first, a third ran alone before both.
    hosts = [
        build([DrawnPlane("/host:CPU", dict(list(lines.items())[first : first + 4]))], start_ns=start_ns)
        for first, start_ns in ((0, 6), (4, 7), (8, 5))
    ]
    offset_of = {name: (1000, 2000, 0)[i // 4] for i, name in enumerate(lines)}
    names = {row["track"]: row["name"] for row in rows(ask(*hosts), "tracks")}
    assert len(names) == 12
    for start, end in ((0, 1), (100, 101), (0, 3000), *((s, s + 60) for s in range(0, 2960, 47))):
        wanted = {
            name
            for name, events in lines.items()
            if any(
                e.start_ps < end - offset_of[name]
                and e.start_ps + max(e.duration_ps, 1) > start - offset_of[name]
                for e in events
            )
        }
        answer = ask(*hosts, question="active", start_ps=start, end_ps=end)
        assert {names[row["track"]] for row in rows(answer, "active")} == wanted


def test_a_counter_is_active_where_it_has_a_sample(tmp_path: Path) -> None:
    samples = [
        {"ph": "C", "name": "mem", "ts": ts, "pid": 1, "args": {"used": 1.0 + ts}} for ts in (0, 50, 90)
    ]
    events = [*samples, *slices(0, 99)]
    kinds = {row["track"]: row["kind"] for row in rows(chrome(tmp_path, events), "tracks")}
    for start_us, end_us, is_active in ((0, 10, True), (10, 40, False), (40, 51, True), (51, 90, False)):
        window = {"start_ps": start_us * 10**6, "end_ps": end_us * 10**6}
        active = {kinds[row["track"]] for row in rows(chrome(tmp_path, events, "active", **window), "active")}
        assert ("counter" in active) is is_active


def test_the_number_of_steps_is_that_of_the_whole_trace_whatever_the_window(tmp_path: Path) -> None:
    steps = [DrawnEvent("step", 100 * i, 90, {"_r": 1, "step_num": i}) for i in range(7)]
    trace = build([DrawnPlane("/host:CPU", {"python": steps})])
    for end_ps in (50, 700):
        assert ask(trace, start_ps=0, end_ps=end_ps).scalars["n_marked_steps"].value == 7


def test_the_first_event_within_is_that_of_the_outer_one(tmp_path: Path) -> None:
    events = [
        DrawnEvent("first", 0, 100),
        DrawnEvent("a", 0, 10),
        DrawnEvent("b", 20, 10),
        DrawnEvent("b inner", 20, 4),
        DrawnEvent("second", 100, 50),
        DrawnEvent("c", 149, 1),
        DrawnEvent("third", 150, 30),
    ]
    trace = build([DrawnPlane("/host:CPU", {"main": events, "other": [DrawnEvent("d", 151, 5)]})])
    boxes = {box["name"]: box["event"] for box in rows(ask(trace, width_px=2000), "boxes")}
    found = {
        name: [
            row["name"]
            for row in rows(
                ask(trace, question="neighbour", event=boxes[name], direction="within"), "neighbour"
            )
        ]
        for name in ("first", "b", "second", "third", "c", "d")
    }
    assert found == {"first": ["a"], "b": ["b inner"], "second": ["c"], "third": [], "c": [], "d": []}


def test_an_answer_of_a_dense_window_takes_few_bytes_per_box(tmp_path: Path) -> None:
    """A shorter one of the trace that is measured; two thirds of its boxes are merged."""
    run = tmp_path / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    write_trace(run / "host.xplane.pb", 300_000)
    session = Session(str(run), cache=False)
    payload = TOOL.run(session, None, {"width_px": 2000})
    merged = [row["n_merged"] > 1 for row in rows(payload, "boxes")]
    assert len(merged) > 40_000
    assert 0.4 < sum(merged) / len(merged) < 0.95
    assert len(gzipped(encode_columns(payload), FAST)) < 4.9 * len(merged)
