"""What users type about a profile beyond numbers → checked values: `KEY=VALUE` settings, a filter mask, host
names.

    tpu_trace_mode=TRACE_COMPUTE      text
    gpu_dump_graph_node_mapping=true  a boolean
    gpu_pm_sample_interval_us=100     a whole number (int64)
    label="100"                       text, whatever is between the quotes
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tb_tpuprof.errors import BadParameter

Value = str | bool | int
MAX_SETTINGS, MAX_KEY, MAX_TEXT = 64, 100, 4096
MAX_HOST_NAME = 200
_KEY = re.compile(rf"[A-Za-z_][A-Za-z0-9_.-]{{0,{MAX_KEY - 1}}}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_MASK = re.compile(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}")
_HOST_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9._-]{{0,{MAX_HOST_NAME - 1}}}")
_BOOLEANS = {"true": True, "false": False}
_INT64 = 2**63


def parse_settings(lines: Iterable[str], parameter: str) -> tuple[tuple[str, Value], ...]:
    """The settings of `KEY=VALUE` lines, in order; empty lines are skipped. Raises BadParameter, with the
    parameter's name.
    """
    settings: dict[str, Value] = {}
    for line in lines:
        text = line.strip()
        if not text:
            continue
        key, separator, value = (part.strip() for part in text.partition("="))
        if not separator or not _KEY.fullmatch(key):
            raise BadParameter(
                parameter,
                text,
                f"KEY=VALUE, the key at most {MAX_KEY} letters, digits and . _ -, such as "
                "tpu_trace_mode=TRACE_COMPUTE",
            )
        if key in settings:
            raise BadParameter(parameter, key, "each key once")
        if len(settings) == MAX_SETTINGS:
            raise BadParameter(parameter, key, f"at most {MAX_SETTINGS} settings")
        settings[key] = _value(key, value, parameter)
    return tuple(settings.items())


def _value(key: str, text: str, parameter: str) -> Value:
    if len(text) > MAX_TEXT or not text.isprintable():
        raise BadParameter(
            parameter, f"{key}={text}", f"values of at most {MAX_TEXT} characters, without control characters"
        )
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if not _WHOLE.fullmatch(text):
        return text
    number = int(text)
    if not -_INT64 <= number < _INT64:
        raise BadParameter(
            parameter, f"{key}={text}", 'whole numbers of 64 bits, or text in double quotes: "5"'
        )
    return number


def parse_mask(text: str, parameter: str) -> int | None:
    """A mask of 64 bits, decimal or as 0x…; None for an empty text. Raises BadParameter."""
    text = text.strip()
    if not text:
        return None
    mask = int(text, 0) if _MASK.fullmatch(text) and not re.fullmatch(r"0[0-9]+", text) else 2**64
    if mask >= 2**64:
        raise BadParameter(parameter, text, "a number of 64 bits, decimal or hexadecimal, such as 0x1")
    return mask


def parse_host_names(text: str, parameter: str) -> tuple[str, ...]:
    """Names separated by commas; empty for an empty text. Raises BadParameter for names that cannot name a
    file, and for repeated ones.
    """
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    for i, name in enumerate(names):
        if not _HOST_NAME.fullmatch(name) or name in names[:i]:
            raise BadParameter(
                parameter,
                name,
                f"names separated by commas, each once, of at most {MAX_HOST_NAME} letters, digits and . _ -",
            )
    return names
