"""The trace viewer's answers on random traces, each held against a brute-force computation from the events
themselves.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.session import Session
from tb_tpuprof.tools.trace_viewer.view import TOOL
from tb_tpuprof.trace.trace import Trace
from tests.builders import drawing
from tests.golden_files import demo_runs
from tests.tools.drawn_session import session_of
from tests.tools.trace_viewer.questions import (
    EVENTS_PER_HOST,
    LINES_PER_HOST,
    ask,
    brute_events,
    gpu,
    rows,
    traces,
)


def brute_boxes(events: list[dict[str, Any]], begin: int, end: int, pixel: int) -> list[tuple[int, ...]]:
    """(track, depth, longest, longest event, number) of each box: single events of a pixel or more, runs of
    shorter ones in two pixels.
    """
    boxes = []
    for track, depth in sorted({(event["track"], event["depth"]) for event in events}):
        row = sorted(
            (e for e in events if (e["track"], e["depth"]) == (track, depth)), key=lambda e: e["event"]
        )
        run: list[dict[str, Any]] = []
        runs: list[list[dict[str, Any]]] = []
        for event in row:
            if not (event["end"] > begin and event["start"] < end):
                continue
            bucket = max(event["start"] - begin, 0) // (2 * pixel)
            is_short = event["duration"] < pixel
            if (
                is_short
                and run
                and run[-1]["duration"] < pixel
                and max(run[-1]["start"] - begin, 0) // (2 * pixel) == bucket
            ):
                run.append(event)
            else:
                run = [event]
                runs.append(run)
        for run in runs:
            longest = max(run, key=lambda e: (e["duration"], -e["event"]))
            boxes.append(
                (track, depth, longest["duration"] if len(run) > 1 else 0, longest["event"], len(run))
            )
    return boxes


def seven_digits(longest_ps: int) -> int:
    """A duration rounded to seven binary digits, halves upward, as it is sent."""
    unit = 1 << max(0, longest_ps.bit_length() - 7)
    return (longest_ps + unit // 2) // unit * unit


@settings(deadline=None, max_examples=150)
@given(traces(), st.integers(0, 420), st.integers(1, 500), st.integers(1, 300))
def test_boxes_are_the_longest_event_of_each_pixel_pair_and_hide_what_they_say(
    trace: Trace, begin: int, length: int, width: int
) -> None:
    events = brute_events(trace)
    payload = ask(trace, start_ps=begin, end_ps=begin + length, width_px=width)
    boxes = rows(payload, "boxes")
    pixel = max(1, -(-length // width))
    expected = brute_boxes(events, begin, begin + length, pixel)
    box_times = [
        (box["track"], box["depth"], box["longest_ps"], box["event"], box["n_merged"]) for box in boxes
    ]
    assert sorted(box_times) == sorted(
        (track, depth, seven_digits(longest), event, n_merged)
        for track, depth, longest, event, n_merged in expected
    )
    for box in boxes:
        event = events[box["event"]]
        assert box["name"] == event["name"]
        if box["n_merged"] == 1:
            assert (box["start_ps"], box["duration_ps"]) == (event["start"], event["duration"])
        else:
            assert (box["start_ps"] - begin) % pixel == 0
            assert box["duration_ps"] <= 2 * pixel
    overlapping = [event for event in events if event["end"] > begin and event["start"] < begin + length]
    assert payload.scalars["n_events_in_window"].value == len(overlapping)


@settings(deadline=None, max_examples=100)
@given(traces(), st.integers(0, 420), st.integers(1, 500), st.integers(0, 1), st.integers(0, 3))
def test_totals_are_the_clipped_sums(trace: Trace, begin: int, length: int, low: int, high: int) -> None:
    end = begin + length
    high = max(low, high)
    sums: dict[str, list[int]] = {}
    for event in brute_events(trace):
        if event["end"] > begin and event["start"] < end and low <= event["depth"] <= high:
            part = max(0, min(event["start"] + event["duration"], end) - max(event["start"], begin))
            sums.setdefault(event["name"], []).append(part)
    payload = ask(
        trace, question="groups", start_ps=begin, end_ps=end, depth_from=low, depth_to=high, of="recorded"
    )
    by_name = {row["group"]: row for row in rows(payload, "groups")}
    assert {
        name: (row["n"], row["total_ps"], row["min_ps"], row["max_ps"]) for name, row in by_name.items()
    } == {name: (len(parts), sum(parts), min(parts), max(parts)) for name, parts in sums.items()}
    assert all(0 <= row["self_ps"] <= row["total_ps"] for row in by_name.values())
    assert payload.scalars["n_events"].value == sum(map(len, sums.values()))


@settings(deadline=None, max_examples=60)
@given(traces(), st.integers(1, 60))
def test_the_minimap_is_the_covered_share(trace: Trace, width: int) -> None:
    payload = ask(trace, question="minimap", width_px=width)
    end = int(payload.scalars["trace_duration_ps"].value or 0)
    pixel = max(1, -(-end // width))
    assert payload.scalars["pixel_ps"].value == pixel
    outermost = [event for event in brute_events(trace) if event["depth"] == 0]
    share: dict[tuple[str, int], float] = {}
    for section, name in (("Host threads", "/host:CPU"), ("TPU:0", "/device:TPU:0")):
        lines = [
            i
            for i in range(len(trace.lines))
            if trace.plane_names[trace.lines["plane"][i]] == name and trace.lines["n_events"][i]
        ]
        for event in outermost:
            for place in range(width) if event["track"] in lines else ():
                overlap = min(event["start"] + event["duration"], (place + 1) * pixel) - max(
                    event["start"], place * pixel
                )
                if overlap > 0:
                    share[section, place] = share.get((section, place), 0.0) + overlap / (pixel * len(lines))
    busy = {(row["section"], row["pixel"]): row["busy_fraction"] for row in rows(payload, "density")}
    assert busy == pytest.approx(share)


STEPS = """
    python     [train  ][train  ][train  ]
    python       <f ><g>  <f >     <f >
    worker        <MatMul:MatMul>  <x>
"""


def stepped() -> Trace:
    return drawing(STEPS, {"train": [{"_r": 1, "step_num": 7 + i} for i in range(3)]}, start_ns=5_000)


def test_steps_of_a_host_come_from_its_annotations() -> None:
    steps = rows(ask(stepped()), "steps")
    assert [(step["step"], step["name"], step["host"]) for step in steps] == [
        (7 + i, f"train {7 + i}", "worker-0") for i in range(3)
    ]
    assert (
        rows(ask(stepped(), width_px=8), "steps") == []
    )  # three steps on eight pixels are no marks any more
    boxes = [box for box in rows(ask(stepped()), "boxes") if box["family"] == 8]
    assert [box["name"] for box in boxes] == ["train 7", "train 8", "train 9"]
    payload = ask(stepped(), question="slices", query="TRAIN 8")
    assert [match["name"] for match in rows(payload, "slices")] == ["train 8"]
    assert payload.scalars["n_matches"].value == 1


def test_hosts_stand_side_by_side_in_time() -> None:
    late = drawing("python  [late]", start_ns=9_000)
    payload = ask(stepped(), late)
    hosts = rows(payload, "hosts")
    assert [(host["host"], host["offset_ps"], host["is_aligned"]) for host in hosts] == [
        ("worker-0", 0, True),
        ("worker-1", 4_000_000, True),
    ]
    box = next(box for box in rows(payload, "boxes") if box["name"] == "late")
    assert (box["track"], box["event"]) == (LINES_PER_HOST, EVENTS_PER_HOST)
    own_start = int(late.events["start_ps"][0])
    assert box["start_ps"] == own_start + 4_000_000
    details = ask(stepped(), late, question="event", event=EVENTS_PER_HOST)
    assert details.scalars["start_ps"].value == box["start_ps"]
    # The same event has the same id when its host is alone, at its own time.
    alone = TOOL.run(session_of(stepped(), late), ["worker-1"], {})
    (box,) = rows(alone, "boxes")
    assert (box["event"], box["track"], box["start_ps"]) == (EVENTS_PER_HOST, LINES_PER_HOST, own_start)
    assert not payload.diagnostics


def test_a_clock_that_is_hours_away_is_not_believed() -> None:
    far = drawing("python  [far]", start_ns=10**18)
    payload = ask(stepped(), stepped(), far)
    assert [host["is_aligned"] for host in rows(payload, "hosts")] == [True, True, False]
    assert "worker-2" in payload.diagnostics[0].message
    assert payload.diagnostics[0].remedy


def test_of_many_hosts_the_first_sixteen_are_shown() -> None:
    payload = ask(*[drawing("python  [a]")] * 18)
    assert len(payload.hosts) == 16
    assert payload.diagnostics[0].message == "Only the first 16 of 18 hosts are shown."


def test_tracks_are_sorted_as_people_look_for_them() -> None:
    text = "\n".join(
        [f"{name}  [a]" for name in ("pool/10", "pool/2", "named", "main/5", "python")]
        + [
            "/device:GPU:1:",
            "Stream #9(Compute)  [a]",
            "/device:GPU:0:",
            "Stream #12(Compute) [a]",
            "Stream #7(MemcpyH2D) [a]",
        ]
        + ["/device:TPU:0 SparseCore 1:", "Sparse Core Ops [a]", "/device:TPU:0:"]
        + [
            f"{name}  [a]"
            for name in (
                "XLA Ops",
                "Source code",
                "Framework Ops",
                "Steps",
                "XLA Modules",
                "Framework Name Scope",
            )
        ]
        + ["/device:CUSTOM:MOSAIC:3:", "tile [a]", "/host:other:", "odd [a]"]
    )
    tracks = rows(ask(drawing(text)), "tracks")
    assert [track["order"] for track in tracks] == list(range(len(tracks)))
    assert [(track["section"], track["name"]) for track in tracks] == [
        ("GPU:0", "Stream #7(MemcpyH2D)"),
        ("GPU:0", "Stream #12(Compute)"),
        ("TPU:0", "Steps"),
        ("TPU:0", "XLA Modules"),
        ("TPU:0", "Framework Name Scope"),
        ("TPU:0", "Framework Ops"),
        ("TPU:0", "XLA Ops"),
        ("TPU:0", "XLA Overhead"),
        ("TPU:0", "Source code"),
        ("TPU:0 SparseCore 1", "Sparse Core Ops"),
        ("GPU:1", "Stream #9(Compute)"),
        ("CUSTOM:MOSAIC:3", "tile"),
        ("Host threads", "python"),
        ("Host threads", "main/5"),
        ("Host threads", "named"),
        ("Host threads", "pool/2"),
        ("Host threads", "pool/10"),
        ("/host:other", "odd"),
    ]
    assert {track["name"]: track["kind"] for track in tracks}["XLA Modules"] == "modules"


def test_details_tell_namesakes_neighbours_and_ancestors() -> None:
    trace = stepped()
    boxes = {(box["name"], box["start_ps"]): box for box in rows(ask(trace), "boxes")}
    first, second, third = sorted(
        (box for (name, _), box in boxes.items() if name == "f"), key=lambda box: box["start_ps"]
    )
    details = ask(trace, question="event", event=second["event"])
    about = {row["name"]: row["value"] for row in rows(details, "about")}
    assert about["step"] == "train 8"
    assert about["track"] == "python"
    assert [row["name"] for row in rows(details, "ancestors")] == ["train 8"]
    assert details.scalars["n_same_name"].value == 3
    assert details.scalars["same_total_ps"].value == sum(box["duration_ps"] for box in (first, second, third))
    assert sum(row["n"] for row in rows(details, "histogram")) == 3
    train = next(box for (name, _), box in boxes.items() if name == "train 7")
    end = train["start_ps"] + train["duration_ps"]
    inside = [
        box["duration_ps"] for (name, _), box in boxes.items() if name in "fg" and box["start_ps"] < end
    ]
    assert len(inside) == 2
    assert ask(trace, question="event", event=train["event"]).scalars["self_time_ps"].value == train[
        "duration_ps"
    ] - sum(inside)
    (neighbour,) = rows(ask(trace, question="neighbour", event=first["event"], direction="next"), "neighbour")
    assert (neighbour["name"], neighbour["depth"]) == ("g", 1)
    (back,) = rows(
        ask(trace, question="neighbour", event=neighbour["event"], direction="previous"), "neighbour"
    )
    assert back["event"] == first["event"]
    assert (
        rows(ask(trace, question="neighbour", event=train["event"], direction="previous"), "neighbour") == []
    )


def test_a_gpu_gets_lines_of_steps_scopes_and_operations() -> None:
    payload = ask(gpu())
    tracks = {track["name"]: track for track in rows(payload, "tracks") if track["section"] == "GPU:0"}
    assert list(tracks) == [
        "Steps",
        "Launch Stats",
        "Framework Name Scope",
        "Framework Ops",
        "XLA Ops",
        "Stream #1(Compute)",
    ]
    assert [track["is_derived"] for track in tracks.values()] == [True] * 5 + [False]
    boxes = rows(payload, "boxes")
    kernels = [box for box in boxes if box["track"] == tracks["Stream #1(Compute)"]["track"]]

    def drawn(track: str) -> list[tuple[str, int, int, int]]:
        track_boxes = [box for box in boxes if box["track"] == tracks[track]["track"]]
        return [
            (box["name"], box["depth"], box["start_ps"], box["start_ps"] + box["duration_ps"])
            for box in track_boxes
        ]

    first, second, third, fourth = [
        (box["start_ps"], box["start_ps"] + box["duration_ps"]) for box in kernels
    ]
    assert drawn("Steps") == [("train 1", 0, first[0], third[1]), ("train 2", 0, *fourth)]
    # Two kernels of one operation are one box, the step's end parts them from the next.
    assert drawn("Framework Ops") == [
        ("net/dense/MatMul:MatMul", 0, first[0], second[1]),
        ("net/out/Relu:Relu", 0, *third),
        ("net/dense/MatMul:MatMul", 0, *fourth),
    ]
    assert drawn("Framework Name Scope") == [
        ("net", 0, first[0], third[1]),
        ("net", 0, *fourth),
        ("dense", 1, first[0], second[1]),
        ("out", 1, *third),
        ("dense", 1, *fourth),
    ]
    assert drawn("XLA Ops") == [
        ("call.1", 0, first[0], second[1]),
        ("call.1", 0, *fourth),
        ("fusion.2", 1, first[0], second[1]),
        ("fusion.2", 1, *fourth),
    ]


def test_a_derived_event_can_be_searched_selected_and_left() -> None:
    matches = rows(ask(gpu(), question="slices", query="dense/matmul"), "slices")
    assert [match["name"] for match in matches] == ["net/dense/MatMul:MatMul"] * 2
    details = ask(gpu(), question="event", event=matches[0]["event"])
    about = {row["name"]: row["value"] for row in rows(details, "about")}
    assert about["derived_from"] == "k1"
    assert about["framework_op"] == "net/dense/MatMul:MatMul"
    assert about["section"] == "GPU:0"
    assert details.scalars["n_same_name"].value == 2
    (neighbour,) = rows(
        ask(gpu(), question="neighbour", event=matches[0]["event"], direction="next"), "neighbour"
    )
    assert neighbour["name"] == "net/out/Relu:Relu"


def test_flows_lead_from_launches_to_kernels() -> None:
    payload = ask(gpu(), flows=True)
    arrows = rows(payload, "flows")
    assert payload.scalars["n_flows"].value == len(arrows) == 3
    assert {arrow["kind"] for arrow in arrows} == {"kernel launch"}
    assert all(arrow["from_ps"] <= arrow["to_ps"] for arrow in arrows)
    launch = rows(ask(gpu(), question="slices", query="launch"), "slices")[0]["event"]
    (out,) = rows(ask(gpu(), question="event", event=launch), "flows")
    assert (out["direction"], out["name"], out["kind"]) == ("out", "k1", "kernel launch")
    (incoming,) = rows(ask(gpu(), question="event", event=out["event"]), "flows")
    assert (incoming["direction"], incoming["event"]) == ("in", launch)
    assert rows(ask(gpu(), flows=True, tracks="0"), "flows") == []


def test_arguments_are_searched_when_asked() -> None:
    trace = drawing("main  [a][b]", {"b": {"tf_op": "deep/Inside"}})
    assert ask(trace, question="slices", query="inside").scalars["n_matches"].value == 0
    payload = ask(trace, question="slices", query="any:inside")
    assert [match["name"] for match in rows(payload, "slices")] == ["b"]
    assert payload.scalars["n_matches"].value == 1


def test_totals_leave_derived_lines_out_unless_asked_for() -> None:
    assert {row["group"] for row in rows(ask(gpu(), question="groups"), "groups")} == {
        "train",
        "launch",
        "k1",
        "k2",
    }
    track = next(track["track"] for track in rows(ask(gpu()), "tracks") if track["name"] == "Framework Ops")
    totals = rows(ask(gpu(), question="groups", tracks=str(track)), "groups")
    assert {row["group"]: row["n"] for row in totals} == {
        "net/dense/MatMul:MatMul": 2,
        "net/out/Relu:Relu": 1,
    }


def test_an_empty_trace_answers_everything() -> None:
    empty = drawing("")
    for question in ("", "groups", "minimap"):
        assert ask(empty, question=question).tables
    assert ask(empty, flows=True).tables
    assert ask(empty, question="slices", query="x").tables


@pytest.mark.parametrize("log", ["jax_train", "keras_slow_input"])
def test_every_tables_times_lie_in_a_real_trace(log: str) -> None:
    session = Session(str(demo_runs()[log]), cache=False)
    payload = TOOL.run(session, None, {"flows": True})
    end = payload.scalars["trace_duration_ps"].value or 0
    boxes = rows(payload, "boxes")
    assert all(0 <= box["start_ps"] <= end for box in boxes)
    assert len({box["family"] for box in boxes}) >= 3
    assert payload.scalars["n_flows"].value
    events = session.trace(session.hosts[0]).n_events
    assert sum(track["n_events"] for track in rows(payload, "tracks") if not track["is_derived"]) == events
    assert sum(box["n_merged"] for box in boxes) == sum(
        track["n_events"] for track in rows(payload, "tracks")
    )


def test_an_operation_of_a_tpu_tells_the_program_around_it() -> None:
    trace = drawing("/device:TPU:0:\nXLA Modules  [f   ]  [g ]\nXLA Ops       [a]  [b][c]")
    boxes = {box["name"]: box["event"] for box in rows(ask(trace), "boxes")}
    modules = {}
    for name in "abc":
        about = {
            row["name"]: row["value"]
            for row in rows(ask(trace, question="event", event=boxes[name]), "about")
        }
        modules[name] = about.get("hlo_module", "")
    assert modules == {"a": "f", "b": "", "c": "g"}


def test_operands_of_an_operation_of_a_recorded_run() -> None:
    """The answer names the instructions that its HLO text reads."""
    session = Session(str(demo_runs()["jax_train"]), cache=False)
    found = TOOL.run(session, None, {"query": "name=dot.1"}, "slices")
    event = rows(found, "slices")[0]
    payload = TOOL.run(session, None, {"event": str(event["event"])}, "dependencies")
    arrows = rows(payload, "dependencies")
    # %dot.1 = … dot(… %broadcast_maximum_fusion, … %compare_select_fusion.1)
    read = {arrow["name"] for arrow in arrows if arrow["direction"] == "in"}
    assert read == {"broadcast_maximum_fusion", "compare_select_fusion.1"}
    assert {arrow["kind"] for arrow in arrows} == {"HLO operand"}
    for arrow in arrows:
        is_before = arrow["start_ps"] <= event["start_ps"]
        assert is_before == (arrow["direction"] == "in")
    values = {name: scalar.value for name, scalar in payload.scalars.items()}
    assert values == {"n_producers": 2, "n_consumers": len(arrows) - 2}
    assert payload.tables["dependencies"].note == ""


def test_events_that_are_no_operation_have_no_operands() -> None:
    assert not rows(ask(drawing("main [x ]"), question="dependencies", event=0), "dependencies")
