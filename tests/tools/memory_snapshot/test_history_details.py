"""The page of an allocator's history at limits: three unlike devices, every sentence, lists that are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.memory_snapshot import history_rows
from tb_tpuprof.tools.memory_snapshot.history import History, history_of
from tb_tpuprof.tools.payload import Table
from tb_tpuprof.tools.spec import Number
from tb_tpuprof.trace.heap_history import ALLOC, COMPLETED, GROW, OOM, DeviceHistory, Recording
from tb_tpuprof.trace.stacks import stacks_of
from tests.analysis.memory.test_heap_history_details import Entry, history
from tests.payload_columns import cells

US = 1_000_000
# Stack 0 has no frames; the others one each.
STACKS = stacks_of([[], *([i] for i in range(9))], [(f"f{i}", "m.py", i) for i in range(1, 10)])


def device(
    name: str,
    entries: Sequence[Entry],
    survivors: Sequence[tuple[int, int]] = (),
    reserved: int = 0,
    stack: Sequence[int] | None = None,
) -> DeviceHistory:
    """A device's history with times in µs."""
    scaled = [(at * US, action, address, size) for at, action, address, size in entries]
    return replace(history(scaled, survivors, reserved, 0, stack), device=name)


def shown(*devices: DeviceHistory, n_skipped: int = 0, **params: object) -> History:
    return history_of(Recording(devices, STACKS, n_skipped), params)


def rows(table: Table) -> list[tuple[object, ...]]:
    return list(zip(*(cells(column) for column in table.columns), strict=True))


def notes(found: History) -> dict[str, tuple[float | None, str]]:
    return {
        name: (float(one.value or 0), one.note) if isinstance(one, Number) else (one, "")
        for name, one in found.numbers.items()
    }


# Peak 70 B after 20 µs, of 100 B held; 40 B stay.
ZERO = device(
    "GPU 0",
    [(0, GROW, 1, 60), (10, ALLOC, 1, 40), (15, GROW, 2, 40), (20, ALLOC, 2, 30), (30, COMPLETED, 2, 30)],
    [(1, 40)],
    100,
    [0, 1, 0, 2, 0],
)
# Peak 90 B, all that is held.
ONE = device("GPU 1", [(5, GROW, 1, 90), (6, ALLOC, 1, 90)], [(1, 90)], 90, [0, 3])
# Peak 10 B; two failures.
TWO = device(
    "GPU 2",
    [(1, GROW, 1, 16), (2, ALLOC, 1, 10), (3, OOM, 4, 20), (8, OOM, 5, 30)],
    [(1, 10)],
    16,
    [0, 4, 5, 0],
)


def test_numbers_of_the_chosen_device_and_of_all() -> None:
    found = notes(shown(ZERO, ONE, TWO, device="GPU 0"))
    assert found == {
        "peak_bytes": (70, "of GPU 0, as requested, 20.0 µs into the history"),
        "peak_ps": (20 * US, ""),
        "reserved_peak_bytes": (100, "of GPU 0, 60.0% of it not in use then"),
        "kept_bytes": (40, "of GPU 0"),
        "n_failures": (2, "on all devices"),
        "n_history_events": (11, ""),
        "history_ps": (30 * US, ""),
        "start_ps": (0, ""),
        "end_ps": (30 * US, ""),
        "at_ps": (20 * US, "at the peak"),
        "device_row": (1, ""),
    }
    alone = notes(shown(ZERO))
    assert [alone[name] for name in ("peak_bytes", "reserved_peak_bytes", "kept_bytes", "n_failures")] == [
        (70, "as requested, 20.0 µs into the history"),
        (100, "60.0% of it not in use then"),
        (40, ""),
        (0, ""),
    ]
    assert alone["device_row"] == (0, "")


def test_devices_are_ranked_by_their_peaks_and_the_one_that_failed_is_chosen() -> None:
    found = shown(ZERO, ONE, TWO)
    assert notes(found)["device_row"] == (2, "")
    table = found.tables["devices"]
    assert rows(table) == [
        ("GPU 1", 90, 6 * US, 90, 1.0, 1, 90, 0),
        ("GPU 0", 70, 20 * US, 100, 0.6, 2, 40, 0),
        ("GPU 2", 10, 8 * US, 16, 1.0, 1, 10, 2),
    ]
    assert notes(shown(ZERO, ONE))["device_row"] == (0, "")


def test_what_is_not_in_use_of_what_is_held_needs_both() -> None:
    """More in use than held contradicts itself; where nothing is held there is no share."""
    more = device("GPU 0", [(0, ALLOC, 1, 40), (1, GROW, 1, 30)], [(1, 40)], 30)
    nothing = device("GPU 1", [(0, ALLOC, 1, 20)], [(1, 20)], 0)
    equal = device("GPU 2", [(0, ALLOC, 1, 10), (1, GROW, 1, 10)], [(1, 10)], 10)
    for one, note in ((more, ""), (nothing, ""), (equal, "0% of it not in use then")):
        assert notes(shown(one))["reserved_peak_bytes"][1] == note
    shares = [row[4] for row in rows(shown(more, nothing, equal).tables["devices"])]
    assert shares == pytest.approx([np.nan, np.nan, 0.0], nan_ok=True)


def test_two_devices_are_told_apart_and_all_failures_counted() -> None:
    found = notes(shown(ZERO, ONE, device="GPU 0"))
    assert found["peak_bytes"] == (70, "of GPU 0, as requested, 20.0 µs into the history")
    assert found["n_failures"] == (0, "on all devices")
    assert notes(shown(TWO, ZERO, replace(TWO, device="GPU 3")))["n_failures"] == (4, "on all devices")


def test_a_device_that_only_failed_holds_nothing() -> None:
    nothing = device("GPU 0", [(0, OOM, 1, 5)], stack=[1])
    assert notes(shown(nothing))["reserved_peak_bytes"] == (0, "")
    (failure,) = rows(shown(nothing).tables["failures"])
    assert failure[1:] == ("f1 m.py:1", 5, 1, 0, 0, 0, "(no stack recorded)", 0)
    least = device("GPU 0", [(0, ALLOC, 1, 1)], [(1, 1)], 1)
    assert notes(shown(least))["reserved_peak_bytes"] == (1, "0% of it not in use then")
    empty = history_of(Recording((), STACKS, 1), {})
    assert (empty.leak, empty.tables, empty.failure) == ("", {}, "")


@pytest.mark.parametrize(("n", "is_cut"), [(3200, False), (3201, True)])
def test_the_page_is_800_pixels_wide_unless_it_says_so(n: int, is_cut: bool) -> None:
    """Up to four events per pixel are all drawn."""
    many = device("GPU 0", [(i, ALLOC, i + 1, 1) for i in range(n)], [], 10**6, [1] * n)
    assert ("drawn" in shown(many).tables["timeline"].note) is is_cut


def failed(requested: int, *, in_use: int = 40, by: int = 1, of: int = 2) -> str:
    """30 B more are held than in use."""
    entries = [(0, GROW, 1, in_use + 30), (10, ALLOC, 1, in_use), (20, OOM, 7, requested)]
    found = shown(device("GPU 0", entries, [(1, in_use)], in_use + 30, [0, of, by]))
    return found.failure


def test_what_failed() -> None:
    start = "GPU 0 ran out of memory: `f1 m.py:1` requested"
    holder = "(100% of it was allocated at `f2 m.py:2`) and the device had 7 B left"
    use = "Use a smaller batch, activation checkpointing (`torch.utils.checkpoint`), or lower precision."
    assert failed(31) == f"{start} 31 B while 40 B was in use {holder}. {use}"
    assert failed(0) == f"{start} 0 B while 40 B was in use {holder}. {use}"
    assert failed(30) == (
        f"{start} 30 B while 40 B was in use {holder}. 30 B more was held but not in use, in pieces that "
        "are too small or of another pool: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` reduces "
        "fragmentation."
    )
    assert "(100% of it was allocated at `f2 m.py:2`)" in failed(99, in_use=1)
    assert "reduces fragmentation" in failed(1)
    assert failed(31, by=0).startswith("GPU 0 ran out of memory: an allocation needed 31 B while")
    assert "(100% of it has no recorded stack)" in failed(31, of=0)
    assert failed(31, in_use=0) == f"{start} 31 B while 0 B was in use and the device had 7 B left. {use}"
    assert shown(ZERO).failure == ""


def test_the_last_failure_counts() -> None:
    assert shown(TWO).failure.startswith("GPU 2 ran out of memory: an allocation needed 30 B while 10 B was")


@pytest.mark.parametrize(("n", "named"), [(1, 1), (3, 3), (20, 20), (21, 20)])
def test_failures_elsewhere(n: int, named: int) -> None:
    others = [replace(TWO, device=f"GPU {i + 10}") for i in range(n)]
    (first, *_) = shown(TWO, *others, ZERO, device="GPU 2").details
    names = ", ".join(f"GPU {i + 10}" for i in range(named))
    assert first == f"{names} also ran out of memory."
    with pytest.raises(BadParameter) as raised:
        shown(*others, device="GPU 0")
    assert raised.value.remedy.rstrip(".").endswith(f": {names}")


def test_where_the_peak_comes_from() -> None:
    assert shown(ZERO).details == (
        "GPU 0 peaked at 70 B, 20.0 µs into the history: 57.1% of it was allocated at `f1 m.py:1`.",
    )
    older = device("GPU 1", [(3, ALLOC, 1, 5), (4, COMPLETED, 7, 30)], [(1, 5)], 90, [1, 1])
    assert shown(older).details == (
        "GPU 1 peaked at 35 B, 3.00 µs into the history: 85.7% of it was allocated before the history.",
    )
    unknown = device("GPU 1", [(3, ALLOC, 1, 5)], [(1, 5)], 90, [0])
    assert shown(unknown).details == (
        "GPU 1 peaked at 5 B, 3.00 µs into the history: 100% of it has no recorded stack.",
    )
    assert shown(device("GPU 1", [(3, GROW, 1, 5)], reserved=5)).details == ()


def growing(n_places: int) -> History:
    """Place i keeps 8 blocks of 10 i B, two in each quarter, and allocates one more that it frees."""
    entries: list[Entry] = []
    stack, survivors = [], []
    for quarter in range(4):
        for place in range(1, n_places + 1):
            for _ in range(2):
                entries.append((quarter * 25 + place, ALLOC, len(entries) + 1, 10 * place))
                survivors.append((entries[-1][2], entries[-1][3]))
                stack.append(place)
    for place in range(1, n_places + 1):
        entries += [(98, ALLOC, 1000 + place, 1), (98, COMPLETED, 1000 + place, 1)]
        stack += [place, 0]
    return shown(device("GPU 0", entries, survivors, 10**6, stack))


@pytest.mark.parametrize(
    ("n_places", "more"), [(1, ""), (3, ""), (4, ", and 1 more place"), (6, ", and 3 more places")]
)
def test_places_that_grow(n_places: int, more: str) -> None:
    found = growing(n_places)
    named = "; ".join(
        f"`f{i} m.py:{i}` keeps {80 * i} B in 8 of the 9 blocks it allocated"
        for i in range(n_places, max(n_places - 3, 0), -1)
    )
    assert found.leak == (
        f"Possible leak: memory that is not freed grows through the whole history. {named}{more}."
    )
    assert shown(ZERO).leak == ""


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (1, "1 entry of the history is left out"),
        (2, "2 entries of the history are left out"),
        (1200, "1,200 entries of the history are left out"),
    ],
)
def test_entries_left_out(n: int, text: str) -> None:
    (notice,) = shown(ZERO, n_skipped=n).diagnostics
    assert notice.message == f"{text}: of an unknown kind, or without a time."
    (same,) = history_of(Recording((), STACKS, n), {}).diagnostics
    assert same.message == notice.message
    assert shown(ZERO).diagnostics == ()


@pytest.mark.parametrize(("n", "named"), [(1, 1), (3, 3), (20, 20), (21, 20)])
def test_devices_whose_levels_are_doubtful(n: int, named: int) -> None:
    doubtful = [replace(ZERO, device=f"GPU {i + 10}", end_reserved_bytes=1) for i in range(n)]
    (notice,) = shown(ONE, *doubtful, TWO).diagnostics
    names = ", ".join(f"GPU {i + 10}" for i in range(named))
    assert notice.message.startswith(f"{names}: the history and the blocks that the snapshot lists disagree")


def test_the_window() -> None:
    assert notes(shown(ZERO, start_ps=5, end_ps=6))["end_ps"] == (6, "")
    for end in (5, 4):
        with pytest.raises(BadParameter, match="end_ps") as raised:
            shown(ZERO, start_ps=5, end_ps=end)
        assert "more than start_ps, which is 5" in raised.value.remedy
    moment = notes(shown(ZERO, at_ps=15.0 * US))
    assert moment["at_ps"] == (15 * US, "at 15.0 µs")
    assert notes(shown(ZERO, at_ps=16 * US))["at_ps"] == (15 * US, "at 16.0 µs")
    assert notes(shown(ZERO, at_ps="odd"))["at_ps"] == (0, "at 0 s")
    at_once = device("GPU 0", [(0, ALLOC, 1, 5)], [(1, 5)], 9, [1])
    assert notes(shown(at_once))["end_ps"] == (1, "")
    assert notes(shown(at_once))["history_ps"] == (0, "")


def test_how_many_events_are_drawn() -> None:
    many = device("GPU 0", [(i, ALLOC, i + 1, i + 1) for i in range(9)], [], 10**6, [1] * 9)
    assert shown(many).tables["timeline"].note == "9 events"
    # The event before the window is drawn, too.
    assert shown(many, start_ps=3 * US, end_ps=3 * US + 1).tables["timeline"].note == "1 event"
    assert shown(many, start_ps=3 * US, end_ps=4 * US).tables["timeline"].note == "2 events"
    assert shown(many, start_ps=3 * US, end_ps=4 * US - 1).tables["timeline"].note == "1 event"
    narrow = shown(many, start_ps=0, end_ps=9 * US, width_px=1).tables["timeline"]
    assert (narrow.note, narrow.n_rows) == ("2 of 9 events drawn", 2)
    assert [row[0] for row in rows(narrow)] == [0, 8 * US]
    assert shown(many, start_ps=0, end_ps=9 * US, width_px=3).tables["timeline"].note == "9 events"


def test_blocks_by_place_and_by_size() -> None:
    """Three places and blocks from before: 30 B in two blocks, 12 in one, 12 in three, 50 unknown."""
    entries = [
        (0, ALLOC, 1, 20),
        (1, ALLOC, 2, 10),
        (2, ALLOC, 3, 12),
        (3, ALLOC, 4, 4),
        (4, ALLOC, 5, 4),
        (5, ALLOC, 6, 4),
        (6, COMPLETED, 99, 50),
        (7, COMPLETED, 1, 20),
        (8, COMPLETED, 2, 10),
        (9, COMPLETED, 3, 12),
        (10, COMPLETED, 4, 4),
        (11, COMPLETED, 5, 4),
        (12, COMPLETED, 6, 4),
    ]
    one = device("GPU 0", entries, [], 10**6, [1, 1, 2, 3, 3, 3, *[0] * 7])
    tables = shown(one, at_ps=5 * US).tables
    nan = float("nan")
    assert str(rows(tables["at_places"])) == str(
        [
            ("(allocated before the history)", 50, 50 / 104, nan, nan),
            ("f1 m.py:1", 30, 30 / 104, 2.0, 20.0),
            ("f2 m.py:2", 12, 12 / 104, 1.0, 12.0),
            ("f3 m.py:3", 12, 12 / 104, 3.0, 4.0),
        ]
    )
    assert rows(tables["at_sizes"]) == [
        (20, 1, 20, 20 / 104, "f1 m.py:1"),
        (12, 1, 12, 12 / 104, "f2 m.py:2"),
        (4, 3, 12, 12 / 104, "f3 m.py:3"),
        (10, 1, 10, 10 / 104, "f1 m.py:1"),
    ]
    assert (tables["at_places"].note, tables["at_sizes"].note) == ("104 B at 5.00 µs", "54 B in 6 blocks")
    assert tables["at_sizes"].title == "In use at 5.00 µs, by size of block"
    after = shown(one, at_ps=12 * US).tables
    assert (rows(after["at_places"]), after["at_places"].note) == ([], "0 B at 12.0 µs")
    assert rows(after["kept"]) == []
    nothing = shown(device("GPU 0", [(0, ALLOC, 1, 0)], [(1, 0)], 9, [1])).tables
    assert rows(nothing["at_places"]) == [("f1 m.py:1", 0, 0.0, 1, 0)]
    assert rows(nothing["at_sizes"]) == [(0, 1, 0, 0.0, "f1 m.py:1")]
    known = shown(one, at_ps=6 * US).tables["at_places"]
    assert [row[3:] for row in rows(known)] == [(2, 20), (1, 12), (3, 4)]


def test_numbers_are_whole_unless_some_are_unknown() -> None:
    assert history_rows.known(np.array([0, 3])).dtype == np.int64
    some = history_rows.known(np.array([0, -1, 5]))
    assert some.dtype == np.float64
    assert some == pytest.approx([0, np.nan, 5], nan_ok=True)


def test_what_stays_with_its_first_and_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(0, ALLOC, 1, 20), (3, ALLOC, 2, 10), (4, ALLOC, 3, 12), (7, ALLOC, 4, 4), (9, ALLOC, 5, 8)]
    survivors = [(1, 20), (2, 10), (3, 12), (4, 4), (5, 8)]
    one = device("GPU 0", entries, survivors, 10**6, [1, 2, 1, 2, 3])
    table = shown(one).tables["kept"]
    assert rows(table) == [
        ("f1 m.py:1", 32, 2, 32, 2, 0, 4 * US, False),
        ("f2 m.py:2", 14, 2, 14, 2, 3 * US, 7 * US, False),
        ("f3 m.py:3", 8, 1, 8, 1, 9 * US, 9 * US, False),
    ]
    assert table.note == "54 B at the end of the history"
    for n, note in ((3, "54 B at the end of the history"), (2, "the first 2 of 3")):
        monkeypatch.setattr(history_rows, "N_ROWS", n)
        cut = shown(one).tables["kept"]
        assert (cut.n_rows, cut.note) == (n, note)


def test_failures_are_looked_up_as_far_as_that_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(0, ALLOC, 1, 20), *[(i, OOM, i, 100 + i) for i in range(1, 5)]]
    one = device("GPU 0", entries, [(1, 20)], 25, [1, 2, 3, 4, 5])
    assert rows(shown(one).tables["failures"]) == [
        (i * US, f"f{i + 1} m.py:{i + 1}", 100 + i, i, 20, 25, 5, "f1 m.py:1", 20) for i in range(1, 5)
    ]
    for most, n in ((5, 1), (9, 1), (10, 2), (15, 3), (4, 1)):
        monkeypatch.setattr(history_rows, "_MOST_LOOKED_AT", most)
        table = rows(shown(one).tables["failures"])
        assert [row[7] for row in table] == [None] * (4 - n) + ["f1 m.py:1"] * n
        assert [row[8] for row in table] == pytest.approx([np.nan] * (4 - n) + [20] * n, nan_ok=True)
    monkeypatch.setattr(history_rows, "N_FAILURES", 4)
    assert shown(one).tables["failures"].note == ""
    monkeypatch.setattr(history_rows, "N_FAILURES", 3)
    assert shown(one).tables["failures"].note == "the last 3 of 4"
    more_in_use = replace(one, end_reserved_bytes=15)
    unknown = [row[6] for row in rows(shown(more_in_use).tables["failures"])]
    assert unknown == pytest.approx([np.nan] * 3, nan_ok=True)
    assert "held but not in use" not in shown(more_in_use).failure
