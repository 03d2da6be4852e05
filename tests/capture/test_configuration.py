"""Settings, masks and host names as users type them: their types, and both sides of each limit."""

from __future__ import annotations

import pytest

from tb_tpuprof.capture.configuration import (
    MAX_HOST_NAME,
    MAX_KEY,
    MAX_SETTINGS,
    MAX_TEXT,
    Value,
    parse_host_names,
    parse_mask,
    parse_settings,
)
from tb_tpuprof.capture.options import (
    CONFIGURATION,
    FILTER_MASK,
    HOST_NAMES,
    TEXT_OPTIONS,
    CaptureOptions,
    capture_options,
)
from tb_tpuprof.errors import BadParameter


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-12", -12),
        ("+7", 7),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        ("TRACE_COMPUTE", "TRACE_COMPUTE"),
        ("1.5", "1.5"),
        ('"5"', "5"),
        ('"true"', "true"),
        ('"', '"'),
        ("", ""),
        ("a=b, c", "a=b, c"),
        ("interval_us:1 indices:10", "interval_us:1 indices:10"),
        ("x" * MAX_TEXT, "x" * MAX_TEXT),
    ],
)
def test_the_form_of_a_value_is_its_type(text: str, value: Value) -> None:
    ((key, parsed),) = parse_settings([f" some.key_1 = {text} "], "p")
    assert (key, parsed, type(parsed)) == ("some.key_1", value, type(value))


def test_settings_keep_their_order_and_skip_empty_lines() -> None:
    assert parse_settings(["b=1", "", "  ", "a=x"], "p") == (("b", 1), ("a", "x"))
    assert parse_settings([], "p") == ()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["novalue"], "KEY=VALUE"),
        (["=1"], "KEY=VALUE"),
        (["1a=1"], "KEY=VALUE"),
        (["a b=1"], "KEY=VALUE"),
        (["ä=1"], "KEY=VALUE"),
        (["k" * (MAX_KEY + 1) + "=1"], "KEY=VALUE"),
        (["a=1", "a=2"], "each key once"),
        ([f"a={2**63}"], "64 bits"),
        ([f"a={-(2**63) - 1}"], "64 bits"),
        (["a=" + "x" * (MAX_TEXT + 1)], f"{MAX_TEXT} characters"),
        (["a=x\x1b[2J"], "control characters"),
        ([f"k{i}=1" for i in range(MAX_SETTINGS + 1)], f"at most {MAX_SETTINGS}"),
    ],
)
def test_settings_that_are_refused(lines: list[str], words: str) -> None:
    with pytest.raises(BadParameter, match="parameter p ") as caught:
        parse_settings(lines, "p")
    assert words in caught.value.remedy
    assert caught.value.parameter == "p"


def test_settings_at_the_limits() -> None:
    assert len(parse_settings([f"k{i}=1" for i in range(MAX_SETTINGS)], "p")) == MAX_SETTINGS
    assert parse_settings(["k" * MAX_KEY + "=1"], "p")[0][0] == "k" * MAX_KEY


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("", None),
        (" ", None),
        ("0", 0),
        ("5", 5),
        ("0x1F", 31),
        (str(2**64 - 1), 2**64 - 1),
        ("0xffffffffffffffff", 2**64 - 1),
    ],
)
def test_masks(text: str, mask: int | None) -> None:
    assert parse_mask(text, "p") == mask


@pytest.mark.parametrize("text", ["-1", "x", "0b1", "1.0", "017", str(2**64), "0x1ffffffffffffffff", "1_0"])
def test_masks_that_are_refused(text: str) -> None:
    with pytest.raises(BadParameter, match="parameter p "):
        parse_mask(text, "p")


def test_host_names() -> None:
    assert parse_host_names("", "p") == ()
    assert parse_host_names(" worker-0 , w.1,_x", "p") == ("worker-0", "w.1", "_x")
    assert parse_host_names("h" * MAX_HOST_NAME, "p") == ("h" * MAX_HOST_NAME,)


@pytest.mark.parametrize(
    "text", ["a,,b", "a,a", "../x", ".hidden", "-a", "a/b", "a b", "ä", "h" * (MAX_HOST_NAME + 1)]
)
def test_host_names_that_are_refused(text: str) -> None:
    with pytest.raises(BadParameter, match="parameter p "):
        parse_host_names(text, "p")


def test_options_from_named_values() -> None:
    options = capture_options(
        {"duration_ms": 5, CONFIGURATION: "b=true\na=1\n", FILTER_MASK: "0x3", HOST_NAMES: "x,y"}
    )
    assert options == CaptureOptions(
        duration_ms=5,
        configuration=(("b", True), ("a", 1)),
        host_traceme_filter_mask=3,
        host_names=("x", "y"),
    )
    assert capture_options({}) == CaptureOptions()


@pytest.mark.parametrize("option", TEXT_OPTIONS, ids=lambda option: option.name)
def test_texts_are_bounded_and_texts(option: object) -> None:
    (text_option,) = [one for one in TEXT_OPTIONS if one is option]
    for value in (5, None, ["a"], " " * (text_option.max_chars + 1)):
        with pytest.raises(BadParameter, match=f"parameter {text_option.name} "):
            capture_options({text_option.name: value})
    assert capture_options({text_option.name: " " * text_option.max_chars}) == CaptureOptions()
