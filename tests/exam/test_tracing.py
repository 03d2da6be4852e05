"""Taking Python frames out of a profile, and comparing what is said with and without them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.exam import __main__ as exam
from tests.exam.score import Answer
from tests.exam.test_score import NOT_RECORDED, answer, finding, truth
from tests.exam.tracing import (
    Pair,
    compared,
    first_finding,
    pair,
    report,
    specificity,
    unseen,
    without_frames,
)
from tests.plain_protobuf import plain_fields
from tests.xspace_files import write_drawing

N_STEPS = 5
# A step of each: 30 ms of which 15 are the cause's; `u` is mine.py:40 update, `b` gen.py:15 batches, `v`
# shop.py:7 report.
DRAWN = {
    "python": ("main  [train                       ]", "main   [u            ][d          ]"),
    "input": (
        "main  [train                       ]",
        "main   [n            ][d          ]",
        "main    [b          ]",
    ),
    "compilation": (
        "main  [train                       ]",
        "main   [u                         ]",
        "main   [g            ][d         ]",
        "main    [c          ]",
    ),
    "synchronization": (
        "main  [train                       ]",
        "main   [v            ][d          ]",
        "main    [a          ]",
    ),
    "": (f"main  [train{' ' * 90}]", f"main  [u{' ' * 94}]", f"main  [d{' ' * 92}]"),
}
PLACES = {
    "python": ("update", "mine.py", 40),
    "input": ("batches", "gen.py", 15),
    "compilation": ("grow", "", 0),
    "synchronization": ("report", "shop.py", 7),
}
UNSEEN_WITHOUT = {
    "python": "python loop",
    "input": "generator sleeps",
}  # mechanisms that only the Python tracer shows


def drawn(cause: str) -> str:
    """The steps of a cause one after the other."""
    rows = DRAWN[cause]
    width = max(map(len, rows)) - 6
    return "\n".join(row[:6] + row[6:].ljust(width) * N_STEPS for row in rows)


def job(folder: Path, cause: str) -> dict[str, Any]:
    """A job whose profile is drawn, and its truth."""
    run_dir = folder / "plugins" / "profile" / "2026_01_01"
    run_dir.mkdir(parents=True)
    write_drawing(run_dir / "n1.xplane.pb", drawn(cause))
    name, file, line = PLACES.get(cause, ("", "", 0))
    places = [{"name": name, "file": file, "line": line, "last_line": line}] if file else []
    culprits = [{"function": name, "names": [name], "places": places, "visible": True}] if cause else []
    mechanisms = [UNSEEN_WITHOUT.get(cause, "")] if cause else []
    found = truth(
        cause,
        culprits=culprits,
        mechanisms=mechanisms,
        annotated=True,
        hidden=[False] * len(culprits),
        step_s=0.03,
    )
    (folder / "truth.json").write_text(json.dumps(found), "utf-8")
    return found


def names(data: bytes) -> set[bytes]:
    """The events' names of a file, read without any of our code."""
    found: set[bytes] = set()
    for plane in (value for number, value in plain_fields(data) if number == 1):
        known: dict[int, bytes] = {}
        for entry in (dict(plain_fields(value)) for number, value in plain_fields(plane) if number == 4):
            known[entry[1]] = dict(plain_fields(entry[2])).get(2, b"")
        for line in (value for number, value in plain_fields(plane) if number == 3):
            found |= {
                known[dict(plain_fields(value))[1]] for number, value in plain_fields(line) if number == 4
            }
        assert not [name for name in known.values() if name.startswith(b"$") and name not in found]
    return found


def test_frames_are_taken_out_and_nothing_else(tmp_path: Path) -> None:
    job(tmp_path, "input")
    (path,) = tmp_path.rglob("*.xplane.pb")
    data, n_dropped = without_frames(path.read_bytes())
    assert n_dropped == 2 * N_STEPS
    assert names(path.read_bytes()) == {b"train", b"$builtins next", b"$gen.py:15 batches", b"dot:Dot"}
    assert names(data) == {b"train", b"dot:Dot"}
    assert without_frames(data) == (data, 0)


def test_what_is_no_function_of_the_host_stays() -> None:
    """A device's operation may be called anything; what we have no field for is kept."""
    space = xspace_class()()
    plane = space.planes.add(id=7, name=b"/device:GPU:0")
    plane.event_metadata.add(key=1).value.name = b"$weird"
    plane.lines.add(id=1).events.add(metadata_id=1, offset_ps=5)
    data = space.SerializeToString() + b"\xfa\x06\x03abc"  # field 111
    assert without_frames(data) == (data, 0)


@pytest.mark.parametrize("cause", DRAWN)
def test_our_answers_do_not_become_worse(cause: str, tmp_path: Path) -> None:
    found = compared(job(tmp_path, cause), tmp_path)
    assert found is not None
    assert found.worse == (), (found.none_text, found.frames_text)
    assert found.frames.is_right, found.frames_text
    assert found.frames.is_culprit_right or not cause, found.frames_text
    assert found.none.is_right, found.none_text


def test_a_folder_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "j001").mkdir()
    job(tmp_path / "j001", "python")
    monkeypatch.setattr("sys.argv", ["exam", "tracing", str(tmp_path)])
    assert exam.main() == 0
    assert (
        "Jobs with Python frames: 1. Right with them: 1, without them: 1. Worse with them: 0."
        in capsys.readouterr().out
    )
    monkeypatch.setattr(
        "tests.exam.tracing.diagnosed",
        lambda run_dir: answer(finding("dispatch" if "j001" in str(run_dir) else "python", culprit={})),
    )
    assert exam.main() == 1
    assert "j001: worse cause" in capsys.readouterr().out


ASKS = finding("not_recorded", **NOT_RECORDED)
NOBODY = finding(culprit={"name": ""})
NAME_ONLY = finding(culprit={"name": "hop"})
WRONG = finding(culprit={"name": "tick", "file": "reed.py", "line": 3})


@pytest.mark.parametrize(
    ("none", "frames", "worse"),
    [
        (finding(), finding(), ()),
        (finding("input"), finding(), ()),
        (finding(), finding("input"), ("cause",)),
        (ASKS, finding(), ()),
        (ASKS, ASKS, ()),
        (ASKS, finding("input"), ("cause",)),
        (finding("input"), ASKS, ()),
        (finding("input"), finding("dispatch"), ()),
        (finding(), NAME_ONLY, ("culprit",)),
        (NAME_ONLY, finding(), ()),
        (NAME_ONLY, NOBODY, ("culprit",)),
        (NOBODY, WRONG, ("culprit",)),
        (WRONG, NOBODY, ()),
        (WRONG, WRONG, ()),
        (None, finding(), ()),
        (finding(), None, ("cause",)),
        (ASKS, None, ("cause",)),
    ],
)
def test_worse(none: dict[str, Any] | None, frames: dict[str, Any] | None, worse: tuple[str, ...]) -> None:
    answers = [answer(*([one] if one else [])) for one in (frames, none)]
    assert pair(truth(), answers[0], truth(), answers[1]).worse == worse


def test_an_alarm_is_worse_than_none_and_host_and_order_count() -> None:
    healthy = truth("", target=[0.0, 0.0], culprits=[])
    assert pair(healthy, answer(finding()), healthy, answer()).worse == ("cause",)
    assert pair(healthy, answer(), healthy, answer(finding())).worse == ()
    assert pair(healthy, answer(finding()), healthy, answer(ASKS)).worse == ()
    two = truth(
        second="input",
        accepted=[["python"], ["input"]],
        hidden=[False] * 2,
        host="n1",
        culprits=truth()["culprits"] * 2,
    )
    right, wrong = (
        answer(finding(host="n1"), finding("input")),
        answer(finding(host="n2"), finding("dispatch")),
    )
    assert pair(two, wrong, two, right).worse == ("host", "order")
    assert pair(two, right, two, wrong).worse == ()


def test_a_culprit_counts_only_where_it_can_be_seen() -> None:
    invisible = truth(culprits=[{**truth()["culprits"][0], "visible": False}])
    assert [specificity(truth(), answer(one)) for one in (finding(), NAME_ONLY, NOBODY, WRONG)] == [
        3,
        1,
        0,
        -1,
    ]
    assert [specificity(invisible, answer(one)) for one in (finding(), NAME_ONLY, NOBODY, WRONG)] == [
        0,
        0,
        0,
        0,
    ]
    assert specificity(truth(), answer()) == 0


def test_what_a_profile_without_frames_can_show() -> None:
    def hidden(mechanism: str, profile: bytes = b"", is_annotated: bool = True) -> bool:
        (found,) = unseen(truth(mechanisms=[mechanism], annotated=is_annotated), profile)["hidden"]
        return bool(found)

    seen = truth(mechanisms=["python loop"], annotated=True)
    assert unseen(seen, b"..hop..")["culprits"][0]["visible"] is True
    assert unseen(seen, b"....")["culprits"][0]["visible"] is False
    assert hidden("python loop")
    assert not hidden("small operations one by one")
    assert [hidden("item in a function", is_annotated=one) for one in (True, False)] == [False, True]
    assert [hidden("tf.data map", profile) for profile in (b"Iterator::Root", b"")] == [False, True]
    assert seen["hidden"] == [False]


def test_report() -> None:
    def made(**more: Any) -> Pair:
        return pair(truth(**more), answer(finding("input")), truth(**more), answer(ASKS))

    assert report(
        [made(), made(share=0.01), pair(truth(), answer(finding()), truth(), answer(ASKS))]
    ).splitlines() == [
        "Jobs with Python frames: 2. Right with them: 1, without them: 0. Worse with them: 1.",
        "- j001: worse cause",
        "  - without: not_recorded (30%)",
        "  - with: input by `hop reed.py 10` (30%)",
    ]
    calm: Answer = answer()
    assert first_finding(calm) == "nothing (good)"
