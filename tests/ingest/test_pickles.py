"""The reader of pickles: the same values as Python's own for plain data, and nothing else."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_tpuprof.ingest.heap import pickles
from tb_tpuprof.ingest.heap.pickles import Unreadable, read_pickle

PROTOCOLS = (2, 3, 4, 5)
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=()), max_size=40)
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=5), inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
    ),
    max_leaves=30,
)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.sampled_from(PROTOCOLS))
def test_plain_data_is_read_as_by_python(value: Any, protocol: int) -> None:
    assert read_pickle(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_shared_parts_stay_shared(protocol: int) -> None:
    shared = [{"a": 1}]
    first, second = read_pickle(pickle.dumps([shared, shared], protocol))
    assert first is second
    own: list[Any] = []
    own.append(own)
    read = read_pickle(pickle.dumps(own, protocol))
    assert read[0] is read


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_many_and_long_parts(protocol: int) -> None:
    value = {"numbers": list(range(3000)), "text": "ä" * 70_000, "keys": {str(i): i for i in range(3000)}}
    assert read_pickle(pickle.dumps(value, protocol)) == value


class _Call:
    """Pickles as a call of os.system."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/tpuprof_was_here",)


def _hostile() -> dict[str, bytes]:
    by_name = {f"call {protocol}": pickle.dumps(_Call(), protocol) for protocol in (0, 1, *PROTOCOLS)}
    by_name |= {
        "class": pickle.dumps(dict),
        "bytes": pickle.dumps(b"x", 3),
        "set": pickle.dumps({1}, 4),
        "complex": pickle.dumps(1j),
        "persistent": b"\x80\x02Pid\n.",
        "extension": b"\x80\x02\x82\x01.",
        "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        "inst": b"\x80\x02(ios\nsystem\n.",
        "out of band": b"\x80\x05\x97.",
    }
    return by_name


@pytest.mark.parametrize("data", _hostile().values(), ids=_hostile())
def test_code_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable, match="more than plain data"):
        read_pickle(data)
    assert not os.path.exists("/tmp/tpuprof_was_here")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "cut off"),
        (b"\x80", "cut off"),
        (b"\x80\x04N", "cut off"),
        (b"\x80\x06N.", "protocol"),
        (b"\x80\x04.", "damaged"),
        (b"\x80\x04NN.", "damaged"),
        (b"\x80\x04(.", "damaged"),
        (b"\x80\x04]N\x86.", None),
        (b"\x80\x04N\x87.", "damaged"),
        (b"\x80\x04]e.", "damaged"),
        (b"\x80\x04(N}\x94e.", "damaged"),
        (b"\x80\x04Na.", "damaged"),
        (b"\x80\x04NNa.", "damaged"),
        (b"\x80\x04](a.", "damaged"),
        (b"\x80\x04}(Nu.", "damaged"),
        (b"\x80\x04}K\x01Ns.", "damaged"),
        (b"\x80\x04}])s.", "damaged"),
        (b"\x80\x04h\x00.", "damaged"),
        (b"\x80\x04Nq\x05.", "damaged"),
        (b"\x80\x04(\x94.", "damaged"),
        (b"\x80\x04\x8c\x02\xff\xff.", "damaged"),
        (b"\x80\x04\x8c\x05ab.", "cut off"),
        (b"\x80\x04X" + struct.pack("<I", 2**31) + b"a.", "cut off"),
        (b"\x80\x04\x8d" + struct.pack("<Q", 2**63) + b"a.", "cut off"),
        (b"\x80\x04\x8a\x0a" + b"\x01" * 10 + b".", "beyond 64 bits"),
    ],
)
def test_damage(data: bytes, words: str | None) -> None:
    if words is None:
        assert read_pickle(data) == ([], None)
        return
    with pytest.raises(Unreadable, match=words):
        read_pickle(data)


def test_the_number_of_parts_is_bounded() -> None:
    data = pickle.dumps([[], [], []], 2)
    n = sum(1 for _ in pickletools.genops(data))
    assert read_pickle(data, n) == [[], [], []]
    with pytest.raises(Unreadable, match=f"more than {n - 1} parts"):
        read_pickle(data, n - 1)


def test_the_number_of_parts_is_bounded_by_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps([[], [], []], 2)
    n = sum(1 for _ in pickletools.genops(data))
    monkeypatch.setattr(pickles, "machine_memory", lambda: n * 128)
    assert read_pickle(data) == [[], [], []]
    monkeypatch.setattr(pickles, "machine_memory", lambda: n * 128 - 1)
    with pytest.raises(Unreadable, match=f"more than {n - 1} parts"):
        read_pickle(data)


def test_the_position_is_that_of_the_opcode() -> None:
    data = b"\x80\x04N}c."
    with pytest.raises(Unreadable) as caught:
        read_pickle(data)
    assert caught.value.position == data.index(b"c")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.sampled_from((b"", b"\x80\x02", b"\x80\x04]", b"\x80\x04}(")))
def test_random_bytes_end_in_a_value_or_a_reason(tail: bytes, head: bytes) -> None:
    outcome: Any
    try:
        outcome = read_pickle(head + tail)
    except Unreadable as error:
        outcome = (error.what, error.position)
    assert type(outcome) in (dict, list, tuple, str, int, float, bool, type(None))


def test_what_python_s_own_pickler_writes_by_default() -> None:
    file = io.BytesIO()
    pickle.dump({"segments": [{"blocks": ({"size": 2**40},)}]}, file)
    assert read_pickle(file.getvalue()) == {"segments": [{"blocks": ({"size": 2**40},)}]}
