"""Parses command lines. Unlike with argparse alone, a value may begin with a dash: `--host -worker`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

_Namespace = TypeVar("_Namespace")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose options take any value but the name of another option. Its subcommands are
    parsed in the same way.

    `help_end`: makes the help's last paragraphs, if they take long to make.
    """

    help_end: Callable[[], str] | None = None
    _given: tuple[str, ...] = ()

    def format_help(self) -> str:
        """The help."""
        end = self.help_end() if self.help_end else ""
        return "\n".join(text for text in (super().format_help(), end) if text)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: _Namespace | None = None
    ) -> tuple[_Namespace | argparse.Namespace, list[str]]:
        """Parse `args` (by default the process's own); returns also what is left over."""
        self._given = tuple(sys.argv[1:] if args is None else args)
        return super().parse_known_args(self._joined(self._given), namespace)

    def error(self, message: str) -> NoReturn:
        """Exit with the message, and with the remedy if an argument begins with a dash."""
        super().error(message + self._remedy(message))

    def _joined(self, arguments: Sequence[str]) -> list[str]:
        """The arguments, with the two `--name -value` as the one `--name=-value`."""
        joined: list[str] = []
        for i, argument in enumerate(arguments):
            if argument == "--":
                return [*joined, *arguments[i:]]
            option = joined[-1] if joined else ""
            if self._takes_one_value(option) and argument.startswith("-") and not self._is_option(argument):
                joined[-1] = f"{option}={argument}" if option.startswith("--") else f"{option}{argument}"
            else:
                joined.append(argument)
        return joined

    def _takes_one_value(self, argument: str) -> bool:
        option = self._option_string_actions.get(argument)
        return option is not None and option.nargs is None

    def _is_option(self, argument: str) -> bool:
        return argument.partition("=")[0] in self._option_string_actions

    def _remedy(self, message: str) -> str:
        if message.endswith("expected one argument"):
            name = message.removeprefix("argument ").partition(":")[0].rpartition("/")[2]
            return f". A value that is the name of an option is written after a sign: {name}=-value"
        paths = [text for text in self._given if text.startswith("-") and os.path.lexists(text)]
        return f". A path that begins with a dash is written with its folder: ./{paths[0]}" if paths else ""
