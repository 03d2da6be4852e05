"""Regular expressions that cannot run away: RE2 matches in time linear in the text, whatever the expression.

Known is [RE2's syntax](https://github.com/google/re2/wiki/Syntax): characters, `.`, classes `[a-z]` and
`[[:alpha:]]`, `\\d \\w \\s \\b` (of ASCII) and their opposites, `\\p{Greek}`, `^ $` (the ends of the text),
groups, `|`, `* + ?` and `*?`, `{m,n}` up to 1000, `(?i)`. Not known, as it cannot be matched in linear time:
references back, looking ahead or behind. Case matters unless `(?i)` stands in front.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import re2

MAX_PATTERN = 500
# RE2 bounds what it remembers of an expression to MAX_BYTES; without enough of it, a text takes time in
# proportion to the number of instructions: about 10 ns for each of them and each character.
MAX_BYTES, MAX_INSTRUCTIONS = 8 << 20, 4000
BUDGET_S = 10.0
_SIGN = "Put a backslash before it to look for the character itself."
_TOO_LARGE = "pattern too large"
# RE2's message up to its colon: the same in our words, and a remedy. {} is the part concerned.
_MESSAGES = {
    "missing )": ("the bracket ( is not closed", "Add ) or put a backslash before it."),
    "unexpected )": ("the bracket ) was not opened", _SIGN),
    "missing ]": ("the bracket [ is not closed", "Add ] or put a backslash before it."),
    "no argument for repetition operator": ("{} repeats nothing", _SIGN),
    "bad repetition operator": (
        "two repetitions follow one another",
        "Remove one of them, or put a backslash before it to look for the character itself.",
    ),
    "invalid repetition size": (
        "{} repeats too often, or its larger number is first",
        "Repeat at most {{0,1000}} times; repetitions within one another multiply.",
    ),
    "trailing \\": ("a backslash at the end stands for nothing", "Write \\\\ to look for a backslash."),
    "invalid perl operator": (
        "groups that begin with {} are not known here",
        "Use (…), (?:…), or (?i) in front; looking ahead and behind is not possible.",
    ),
    "invalid named capture group": ("the name of the group {} cannot be read", "Use (…) or (?:…)."),
    "invalid escape sequence": (
        "{} is not known here",
        "Known are \\d \\w \\s \\b, their opposites \\D \\W \\S \\B, and a backslash before any sign.",
    ),
    "invalid character class range": (
        "the class {} cannot be read",
        "Write ranges such as a-z from the lower character.",
    ),
    _TOO_LARGE: ("the expression is too large", "Repeat fewer times."),
}
_UNKNOWN = ("the expression cannot be read ({})", "Write it in the syntax of RE2.")
_SMALL_BYTES = 1 << 14


class BadPattern(ValueError):
    """A pattern that cannot be read; `position` is the index of the character where."""

    def __init__(self, position: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.position, self.message, self.remedy = position, message, remedy


class TookTooLong(ValueError):
    """Texts could not be matched within the time budget."""


class Pattern:
    """A compiled pattern. Raises BadPattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_PATTERN:
            raise BadPattern(
                MAX_PATTERN, f"the expression has more than {MAX_PATTERN} characters", "Shorten it."
            )
        search, message = _compiled(text)
        if search is None:
            raise _refusal(text, message)
        self._search = search

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def is_in(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in the text."""
        return self._search(_bytes(text)) is not None

    def are_in(self, texts: Iterable[str]) -> list[bool]:
        """Whether the pattern occurs in each text. Raises TookTooLong after BUDGET_S."""
        return list(self._within_budget(texts))

    def _within_budget(self, texts: Iterable[str]) -> Iterator[bool]:
        deadline = time.monotonic() + BUDGET_S
        for text in texts:
            yield self._search(_bytes(text)) is not None
            if time.monotonic() > deadline:
                raise TookTooLong(self.text)


def _bytes(text: str) -> bytes:
    """UTF-8, also of texts with lone surrogates, which damaged files and command lines may contain."""
    return text.encode("utf-8", "surrogatepass")


def _compiled(text: str, max_bytes: int = MAX_BYTES) -> tuple[Callable[[bytes], object] | None, str]:
    """(what searches a text, None if the expression cannot be read; RE2's message)."""
    options = re2.Options()
    options.max_mem = max_bytes
    options.never_capture = True
    options.log_errors = False
    try:
        compiled = re2.compile(_bytes(text), options)
    except re2.error as error:
        return None, error.args[0].decode("utf-8", "replace")
    finally:
        re2.purge()  # its own cache would keep up to 128 expressions of MAX_BYTES
    if compiled.programsize > MAX_INSTRUCTIONS:
        return None, _TOO_LARGE
    return compiled.search, ""


def _refusal(text: str, message: str) -> BadPattern:
    """RE2's message in plain words, with the place that it does not state."""
    kind, _, part = message.partition(": ")
    if kind.startswith(_TOO_LARGE):
        kind = _TOO_LARGE
    words, remedy = _MESSAGES.get(kind, _UNKNOWN)
    part = part if kind in _MESSAGES else message
    return BadPattern(_position(text, kind, part), words.format(part), remedy.format())


def _position(text: str, kind: str, part: str) -> int:
    """The index of the character where RE2 stopped."""
    if kind == "missing ]":
        return len(text) - len(part)
    if kind == "trailing \\":
        return len(text) - 1
    if kind == "missing )":  # behind the longest beginning in which all brackets are closed
        return max(end for end in range(len(text)) if _fault(text[:end])[0] in ("", _TOO_LARGE))
    if kind not in _MESSAGES or kind == _TOO_LARGE:
        return 0
    # The first beginning with the same fault ends with the part that RE2 names.
    is_whole = kind == "unexpected )"
    for end in range(1, len(text) + 1):
        if _fault(text[:end]) == (kind, text[:end] if is_whole else part):
            return text.rfind(")" if is_whole else part, 0, end)
    return 0


def _fault(text: str) -> tuple[str, str]:
    """(RE2's kind of error, empty if there is none; the part concerned). Compiles no whole program."""
    kind, _, part = _compiled(text, _SMALL_BYTES)[1].partition(": ")
    return (_TOO_LARGE, "") if kind.startswith(_TOO_LARGE) else (kind, part)
