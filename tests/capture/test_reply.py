"""The profile within a reply's bytes, found without copying; whatever the bytes are."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tpuprof.capture.messages import message_class
from tb_tpuprof.capture.reply import Malformed, read_reply
from tb_tpuprof.ingest.xspace.messages import xspace_class
from tests.capture.double import reply
from tests.ingest.xspaces import small_xspace


def test_the_pieces_are_views_of_the_reply() -> None:
    data = reply(small_xspace())
    (piece,) = read_reply(data).pieces
    assert piece.obj is data
    assert piece == small_xspace()


def test_a_profile_in_two_parts_is_merged_as_protobuf_does() -> None:
    one, two = small_xspace(), xspace_class()(hostnames=[b"h"]).SerializeToString()
    found = read_reply(reply(one) + reply(two))
    assert b"".join(found.pieces) == one + two
    assert found.size_bytes == len(one + two)
    assert not found.is_empty


def test_tool_data() -> None:
    assert read_reply(reply(None, tools={"xplane": small_xspace(), "other": b"x"})).pieces == (
        small_xspace(),
    )
    assert read_reply(reply(None, tools={"h.xplane.pb": small_xspace(), "xplane": b""})).size_bytes == len(
        small_xspace()
    )
    assert read_reply(reply(small_xspace(), tools={"xplane": b"other"})).pieces == (small_xspace(),)
    assert not read_reply(reply(None, tools={"trace_viewer": b"{}"})).pieces


def test_empty_ones() -> None:
    XSpace = xspace_class()
    idle = XSpace()
    idle.planes.add(name=b"/host:CPU").event_metadata.add(key=1)
    idle.planes.add(name=b"Task Environment").lines.add(name=b"no events")
    assert read_reply(reply(idle.SerializeToString())).is_empty
    assert read_reply(reply(small_xspace(), is_empty=True)).is_empty
    idle.planes[1].lines[0].events.add(metadata_id=1)
    assert not read_reply(reply(idle.SerializeToString())).is_empty
    nothing = read_reply(b"")
    assert (nothing.pieces, nothing.is_empty) == ((), False)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        found = read_reply(data)
    except Malformed:
        return
    assert found.size_bytes <= len(data)


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=3))
def test_damaged_replies_are_read_or_refused(position: int, patch: bytes) -> None:
    data = bytearray(reply(small_xspace()))
    position %= len(data)
    data[position : position + len(patch)] = patch
    with contextlib.suppress(Malformed):
        read_reply(bytes(data))


def test_every_cut_within_the_profile_is_noticed() -> None:
    data = reply(small_xspace())
    for end in range(1, len(data)):
        with pytest.raises(Malformed):
            read_reply(data[:end])


def test_our_messages_are_not_registered_under_others_names() -> None:
    from google.protobuf import descriptor_pool

    assert message_class("ProfileRequest").DESCRIPTOR.full_name == "tb_tpuprof.profiler.ProfileRequest"
    for name in ("tensorflow.ProfileRequest", "tb_tpuprof.profiler.ProfileRequest"):
        with pytest.raises(KeyError):
            descriptor_pool.Default().FindMessageTypeByName(name)


def test_a_request_byte_for_byte() -> None:
    options = message_class("ProfileOptions")(
        version=1, host_tracer_level=2, start_timestamp_ns=300, duration_ms=5
    )
    request = message_class("ProfileRequest")(duration_ms=5, tools=["t"], opts=options, emit_xspace=True)
    assert (
        request.SerializeToString()
        == b"\x08\x05\x1a\x01t\x22\x09\x10\x02\x28\x01\x40\xac\x02\x48\x05\x48\x01"
    )
