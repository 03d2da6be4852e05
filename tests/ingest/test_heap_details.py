"""Snapshots of memory: stacks of inlined calls, several segments of a device, and limits on both sides."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tb_tpuprof.errors import NotATrace, TraceFormatError
from tb_tpuprof.ingest.heap import pprof as pprof_module
from tb_tpuprof.ingest.heap import torch_snapshot as torch_module
from tb_tpuprof.ingest.heap import torch_values
from tb_tpuprof.ingest.heap.pickles import Unreadable, read_pickle
from tb_tpuprof.ingest.heap.pprof import read_pprof
from tb_tpuprof.ingest.heap.torch_snapshot import read_torch_snapshot
from tb_tpuprof.trace.heap import Heap, Pool
from tb_tpuprof.trace.heap_history import DeviceHistory, Recording, Survivors
from tb_tpuprof.trace.stacks import stacks_of
from tests.ingest.heap_files import LOAD, MAIN, STEP, Sample, pprof, torch_frames
from tests.ingest.messages import written
from tests.ingest.test_heap_files import rows


def profile(*fields: tuple[int, Any]) -> Heap:
    """A profile of a size and a count, with the texts that the tests use."""
    texts = ("", "space", "bytes", "allocations", "count", "outer", "inner", "innermost", "a.py", "b.py")
    types = (written((1, 3), (2, 4)), written((1, 1), (2, 2)))
    data = written(*((1, one) for one in types), *fields, *((6, text) for text in texts))
    return read_pprof(data, "h.pprof")


def test_sizes_in_memory_are_those_of_columns_and_texts() -> None:
    """Stacks of 0, 1 and 3 frames, of four functions in three files."""
    frames = [("a", "x.py", 1), ("bb", "y.py", 22), ("ccc", "", 3), ("", "z.py", 0)]
    stacks = stacks_of([[], [2], [0, 1, 3]], frames)
    assert len(stacks) == 3
    assert stacks.first.tolist() == [0, 0, 1, 4]
    assert stacks.frames.tolist() == [2, 0, 1, 3]
    assert (stacks.function, stacks.file) == (("a", "bb", "ccc", ""), ("x.py", "y.py", "", "z.py"))
    assert stacks.line.tolist() == [1, 22, 3, 0]
    texts = sum(50 + len(text) for function, file, _ in frames for text in (function, file))
    assert stacks.size_bytes == 4 * 8 + 4 * 4 + 4 * 8 + texts
    sizes = [(5, 2), (7, 0), (1, 4)]
    devices = tuple(device_history(*one) for one in sizes)
    columns = [n * (8 + 1 + 8 + 8 + 4) + n_survivors * (8 + 8 + 4) for n, n_survivors in sizes]
    assert [one.size_in_memory for one in devices] == columns
    assert Recording(devices, stacks).kept_bytes == stacks.size_bytes + sum(columns)
    assert [len(one) for one in devices] == [5, 7, 1]


def device_history(n: int, n_survivors: int) -> DeviceHistory:
    of_events, of_survivors = np.zeros(n, np.int64), np.zeros(n_survivors, np.int64)
    return DeviceHistory(
        "GPU 0",
        of_events,
        of_events.astype(np.uint8),
        of_events,
        of_events,
        of_events.astype(np.int32),
        0,
        0,
        Survivors(of_survivors, of_survivors, of_survivors.astype(np.int32)),
    )


def test_too_many_blocks_are_at_no_place_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_module, "MAX_BLOCKS", 2)
    for n in (2, 3):
        blocks = [{"size": 8, "state": "inactive"}] * n
        data = pickle.dumps({"segments": [{"device": 0, "total_size": 99, "blocks": blocks}]})
        if n == 2:
            assert read_torch_snapshot(data, "p").pools == (Pool("GPU 0", 99, 0, 0, 8),)
            continue
        with pytest.raises(TraceFormatError, match="more than 2 blocks") as error:
            read_torch_snapshot(data, "p")
        assert error.value.offset == -1


def test_inlined_calls_are_frames_of_their_location() -> None:
    """The first location has three lines, the innermost first; functions and lines may be unknown."""
    functions = [(5, written((1, number), (2, 4 + number), (4, 8 + number % 2))) for number in (1, 2, 3)]
    locations = [
        (4, written((1, 7), *((4, written((1, f), (2, line))) for f, line in ((3, 30), (2, 20), (1, 10))))),
        (4, written((1, 8), (4, written((1, 1), (2, 11))), (4, written((1, 99), (2, 5))))),
        (4, written((1, 9), (4, written((1, 2))))),
        (4, written((1, 6), (4, written((1, 2), (2, 2**64 - 4))))),
    ]
    samples = [
        (2, written((1, bytes((7, 8))), (2, bytes((2, 100))))),
        (2, written((1, bytes((9, 50))), (2, bytes((1, 7))))),
        (2, written((1, bytes((6,))), (2, bytes((4, 9))))),
        (2, written((1, bytes((7,))), (2, bytes((5,))))),  # lacks the size
    ]
    first, second = rows(profile(*samples, *locations, *functions))
    assert first == (
        "",
        "",
        (
            ("innermost", "b.py", 30),
            ("inner", "a.py", 20),
            ("outer", "b.py", 10),
            ("outer", "b.py", 11),
            ("", "", 5),
        ),
        2,
        100,
    )
    assert second == ("", "", (("inner", "a.py", 0),), 1 + 4, 7 + 9)


def test_counts_and_sizes_are_summed_and_stay_between_0_and_their_limit() -> None:
    sizes = (2**61, 2**61, 1, 5)
    samples = [(2, written((1, b"\x01"), (2, written_varints(3, size)))) for size in sizes]
    below = [(2, written((1, b"\x02"), (2, written_varints(2**64 - 9, 2**64 - 1))))]
    above, negative = rows(profile(*samples, *below, (4, written((1, 1), (4, written((2, 1)))))))
    assert above[3:] == (12, 2**62)
    assert negative[3:] == (0, 0)


def written_varints(*values: int) -> bytes:
    from tests.ingest.hlo_protos import varint

    return b"".join(varint(value) for value in values)


def test_stacks_are_cut_at_a_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a profile's locations and of a snapshot's frames, innermost first."""
    stack = (STEP, LOAD, MAIN)
    blocks = [{"size": 1, "state": "active_allocated", "frames": torch_frames(*stack)}]
    snapshot = pickle.dumps({"segments": [{"device": 0, "blocks": blocks}]})
    for most in (3, 2, 1):
        monkeypatch.setattr(pprof_module, "MAX_DEPTH", most)
        monkeypatch.setattr(torch_values, "MAX_DEPTH", most)
        (of_profile,) = rows(read_pprof(pprof([Sample(stack, 1, 5)]), "p"))
        (of_snapshot,) = rows(read_torch_snapshot(snapshot, "p"))
        assert of_profile[2] == of_snapshot[2] == stack[:most]
    monkeypatch.setattr(pprof_module, "MAX_DEPTH", 2)
    location = written((1, 1), *((4, written((2, line))) for line in (10, 20, 30)))
    (inlined,) = rows(profile((2, written((1, b"\x01"), (2, bytes((1, 2))))), (4, location)))
    assert [line for _, _, line in inlined[2]] == [10, 20]


def block(size: Any, state: Any = "active_allocated", **more: Any) -> dict[str, Any]:
    return {"size": size, "state": state, **more}


def test_segments_of_several_devices_are_summed() -> None:
    """Devices by number, not by text; the largest free block of three; what was asked for may be unknown."""
    segments = [
        {"device": 10, "total_size": 100, "blocks": [block(7, "inactive"), block(40, requested_size=33)]},
        {"device": 2, "total_size": 64, "blocks": [block(64)]},
        {"device": 10, "total_size": 900, "blocks": [block(500, "inactive"), block(30, "inactive")]},
        {"device": 10, "total_size": 5, "blocks": [block(3, "active_pending_free", requested_size=1)]},
        {"device": 0, "total_size": 11, "blocks": []},
    ]
    heap = read_torch_snapshot(pickle.dumps({"segments": segments}), "p")
    assert heap.devices == ("GPU 0", "GPU 2", "GPU 10")
    assert heap.pools == (
        Pool("GPU 0", 11, 0, 0, 0),
        Pool("GPU 2", 64, 64, 64, 0),
        Pool("GPU 10", 1005, 43, 34, 500),
    )
    assert rows(heap) == [
        ("GPU 10", "allocated", (), 1, 40),
        ("GPU 2", "allocated", (), 1, 64),
        ("GPU 10", "freed, in use by a stream", (), 1, 3),
    ]


def test_numbers_and_texts_of_snapshots_have_limits() -> None:
    most = 2**60 - 1
    frames = [{"name": "n" * 1001, "filename": "f" * 1000, "line": most}, {"name": "x", "line": most + 1}]
    blocks = [
        block(most, "s" * 101, frames=frames),
        block(most + 1, "s" * 100, frames=frames),
        block(most, "s" * 100),
        block(most, "s" * 100),
        block(most, "s" * 100),
    ]
    heap = read_torch_snapshot(
        pickle.dumps({"segments": [{"device": 1, "total_size": most, "blocks": blocks}]}), "p"
    )
    first, second = rows(heap)
    assert first == ("GPU 1", "s" * 100, (("n" * 1000, "f" * 1000, most), ("x", "", 0)), 2, most)
    assert second == ("GPU 1", "s" * 100, (), 3, min(3 * most, 2**61))
    assert heap.pools == (Pool("GPU 1", most, 2**61, 2**61, 0),)


def test_frames_that_blocks_share_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three blocks with two lists of five frames in all; equal lists are equal stacks."""
    shared, own = torch_frames(STEP, LOAD, MAIN), torch_frames(LOAD, MAIN)
    blocks = [block(1, frames=shared), block(2, frames=shared), block(4, frames=own)]
    data = pickle.dumps({"segments": [{"device": 0, "blocks": blocks}]})
    monkeypatch.setattr(torch_module, "MAX_FRAMES", 5)
    assert [row[2:] for row in rows(read_torch_snapshot(data, "p"))] == [
        ((STEP, LOAD, MAIN), 2, 3),
        ((LOAD, MAIN), 1, 4),
    ]
    equal = [block(1, frames=torch_frames(STEP)), block(2, frames=torch_frames(STEP)), block(4, frames=[])]
    data = pickle.dumps({"segments": [{"device": 0, "blocks": equal}]})
    assert [row[2:] for row in rows(read_torch_snapshot(data, "p"))] == [((STEP,), 2, 3), ((), 1, 4)]


@pytest.mark.parametrize(
    ("data", "position", "words"),
    [
        (b"\x80\x06N.", 0, "protocol"),
        (b"\x80\x04N\x8a\x0a" + bytes(10) + b".", 3, "beyond 64 bits"),
        (b"\x80\x04NN.", 4, "is damaged"),
        (b"\x80\x04\x8c\x05ab", 2, "is cut off"),
        (b"\x80\x04]a.", 3, "is damaged"),
        (b"\x80\x04(K\x01K\x02K\x03u.", 9, "is damaged"),
    ],
)
def test_where_a_pickle_is_unreadable(data: bytes, position: int, words: str) -> None:
    with pytest.raises(Unreadable, match=words) as caught:
        read_pickle(data)
    assert caught.value.position == position


def test_numbers_of_pickles_by_their_opcodes() -> None:
    """Of one, two, four and nine bytes, signed where Python's pickler writes them so."""
    values = [0, 255, 256, 65535, 65536, 2**31 - 1, -1, -(2**31), 2**31, 2**63, -(2**63), 2**64 - 1]
    for protocol in (2, 4, 5):
        assert read_pickle(pickle.dumps(values, protocol)) == values
    assert read_pickle(b"\x80\x04\x8a\x00.") == 0
    assert read_pickle(b"\x80\x04\x8a\x09" + b"\xff" * 8 + b"\x00.") == 2**64 - 1
    numbers = b"\x80\x04(K\xffM\xff\xffJ\xff\xff\xff\xffG?\xe0\x00\x00\x00\x00\x00\x00t."
    assert read_pickle(numbers) == (255, 65535, -1, 0.5)


def test_tuples_marks_and_memo_of_pickles() -> None:
    assert read_pickle(b"\x80\x04K\x01K\x02K\x03K\x04\x87\x86.") == (1, (2, 3, 4))
    assert read_pickle(b"\x80\x04(K\x01(K\x02tK\x03t.") == (1, (2,), 3)
    assert read_pickle(b"\x80\x04K\x07q\x00K\x08q\x01K\x09q\x00h\x00h\x01\x87\x86\x86.") == (
        7,
        (8, (9, 9, 8)),
    )
    assert read_pickle(b"\x80\x02K\x07r\x00\x00\x00\x00j\x00\x00\x00\x00\x86.") == (7, 7)


def test_an_error_names_other_profiles_up_to_a_hundred_letters() -> None:
    names = [("a" * 40, "count"), ("b" * 40, "nanoseconds"), ("c" * 40, "count")]
    with pytest.raises(NotATrace) as raised:
        read_pprof(pprof([Sample((), 1, 1)], names), "x.pprof")
    listed = ", ".join(name for name, _ in names)[:100]
    assert f"a pprof profile of {listed}, not of memory" in str(raised.value)
