"""Regular expressions that cannot run away: matched in time linear in the text, whatever the pattern.

Python's own engine tries one alternative after another, which for `(a+)+$` takes years. Here a pattern
becomes a graph of states (Thompson), and all states that a text can be in advance together, one character
at a time; the sets that occur are kept, so that known texts cost one look-up per character.

    a(b|c)*d     ─a─▶(1)─┬─b─┬─▶(1)
                         └─c─┘
                     (1)──d──▶ match

Known: characters, `.`, classes `[a-z]`, `\\d \\w \\s` and their opposites, `^ $`, groups, `|`, `* + ?`,
`{m,n}`, `(?i)` in front. Not known: references back, looking ahead or behind, `\\b`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

MAX_PATTERN, MAX_STATES, MAX_SETS, MAX_REPEATS = 500, 4000, 3000, 100
BUDGET_S = 10.0
_CHECK_EVERY = 256
_CLASSES = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": r"\s", "S": r"\S"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_QUANTIFIED = "Remove one of them, or put a backslash before it to look for the character itself."


class BadPattern(ValueError):
    """A pattern that cannot be read; `position` is the index of the character where."""

    def __init__(self, position: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.position, self.message, self.remedy = position, message, remedy


class TookTooLong(ValueError):
    """Texts could not be matched within the time budget."""


Accepts = Callable[[str], bool]


@dataclass
class _State:
    """`accepts` a character and leads to `then`; without `accepts` leads to all of `then` at once. `anchor`:
    ^ or $, which hold only at the text's ends.
    """

    accepts: Accepts | None
    then: list[int]
    anchor: str = ""


class Pattern:
    """A compiled pattern. Raises BadPattern."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ignores_case = text.startswith("(?i)")
        offset = 4 if self.ignores_case else 0
        body = text[offset:].lower() if self.ignores_case else text[offset:]
        if len(text) > MAX_PATTERN:
            raise BadPattern(
                MAX_PATTERN, f"the expression has more than {MAX_PATTERN} characters", "Shorten it."
            )
        reader = _Reader(body, offset)
        self._states, self._first = reader.states, reader.whole()
        self._last = reader.last
        self._forget()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def _forget(self) -> None:
        self._number: dict[frozenset[int], int] = {}
        self._sets: list[frozenset[int]] = []
        self._steps: list[dict[str, int]] = []
        self._accepting: list[bool] = []
        self._start = self._numbered(self._closure((self._first,), is_start=True))

    def _numbered(self, states: frozenset[int]) -> int:
        number = self._number.get(states)
        if number is None:
            number = self._number[states] = len(self._sets)
            self._sets.append(states)
            self._steps.append({})
            self._accepting.append(self._last in states)
        return number

    def _closure(self, states: Iterable[int], is_start: bool = False, is_end: bool = False) -> frozenset[int]:
        """All states that are reached without a character."""
        reached: set[int] = set()
        waiting = list(states)
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            state = self._states[number]
            if state.accepts is None and (not state.anchor or (is_start if state.anchor == "^" else is_end)):
                waiting += state.then
        return frozenset(reached)

    def is_in(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in the text."""
        if self.ignores_case:
            text = text.lower()
        if len(self._sets) > MAX_SETS:
            self._forget()
        steps, accepting, current = self._steps, self._accepting, self._start
        if accepting[current]:
            return True
        for letter in text:
            following = steps[current].get(letter)
            if following is None:
                following = self._step(current, letter)
            current = following
            if accepting[current]:
                return True
        return self._last in self._closure(self._sets[current], is_start=not text, is_end=True)

    def _step(self, number: int, letter: str) -> int:
        moved = [
            target
            for state in (self._states[i] for i in self._sets[number])
            if state.accepts is not None and state.accepts(letter)
            for target in state.then
        ]
        # The pattern may begin at every character.
        following = self._numbered(self._closure((*moved, self._first)))
        self._steps[number][letter] = following
        return following

    def are_in(self, texts: Iterable[str]) -> list[bool]:
        """Whether the pattern occurs in each text. Raises TookTooLong after BUDGET_S."""
        deadline = time.monotonic() + BUDGET_S
        result = []
        for i, text in enumerate(texts):
            result.append(self.is_in(text))
            if i % _CHECK_EVERY == 0 and time.monotonic() > deadline:
                raise TookTooLong(self.text)
        return result


class _Reader:
    """Reads a pattern into states. A fragment is (its first state, its last one)."""

    def __init__(self, text: str, offset: int) -> None:
        self.text, self.offset, self.at = text, offset, 0
        self.states: list[_State] = []
        self.last = -1

    def whole(self) -> int:
        first, last = self._alternatives()
        if self.at < len(self.text):
            self._fail(
                "the bracket ) was not opened", "Put a backslash before it to look for the character itself."
            )
        self.last = last
        return first

    def _fail(self, message: str, remedy: str) -> None:
        raise BadPattern(self.offset + min(self.at, max(len(self.text) - 1, 0)), message, remedy)

    def _add(self, accepts: Accepts | None = None, anchor: str = "") -> int:
        if len(self.states) >= MAX_STATES:
            self._fail("the expression is too large", "Repeat fewer times.")
        self.states.append(_State(accepts, [], anchor))
        return len(self.states) - 1

    def _alternatives(self) -> tuple[int, int]:
        branches = [self._sequence()]
        while self.text[self.at : self.at + 1] == "|":
            self.at += 1
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]
        first, last = self._add(), self._add()
        for a, b in branches:
            self.states[first].then.append(a)
            self.states[b].then.append(last)
        return first, last

    def _sequence(self) -> tuple[int, int]:
        first = last = self._add()
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            start = self.at
            a, b = self._atom()
            a, b = self._repeated(a, b, start)
            self.states[last].then.append(a)
            last = b
        return first, last

    def _repeated(self, a: int, b: int, start: int) -> tuple[int, int]:
        low, high = self._counts()
        if (low, high) == (1, 1):
            return a, b
        if self.text[self.at : self.at + 1] in ("*", "+", "?", "{") and self.text[self.at : self.at + 1]:
            if self.text[self.at] == "?":
                self.at += 1  # as few as possible: the same texts match
            elif self._is_counted():
                self._fail("two repetitions follow one another", _QUANTIFIED)
        end = self.at
        first = last = self._add()
        for i in range(max(low, high if high is not None else low + 1)):
            if i:
                self.at = start
                a, b = self._atom()
            self.states[last].then.append(a)
            gate = self._add()
            self.states[b].then.append(gate)
            if i >= low:
                self.states[last].then.append(gate)
            if high is None and i == max(low, 1) - 1:
                self.states[gate].then.append(a)
            last = gate
            if high is None and i >= max(low, 1) - 1:
                break
        self.at = end
        return first, last

    def _is_counted(self) -> bool:
        return self.text[self.at] != "{" or re.match(r"\{\d*,?\d*\}", self.text[self.at :]) is not None

    def _counts(self) -> tuple[int, int | None]:
        """How often the atom before may occur; None is without limit."""
        letter = self.text[self.at : self.at + 1]
        if letter and letter in "*+?":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[letter]
        match = re.match(r"\{(\d{1,4})?(,?)(\d{1,4})?\}", self.text[self.at :])
        if match is None or not (match[1] or match[3]):
            return 1, 1
        low = int(match[1] or 0)
        high = int(match[3]) if match[3] else None if match[2] else low
        if max(low, high or 0) > MAX_REPEATS or (high is not None and high < low):
            self._fail(
                f"a repetition is at most {{0,{MAX_REPEATS}}}, the smaller number first",
                "Repeat fewer times.",
            )
        self.at += match.end()
        return low, high

    def _atom(self) -> tuple[int, int]:
        letter = self.text[self.at]
        if letter == "(":
            return self._group()
        if letter in "*+?":
            self._fail(
                f"{letter} repeats nothing", "Put a backslash before it to look for the character itself."
            )
        self.at += 1
        if letter in "^$":
            return self._link(self._add(anchor=letter))
        if letter == ".":
            return self._link(self._add(lambda c: c != "\n"))
        if letter == "[":
            return self._link(self._add(self._class()))
        if letter == "\\":
            return self._link(self._add(self._escape()))
        return self._link(self._add(letter.__eq__))

    def _link(self, first: int) -> tuple[int, int]:
        last = self._add()
        self.states[first].then.append(last)
        return first, last

    def _group(self) -> tuple[int, int]:
        opened = self.at
        self.at += 1
        if self.text.startswith("?:", self.at):
            self.at += 2
        elif self.text.startswith("?", self.at):
            self._fail("groups that begin with (? are not known here", "Use (…) or (?:…).")
        inner = self._alternatives()
        if self.text[self.at : self.at + 1] != ")":
            self.at = opened
            self._fail("the bracket ( is not closed", "Add ) or put a backslash before it.")
        self.at += 1
        return inner

    def _escape(self) -> Accepts:
        letter = self.text[self.at : self.at + 1]
        if not letter:
            self._fail("a backslash at the end stands for nothing", "Write \\\\ to look for a backslash.")
        if letter not in _CLASSES and letter not in _ESCAPES and letter.isalnum():
            self._fail(f"\\{letter} is not known here", "Known are \\d \\w \\s \\D \\W \\S and characters.")
        self.at += 1
        if letter in _CLASSES:
            return _in_class(_CLASSES[letter])
        return _ESCAPES.get(letter, letter).__eq__

    def _class(self) -> Accepts:
        match = re.match(r"\^?\]?(?:\\.|[^\]\\])*\]", self.text[self.at :], re.DOTALL)
        if match is None:
            self.at -= 1
            self._fail("the bracket [ is not closed", "Add ] or put a backslash before it.")
            raise AssertionError
        try:
            accepts = _in_class("[" + re.sub(r"(?<!\\)\[", r"\\[", match[0][:-1]).replace("&&", "&\\&") + "]")
        except re.error:
            self._fail(
                "the class in [ ] cannot be read", "Write ranges such as a-z from the lower character."
            )
            raise
        self.at += match.end()
        return accepts


def _in_class(expression: str) -> Accepts:
    """Whether a character belongs to a class: one character at a time is safe in Python's engine."""
    matches = re.compile(expression, re.DOTALL).fullmatch
    return lambda letter: matches(letter) is not None
