"""Names, families and steps on the timeline; the program around an event."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tpuprof.analysis.steps.steps import steps
from tb_tpuprof.analysis.timeline.modules import module_around
from tb_tpuprof.analysis.timeline.names import (
    Family,
    color_key,
    families,
    first_more,
    names_of,
    step_labels,
)
from tb_tpuprof.analysis.timeline.steps import number_in_name, step_marks
from tb_tpuprof.analysis.timeline.timeline import durations_of, event_names, starts_of, timeline
from tb_tpuprof.analysis.timeline.totals import same_name
from tests.builders import PS, DrawnEvent, DrawnPlane, build, drawing
from tests.builders import event as drawn_event


def test_steps_have_their_number_in_their_name() -> None:
    trace = drawing(
        "main  [train ][load  ][train ][7     ][train ][train ]",
        {
            "train": [{"step_num": 12}, {"step_num": 13}, {}, {"step_num": 12}],
            "7": {"step_num": 7},
        },
    )
    event, label, texts = step_labels(trace)
    assert event.tolist() == [0, 2, 3, 5]
    assert [texts[i] for i in label.tolist()] == ["train 12", "train 13", "7", "train 12"]
    assert len(texts) == 3
    names = names_of(trace, ("more", "most"))
    events = np.arange(6)
    found = names.of_events(events, trace.events["metadata"])
    shown = ["train 12", "load", "train 13", "7", "train", "train 12"]
    assert names.texts(found.tolist()) == shown
    assert names.texts(found.tolist()) == [names.text(i) for i in found.tolist()] == shown
    backwards = names.of_events(events[::-1], trace.events["metadata"][::-1])
    assert [names.text(i) for i in backwards.tolist()] == shown[::-1]
    first = first_more(names, ("more", "most"))
    assert (names.text(first), names.text(first + 1), names.n_names) == ("more", "most", first + 2)


def test_a_trace_without_steps() -> None:
    event, label, texts = step_labels(drawing("main  [a ]"))
    assert (len(event), len(label), texts) == (0, 0, ())


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("train 131", 131),
        ("17", 17),
        ("a 0", 0),
        ("train", -1),
        ("a 1b", -1),
        ("", -1),
        ("a ²", -1),
        ("s " + "9" * 15, 999_999_999_999_999),
        ("s " + "9" * 16, -1),
        ("3 x", -1),
    ],
)
def test_the_number_in_a_step_s_name(name: str, number: int) -> None:
    assert number_in_name(name) == number


def test_families_by_plane_and_name() -> None:
    device = {
        "s": [
            DrawnEvent(name, i, 1)
            for i, name in enumerate(("gemm", "ncclAllReduce", "MemcpyD2H", "my copy", "send", "sender"))
        ]
    }
    host = [
        "$a.py:3 f",
        "x.py:3 g",
        "Iterator::Root",
        "tf_data thing",
        "memcpy",
        "other",
        "all-reduce",
        "dot",
        "copy.2",
        "all-gather.1",
    ]
    hlo = {"dot", "copy.2", "all-gather.1"}
    events = [DrawnEvent(n, i, 1, {"hlo_op": n} if n in hlo else {}) for i, n in enumerate(host)]
    elsewhere = [
        DrawnEvent(name, i, 1) for i, name in enumerate(("$a.py:3 f", "Iterator::Root", "memcpy", "x"))
    ]
    trace = build(
        [
            DrawnPlane("/host:CPU", {"main": events}),
            *(DrawnPlane(f"/device:{kind}:0", device) for kind in ("GPU", "TPU", "XPU")),
            DrawnPlane("#Chip0", {"main": elsewhere}),
        ]
    )
    found = [
        (int(plane), trace.strings[name], Family(int(family)))
        for plane, name, family in zip(
            trace.metadata["plane"].tolist(), trace.event_names.tolist(), families(trace), strict=True
        )
    ]
    F = Family
    expected_host = [
        F.PYTHON,
        F.PYTHON,
        F.INPUT,
        F.INPUT,
        F.MEMCPY,
        F.RUNTIME,
        F.RUNTIME,
        F.XLA_OP,
        F.MEMCPY,
        F.COLLECTIVE,
    ]
    assert [family for plane, _, family in found if plane == 0] == expected_host
    for plane, plain in ((1, F.KERNEL), (2, F.XLA_OP), (3, F.KERNEL)):
        families_there = [family for number, _, family in found if number == plane]
        assert families_there == [plain, F.COLLECTIVE, F.MEMCPY, plain, F.COLLECTIVE, plain]
    assert [family for plane, _, family in found if plane == 4] == [F.PYTHON, F.INPUT, F.OTHER, F.OTHER]


def test_families_have_the_numbers_that_the_page_colors() -> None:
    """0 other, 1 Python, 2 input, 3 XLA operation, 4 kernel, 5 copy, 6 collective, 7 runtime, 8 step, 9
    program.
    """
    words = "other python input xla_op kernel memcpy collective runtime step module"
    assert [(family.name.lower(), int(family)) for family in Family] == list(
        zip(words.split(), range(10), strict=True)
    )


def test_colors_are_the_low_8_bits_of_the_crc_of_a_name() -> None:
    """CRC-32 of "123456789" is 0xCBF43926 in every table of checksums; of nothing it is 0."""
    assert color_key("123456789") == 0x26
    assert color_key("") == 0
    assert 0 <= color_key("\ud800") < 256


def test_steps_of_a_host_are_its_root_events_with_a_number_in_time_order() -> None:
    """Else all events with one."""
    text = """
        b     [train  ]     [eval   ]
        a           [train  ]
        a             [in ]
    """
    numbers = {
        "train": [{"step_num": 4, "_r": 1}, {"step_num": 5, "_r": 1}],
        "eval": {"step_num": 9, "_r": 0},
    }
    marks = step_marks(drawing(text, {**numbers, "in": {"step_num": 5}}))
    assert marks.number.tolist() == [4, 5]
    assert np.diff(marks.start_ps).tolist() == [6 * PS]
    assert marks.duration_ps.tolist() == [9 * PS, 9 * PS]
    every = {
        "train": [{"step_num": 4}, {"step_num": 5}],
        "eval": {"step_num": 9, "_r": 0},
        "in": {"step_num": 6},
    }
    trace = drawing(text, every)
    marks = step_marks(trace)
    assert marks.number.tolist() == [4, 5, 6, 9]
    assert marks.name == ("train 4", "train 5", "in 6", "eval 9")
    assert marks.duration_ps.tolist() == [9 * PS, 9 * PS, 5 * PS, 9 * PS]


def test_steps_of_a_device_are_those_of_its_line() -> None:
    planes = [
        DrawnPlane("/host:CPU", {"main": [DrawnEvent("train", 0, 50, {"step_num": 1, "_r": 1})]}),
        DrawnPlane(
            "/device:TPU:1",
            {"Steps": [DrawnEvent("7", 5, 10), DrawnEvent("8", 20, 11), DrawnEvent("x", 40, 12)]},
        ),
        DrawnPlane("/device:TPU:0", {"XLA Ops": [DrawnEvent("dot", 1, 1)]}),
    ]
    marks = step_marks(build(planes))
    assert (marks.number.tolist(), marks.start_ps.tolist(), marks.duration_ps.tolist()) == (
        [7, 8, -1],
        [5, 20, 40],
        [10, 11, 12],
    )


def test_steps_that_a_gpus_host_marks_last_as_long_as_in_the_overview() -> None:
    """From the mark's start, or the end of the work before, to the end of the step's own work: kernels alone
    would be 15, 30 and 45 µs.
    """
    spans = {4: (0, 30, 10, 25), 5: (35, 60, 40, 70), 6: (60, 100, 75, 120)}  # mark, kernel
    main, stream = [], []
    for number, (start, end, first, last) in spans.items():
        main.append(drawn_event("train", start, end - start, step_num=number, _r=1))
        main.append(drawn_event("cuLaunchKernel", start + 1, 1, correlation_id=number))
        stream.append(drawn_event("k", first, last - first, correlation_id=number))
    trace = build(
        [DrawnPlane("/host:CPU", {"main": main}), DrawnPlane("/device:GPU:0", {"Stream #1": stream})]
    )
    marks = step_marks(trace)
    assert (marks.number.tolist(), marks.name) == ([4, 5, 6], ("train 4", "train 5", "train 6"))
    assert (marks.start_ps // PS).tolist() == [0, 35, 70]
    assert (marks.duration_ps // PS).tolist() == [30, 35, 50]
    assert (steps(trace).start_ps.tolist(), steps(trace).duration_ps.tolist()) == (
        marks.start_ps.tolist(),
        marks.duration_ps.tolist(),
    )


def test_steps_on_the_first_line_of_a_file() -> None:
    plane = DrawnPlane(
        "/device:TPU:0", {"Steps": [DrawnEvent("7", 5, 10)], "XLA Ops": [DrawnEvent("dot", 6, 1)]}
    )
    assert step_marks(build([plane])).number.tolist() == [7]


def test_the_program_that_runs_when_an_event_begins() -> None:
    """By the plane's own line of programs; a program of no length counts for the moment that it begins."""
    modules = [DrawnEvent("jit_f(1)", 10, 10), DrawnEvent("jit_g(2)", 30, 0), DrawnEvent("jit_h(3)", 40, 5)]
    starts = (9, 10, 19, 20, 30, 31, 44, 45)
    ops = [DrawnEvent(f"op{i}", start, 3) for i, start in enumerate(starts)]
    planes = [
        DrawnPlane("/device:TPU:0", {"XLA Modules": [DrawnEvent("other", 0, 99)], "XLA Ops": ops}),
        DrawnPlane("/device:TPU:1", {"XLA Ops": ops, "XLA Modules": modules}),
        DrawnPlane("/device:TPU:2", {"XLA Ops": ops}),
    ]
    trace = build(planes)
    first = [int(trace.line_offsets[line]) for line in (1, 2, 4)]
    assert [module_around(trace, first[1] + i) for i in range(8)] == [
        "",
        "jit_f(1)",
        "jit_f(1)",
        "",
        "jit_g(2)",
        "",
        "jit_h(3)",
        "",
    ]
    assert module_around(trace, first[0]) == "other"
    assert module_around(trace, first[2]) == ""


def test_starts_and_durations_of_both_layers() -> None:
    """A GPU's kernels have derived lines, numbered behind the file's own events."""
    stats = {"hlo_op": "dot.1", "program_id": 1, "hlo_module": "jit_f"}
    kernels = [
        DrawnEvent("k", 10, 5, stats),
        DrawnEvent("k", 15, 7, stats),
        DrawnEvent("k", 99_000_000, 7, stats),
    ]
    trace = build([DrawnPlane("/device:GPU:0", {"Stream #1": kernels})])
    drawn = timeline(trace)
    assert drawn.n_events == 3 + drawn.derived.n_events > 3
    events = np.array([drawn.n_events - 1, 0, 3, 2])
    last, first = drawn.derived.n_events - 1, 0
    assert starts_of(drawn, events).tolist() == [
        drawn.derived.start_ps[last],
        10,
        drawn.derived.start_ps[first],
        99_000_000,
    ]
    assert durations_of(drawn, events).tolist() == [
        drawn.derived.duration_ps[last],
        5,
        drawn.derived.duration_ps[first],
        7,
    ]
    same = same_name(trace, drawn, 3)
    assert (same.n, same.total_ps, same.min_ps, same.max_ps) == (2, 12 + 7, 7, 12)
    assert int(same.counts.sum()) == 2
    for event in range(drawn.n_events):
        layer, row, position = drawn.row_of(event)
        local = event - layer.first_event
        assert layer.order[position] == local
        assert layer.row_line[row] + layer.first_line == drawn.line_of(event)
        assert drawn.layer_of(event) is layer
        source = drawn.file_event(event)
        assert source == event if event < 3 else trace.events["start_ps"][source] == layer.start_ps[local]
    lines = [line.name for line in drawn.derived_events.lines]
    names = event_names(trace, drawn, drawn.derived, np.arange(drawn.derived.n_events))
    by_line = dict.fromkeys(lines, "")
    for event, name in enumerate(names.tolist()):
        by_line[lines[drawn.line_of(3 + event) - drawn.derived.first_line]] += drawn.names.text(name) + " "
    assert by_line == {"XLA Ops": "dot.1 dot.1 "}
