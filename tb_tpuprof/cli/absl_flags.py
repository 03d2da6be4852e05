"""Arguments in the style of absl → values by name, for scripts written for the old Cloud TPU Profiler.

--flag=value   --flag value   -flag value   --switch   --noswitch   --switch=false   --   (ends the flags)
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tb_tpuprof.errors import BadParameter, ProfilerError

Value = str | int | bool
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")


class UsageError(ProfilerError):
    """Arguments that cannot be parsed."""

    kind = "usage"
    exit_code = 2


@dataclass(frozen=True)
class Flag:
    """A flag; its default determines the type of its value. `aliases`: alternative names."""

    name: str
    default: Value
    help: str
    aliases: tuple[str, ...] = ()


def parse_flags(argv: Sequence[str], flags: Sequence[Flag]) -> dict[str, Value]:
    """The value of every flag; the last occurrence of a repeated flag counts. Raises UsageError or
    BadParameter.
    """
    flag_of_name = {name: flag for flag in flags for name in (flag.name, *flag.aliases)}
    values = {flag.name: flag.default for flag in flags}
    rest = iter(argv)
    for argument in rest:
        if argument == "--":
            break
        if not argument.startswith("-") or argument == "-":
            raise UsageError(
                f"Unexpected argument {argument[:80]!r}.", "Values follow their flag: --flag=value."
            )
        name, equals, given = argument.lstrip("-").partition("=")
        flag, is_negated = flag_of_name.get(name), False
        if (
            flag is None
            and name.startswith("no")
            and isinstance((negated := flag_of_name.get(name[2:])) and negated.default, bool)
        ):
            flag, is_negated = flag_of_name[name[2:]], True
        if flag is None:
            raise _unknown(name, flag_of_name)
        if isinstance(flag.default, bool):
            values[flag.name] = _switched(flag, is_negated, given if equals else None)
        else:
            values[flag.name] = _typed(flag, given if equals else _next(rest, flag))
    extra = next(rest, None)
    if extra is not None:
        raise UsageError(f"Unexpected argument {extra[:80]!r}.", "Values follow their flag: --flag=value.")
    return values


def _unknown(name: str, flag_of_name: Mapping[str, Flag]) -> UsageError:
    close = difflib.get_close_matches(name, flag_of_name, 1)
    return UsageError(
        f"There is no flag --{name[:80]}.", f"Did you mean --{close[0]}?" if close else "See --help."
    )


def _next(rest: Iterator[str], flag: Flag) -> str:
    value = next(rest, None)
    if value is None:
        raise UsageError(f"The flag --{flag.name} needs a value.", f"Write --{flag.name}=value.")
    return value


def _switched(flag: Flag, is_negated: bool, given: str | None) -> bool:
    if given is None:
        return not is_negated
    if is_negated or given.lower() not in (*_TRUE, *_FALSE):
        raise BadParameter(flag.name, given, "true or false")
    return given.lower() in _TRUE


def _typed(flag: Flag, text: str) -> Value:
    if isinstance(flag.default, str):
        return text
    try:
        return int(text)
    except ValueError:
        raise BadParameter(flag.name, text, "a whole number") from None


def flags_help(flags: Sequence[Flag]) -> str:
    """The flags as a help text."""
    lines = []
    for flag in flags:
        switch = isinstance(flag.default, bool)
        default = str(flag.default).lower() if switch else str(flag.default)
        text = f"{flag.help} Default: {default}." if default else flag.help
        lines.append(f"  --[no]{flag.name}" if switch else f"  --{flag.name}")
        lines.append(textwrap.fill(text, 100, initial_indent="      ", subsequent_indent="      "))
    return "\n".join(lines) + "\n"
