"""How a profile was recorded, decoded from messages written by hand, and shown for hosts that differ."""

from __future__ import annotations

import pytest

from tb_tpuprof.analysis.overview.recording import Recording, recording
from tb_tpuprof.session import Session
from tb_tpuprof.tools.overview_page.recording import UNKNOWN, recording_pairs
from tests.builders import DrawnPlane, build
from tests.golden_files import demo_runs
from tests.synthetic import field

VERBOSE = Recording(3, 1, 0, 2000, 0, (("tpu_trace_mode", "TRACE_COMPUTE"),))
INFO = Recording(2, 0, 1, 0, None, ())


def setting(key: bytes, value: bytes) -> bytes:
    return field(12, field(1, key) + field(2, value))


def recorded(*messages: bytes, **stats: str | int) -> Recording | None:
    """What a host says whose planes have these messages as stat."""
    planes = [DrawnPlane(f"p{i}", stats={"profile_options": one, **stats}) for i, one in enumerate(messages)]
    return recording(build([DrawnPlane("/host:CPU"), *planes]))


def test_every_field() -> None:
    message = (
        field(1, 1)
        + field(2, 3)
        + field(3, 2)
        + field(4, 1)
        + field(5, 1)
        + field(9, 1500)
        + field(11, field(1, 5))
        + setting(b"z_text", field(1, b"a=b"))
        + setting(b"a_true", field(2, 1))
        + setting(b"b_false", field(2, 0))
        + setting(b"c_number", field(3, 7))
        + setting(b"d_negative", field(3, 2**64 - 7))
        + setting(b"e_least", field(3, 2**63))
    )
    assert recorded(message) == Recording(
        3,
        2,
        1,
        1500,
        5,
        (
            ("a_true", "true"),
            ("b_false", "false"),
            ("c_number", "7"),
            ("d_negative", "-7"),
            ("e_least", str(-(2**63))),
            ("z_text", "a=b"),
        ),
    )


def test_levels_that_are_left_out_are_zero_and_no_mask_is_no_filter() -> None:
    assert recorded(field(5, 1)) == Recording(0, 0, 0, 0, None, ())
    assert recorded(field(5, 1) + field(11, b"")) == Recording(0, 0, 0, 0, 0, ())


def test_without_a_version_nothing_is_known() -> None:
    assert recorded() is None
    assert recorded(b"") is None
    assert recorded(field(2, 3) + field(4, 1)) is None
    assert recording(build([DrawnPlane("p", stats={"profile_options": "text"})])) is None


def test_the_first_plane_that_states_it_counts() -> None:
    assert recorded(field(2, 9), field(2, 1) + field(5, 1), field(2, 2) + field(5, 1)) == Recording(
        1, 0, 0, 0, None, ()
    )


@pytest.mark.parametrize("letter", ["x", "é", "が", "😀"])
def test_long_texts_say_that_they_are_cut(letter: str) -> None:
    for n, cut in ((200, ""), (201, "…"), (1000, "…")):
        found = recorded(field(5, 1) + setting(b"k", field(1, (letter * n).encode())))
        assert found is not None
        assert found.settings == (("k", letter * 200 + cut),)


def test_hostile_messages_are_bounded() -> None:
    long = field(5, 1) + setting(b"k" * 300, field(1, b"\xff" * 5000))
    found = recorded(long)
    assert found is not None
    ((key, value),) = found.settings
    assert key == "k" * 200 + "…"
    assert len(value) == 201
    many = field(5, 1) + b"".join(setting(b"k%d" % i, field(2, 1)) for i in range(100))
    found = recorded(many)
    assert found is not None
    assert len(found.settings) == 64
    assert recorded(field(5, 1) + field(2, 3) + b"\x62\xff\xff") == Recording(3, 0, 0, 0, None, ())
    assert recorded(field(5, 1) + b"\x00" * 2**20) is None


def test_rows_of_one_host() -> None:
    assert recording_pairs([VERBOSE]) == [
        ("Host tracing", "3 (verbose)"),
        ("Device tracing", "1 (on)"),
        ("Python tracing", "0 (off)"),
        ("Requested duration", "2.00 s"),
        ("Host event filter", "0x0"),
        ("Device settings", "tpu_trace_mode=TRACE_COMPUTE"),
    ]
    assert recording_pairs([INFO]) == [
        ("Host tracing", "2 (info)"),
        ("Device tracing", "0 (off)"),
        ("Python tracing", "1 (on)"),
    ]
    assert recording_pairs([Recording(7, 2, 0, 0, None, ())])[:2] == [
        ("Host tracing", "7"),
        ("Device tracing", "2"),
    ]


def test_rows_of_hosts_that_differ() -> None:
    pairs = dict(recording_pairs([INFO, VERBOSE, INFO, None]))
    assert pairs["Host tracing"] == f"2 (info) on 2 hosts; 3 (verbose) on 1 host; {UNKNOWN} on 1 host"
    assert pairs["Host event filter"] == f"none on 2 hosts; 0x0 on 1 host; {UNKNOWN} on 1 host"
    assert dict(recording_pairs([INFO, INFO, INFO]))["Host tracing"] == "2 (info)"


def test_unknown_where_no_trace_says_so() -> None:
    assert recording_pairs([None, None]) == [("Tracing levels", UNKNOWN)]
    assert recording_pairs([]) == [("Tracing levels", UNKNOWN)]


@pytest.mark.parametrize(
    ("log", "levels"),
    [("jax_train", (2, 1, 1)), ("keras_slow_input", (2, 1, 0)), ("tf_two_workers", (2, 1, 0))],
)
def test_demo_runs_say_what_their_programs_asked_for(log: str, levels: tuple[int, int, int]) -> None:
    session = Session(str(demo_runs()[log]), cache=False)
    for host in session.hosts:
        found = recording(session.outline(host))
        assert found is not None
        assert (found.host_level, found.device_level, found.python_level) == levels


def test_the_table_of_the_overview_ends_with_it() -> None:
    from tb_tpuprof.tools import get_tool

    payload = get_tool("overview_page").run(Session(str(demo_runs()["jax_train"]), cache=False), None, {})
    names, values = payload.tables["environment"].columns
    assert names.strings is not None
    assert values.strings is not None
    pairs = {
        names.strings[int(name)]: values.strings[int(value)]
        for name, value in zip(names.values, values.values, strict=True)
    }
    assert pairs["Host tracing"] == "2 (info)"
