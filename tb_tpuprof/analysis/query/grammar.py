"""A query as text → its conditions, or an error that says where and why.

    query      = all { ( "OR" | "|" ) all }                  one of them must hold
    all        = { [ "AND" ] [ "-" ] ( condition | words | group ) }     all must hold; "-" excludes
    group      = "(" query ")"                              with an OR in it; else the brackets are text
    condition  = field operator value
    field      = "name" | "dur" | … | "arg" | "arg." NAME    (FIELDS)
    operator   = ":" contains | "=" exactly | "~" regular expression | ">" | ">=" | "<" | "<="
    value      = WORD | "…" | '…' | [ … ] | number [unit] | number ".." number
    words      = text that is no condition: a part of the event's name

What stands side by side binds closer than OR: `a b OR c` is `(a b) OR c`. OR and AND are capitals and stand
alone; in quotes they are text. Words in a row are one text, spaces included. `:` and words ignore case, `=`
and `~` do not. Brackets keep the spaces within them, quotes keep everything. `Eigen::Tensor` is text: a field
is not followed by two colons.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tb_tpuprof.analysis.query.patterns import BadPattern, Pattern
from tb_tpuprof.analysis.query.quantities import Bounds, Quantity, quantity, time_scale
from tb_tpuprof.errors import BadQuery

MAX_LENGTH, MAX_CONDITIONS, MAX_DEPTH = 2000, 32, 8


@dataclass(frozen=True)
class Field:
    """A field of the language. `kind`: text, time, number (a number or a text), or argument."""

    name: str
    kind: str
    meaning: str


FIELDS = (
    Field("name", "text", "the event's name"),
    Field("dur", "time", "duration, with a unit: dur>1ms"),
    Field("self", "time", "duration without the events directly inside"),
    Field("start", "time", "start in the view's time"),
    Field("track", "text", "name of the thread, stream or line"),
    Field("section", "text", "the device, or the group of threads, that the track is in"),
    Field("thread", "text", "like track, but only threads of hosts"),
    Field("kind", "text", "kind of track: stream, python, thread, hlo_ops, …"),
    Field("host", "text", "the host"),
    Field("step", "number", "step number, or its name: step:34..40, step:warmup"),
    Field("category", "text", "HLO category"),
    Field("module", "text", "compiled program that the operation belongs to"),
    Field("arg", "argument", "any argument, its value as text; arg.NAME: that argument"),
    Field("any", "text", "the name or any argument"),
)
BY_NAME = {field.name: field for field in FIELDS}
_OPERATOR = r"(>=|<=|>|<|=|~|:(?!:))"
_CONDITION = re.compile(
    rf"(?:(dur|self|start|step)\s*(?=[<>=:~]){_OPERATOR}\s*"
    rf"|(arg)(?:\.(\"[^\"]*\"|[^\s:=~<>\"]+))?{_OPERATOR}"
    rf"|({'|'.join(field.name for field in FIELDS if field.kind == 'text')}){_OPERATOR})"
)
_LIKE_CONDITION = re.compile(r"([A-Za-z]{2,12})(?:>=|<=|>|<|=|~|:(?!:))\S")
_UNIT_APART = re.compile(r"\s+(ps|ns|us|µs|μs|ms|s|min)(?=\s|$)")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_JOINT = re.compile(r"(OR|AND|\|)(?=\s|$)")
_OR = ("OR", "|")


@dataclass(frozen=True)
class TextTest:
    """A test of texts: `contains` (text is in lower case), `equals`, or `pattern`."""

    how: str
    text: str
    pattern: Pattern | None = None


@dataclass(frozen=True)
class Condition:
    """One condition. `argument` is the name after `arg.`, else empty. At least one of `text` and `bounds` is
    given; with both, a value that is a number is compared as one, any other as text.
    """

    field: str
    argument: str
    text: TextTest | None
    bounds: Bounds | None
    is_excluded: bool
    position: int


@dataclass(frozen=True)
class Alternatives:
    """Holds if all terms of one of the options hold."""

    options: tuple[tuple[Term, ...], ...]
    is_excluded: bool


Term: TypeAlias = "Condition | Alternatives"


@dataclass(frozen=True)
class Query:
    """A parsed query, whose terms must all hold; `text` is its source."""

    text: str
    terms: tuple[Term, ...]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, in the order of the text."""
        return tuple(_conditions_of(self.terms))


def _conditions_of(terms: tuple[Term, ...]) -> Iterator[Condition]:
    for term in terms:
        if isinstance(term, Condition):
            yield term
        else:
            for option in term.options:
                yield from _conditions_of(option)


def parse(text: str) -> Query:
    """The terms of a query. Raises BadQuery with the position of what it cannot read."""
    if len(text) > MAX_LENGTH:
        raise BadQuery(text, MAX_LENGTH, f"it has more than {MAX_LENGTH:,} characters", "Shorten it.")
    query = Query(text, _Parser(text, 0, len(text)).terms())
    conditions = query.conditions
    if len(conditions) > MAX_CONDITIONS:
        raise BadQuery(
            text,
            conditions[MAX_CONDITIONS].position,
            f"it has more than {MAX_CONDITIONS} conditions",
            "Shorten it.",
        )
    return query


class _Parser:
    """Reads the text from `at` to `end`; `depth` brackets are open around it."""

    def __init__(self, text: str, at: int, end: int, depth: int = 0) -> None:
        self.whole, self.depth = text, depth
        self.text = text[:end]
        self.at = at

    def terms(self) -> tuple[Term, ...]:
        """What must hold: the terms of the only option, or the options as one term."""
        options = self._options()
        return options[0] if len(options) == 1 else (Alternatives(options, False),)

    def _options(self) -> tuple[tuple[Term, ...], ...]:
        options: list[list[Term]] = [[]]
        words: list[tuple[int, int]] = []  # the words since the last term, as one span
        joint: re.Match[str] | None = None  # the last one, while no term follows it
        while self._skip_spaces():
            start = self.at
            found = _JOINT.match(self.text, start)
            term = None if found else self._term(start)
            if found is None and term is None:
                words = [(words[0][0] if words else start, self.at)]
            else:
                options[-1] += self._words(words)
                words = []
            if term is not None:
                options[-1].append(term)
            if found is not None:
                if joint or not options[-1]:
                    self._refuse_joint(found, "before")
                if found[1] in _OR:
                    options.append([])
                self.at = found.end()
            joint = found
        if joint:
            self._refuse_joint(joint, "after")
        options[-1] += self._words(words)
        return tuple(tuple(option) for option in options)

    def _refuse_joint(self, joint: re.Match[str], side: str) -> None:
        raise BadQuery(
            self.whole,
            joint.start(),
            f"{joint[1]} lacks a condition {side} it",
            f"Write one, such as name:dot {joint[1]} name:copy; quotes look for the text {joint[1]}.",
        )

    def _term(self, start: int) -> Term | None:
        """The term that begins here, or None and the word is passed."""
        is_excluded = self.text[start] == "-" and self.text[start + 1 : start + 2].strip() != ""
        self.at += is_excluded
        if self.text[self.at] == "(" and (group := self._group(is_excluded)):
            return group
        match = _CONDITION.match(self.text, self.at)
        if match:
            return self._condition(match, is_excluded, start)
        if is_excluded or self._is_quoted_word():
            return self._text(is_excluded, start)
        self._refuse_typos(start)
        self._word()
        return None

    def _group(self, is_excluded: bool) -> Alternatives | None:
        """The group in the brackets that open here; None if they are part of a text: no OR is in them."""
        inner = self.at + 1
        close, has_or = _inside(self.text, inner)
        if not has_or:
            return None
        if close < 0:
            raise BadQuery(
                self.whole,
                self.at,
                "the bracket ( is not closed",
                "Add ), or put the text in quotes to look for the bracket itself.",
            )
        if self.depth == MAX_DEPTH:
            raise BadQuery(
                self.whole, self.at, f"more than {MAX_DEPTH} brackets are open", "Remove some of them."
            )
        options = _Parser(self.whole, inner, close, self.depth + 1)._options()
        self.at = close + 1
        return Alternatives(options, is_excluded)

    def _words(self, spans: list[tuple[int, int]]) -> list[Condition]:
        return [
            Condition("name", "", TextTest("contains", self.text[a:b].lower()), None, False, a)
            for a, b in spans
        ]

    def _text(self, is_excluded: bool, start: int) -> Condition:
        value = self._value(start, is_pattern=False)
        return Condition("name", "", TextTest("contains", value.lower()), None, is_excluded, start)

    def _skip_spaces(self) -> bool:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at < len(self.text)

    def _is_quoted_word(self) -> bool:
        return self.text[self.at] in "\"'"

    def _word(self) -> None:
        while self.at < len(self.text) and not self.text[self.at].isspace():
            self.at += 1

    def _refuse_typos(self, start: int) -> None:
        """`tracks:stream` is more likely a mistake than a name."""
        match = _LIKE_CONDITION.match(self.text, start)
        if match is None:
            return
        word = match[1]
        like = difflib.get_close_matches(word.lower(), BY_NAME, 1, 0.75)
        if like:
            raise BadQuery(
                self.whole,
                start,
                f"there is no field {word!r}",
                f"Did you mean {like[0]}? To look for this text, put it in quotes.",
            )

    def _condition(self, match: re.Match[str], is_excluded: bool, start: int) -> Condition:
        field = BY_NAME[match[1] or match[3] or match[6]]
        operator = match[2] or match[5] or match[7]
        argument = (match[4] or "").strip('"')
        self.at = match.end()
        value_at = self.at
        if not self.text[self.at : self.at + 1].strip():
            raise BadQuery(self.whole, self.at, f"{match[0]} lacks a value", _EXAMPLES[field.kind])
        is_quoted = self._is_quoted_word()
        value = self._value(value_at, is_pattern=operator == "~")
        if field.kind == "time" and not is_quoted and value[-1:].isdigit():
            value += self._unit_apart()
        text, bounds = self._tests(field, argument, operator, value, value_at, is_quoted)
        return Condition(field.name, argument, text, bounds, is_excluded, start)

    def _unit_apart(self) -> str:
        """The unit of `dur > 1 ms`, if one stands apart."""
        match = _UNIT_APART.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match[1]

    def _value(self, start: int, is_pattern: bool) -> str:
        quote = self.text[self.at]
        if quote in "\"'":
            return self._quoted(quote)
        begin, closing = self.at, ""
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter.isspace() and not closing:
                break
            if not is_pattern and letter in _CLOSING and self._closes(_CLOSING[letter]):
                closing += _CLOSING[letter]
            elif closing and letter == closing[-1]:
                closing = closing[:-1]
            self.at += 1
        if self.at == begin:
            raise BadQuery(self.whole, start, "a value is missing", "Write one, such as name:dot.")
        return self.text[begin : self.at]

    def _closes(self, closing: str) -> bool:
        return closing in self.text[self.at + 1 :]

    def _quoted(self, quote: str) -> str:
        start, parts = self.at, []
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != quote:
            if self.text[self.at] == "\\" and self.text[self.at + 1 : self.at + 2] in (quote, "\\"):
                self.at += 1
            parts.append(self.text[self.at])
            self.at += 1
        if self.at >= len(self.text):
            raise BadQuery(
                self.whole, start, f"the quote {quote} is not closed", f"Add {quote} at the end of the value."
            )
        self.at += 1
        return "".join(parts)

    def _tests(
        self, field: Field, argument: str, operator: str, value: str, value_at: int, is_quoted: bool
    ) -> tuple[TextTest | None, Bounds | None]:
        takes_numbers = field.kind in ("time", "number") or bool(argument)
        if operator[0] in "<>":
            if not takes_numbers:
                raise BadQuery(
                    self.whole,
                    value_at - len(operator),
                    f"{field.name} is a text and cannot be compared with {operator}",
                    f"Use {field.name}: (contains), = (exactly) or ~ (regular expression).",
                )
            return None, _compared(operator, self._quantity(field, argument, value, value_at))
        if operator == "~":
            if field.kind == "time":
                raise BadQuery(self.whole, value_at - 1, f"{field.name} is a number", _EXAMPLES["time"])
            return self._pattern(value, value_at), None
        bounds = (
            None
            if is_quoted and field.kind != "time"
            else self._range(field, argument, operator, value, value_at)
        )
        how = "contains" if operator == ":" else "equals"
        text = TextTest(how, value.lower() if how == "contains" else value)
        if field.kind == "time":
            return None, bounds
        is_range = bounds is not None and ".." in value
        return (None if is_range else text), bounds

    def _pattern(self, value: str, value_at: int) -> TextTest:
        try:
            return TextTest("pattern", value, Pattern(value))
        except BadPattern as error:
            raise BadQuery(self.whole, value_at + error.position, error.message, error.remedy) from None

    def _range(self, field: Field, argument: str, operator: str, value: str, value_at: int) -> Bounds | None:
        """The bounds of `a..b`, `a..`, `..b` or of one number; None for a text of an argument or step."""
        low_text, dots, high_text = value.partition("..")
        if field.kind == "text" or (field.kind == "argument" and not argument):
            return None
        if not dots:
            if field.kind == "argument" and operator == ":":
                return None
            if field.kind != "time" and quantity(value) is None:
                return None
            single = self._quantity(field, argument, value, value_at)
            return Bounds(single.value, single.value, single.kind)
        is_number = all(quantity(part) for part in (low_text, high_text) if part) and (low_text or high_text)
        if field.kind != "time" and not is_number:
            return None
        high_at = value_at + len(low_text) + 2
        unit = re.sub(r"^[-+0-9.]+(?:e[-+]?[0-9]+)?", "", high_text)
        if low_text and unit and low_text[-1].isdigit():
            low_text += unit  # 1..2ms is 1ms..2ms
        low = self._quantity(field, argument, low_text, value_at) if low_text else None
        high = self._quantity(field, argument, high_text, high_at) if high_text or low is None else None
        if low and high and low.value > high.value:
            raise BadQuery(
                self.whole, value_at, f"the range {value} is empty", "Put the smaller number first."
            )
        kind = (high or low or Quantity(0, "plain")).kind
        return Bounds(low.value if low else None, high.value if high else None, kind)

    def _quantity(self, field: Field, argument: str, value: str, value_at: int) -> Quantity:
        number = quantity(value)
        if number is None:
            raise BadQuery(
                self.whole, value_at, f"{value!r} is not a number with a known unit", _EXAMPLES[field.kind]
            )
        if field.kind == "time" and number.kind == "amount":
            raise BadQuery(
                self.whole,
                value_at,
                f"{field.name} is a time, and {value!r} has no unit of time",
                _EXAMPLES["time"],
            )
        if field.kind == "time" and number.kind == "plain" and number.value:
            raise BadQuery(self.whole, value_at, f"{value!r} has no unit of time", _EXAMPLES["time"])
        if field.name == "step" and number.kind != "plain":
            raise BadQuery(self.whole, value_at, "a step number has no unit", _EXAMPLES["number"])
        if argument and number.kind == "time" and not time_scale(argument):
            raise BadQuery(
                self.whole,
                value_at,
                f"the name of the argument {argument} does not say in which unit its times are",
                "Compare it with a plain number, as the event's panel shows it.",
            )
        return number


_EXAMPLES = {
    "time": "Write a time such as dur>1ms, dur:10us..2ms; units are ps, ns, us, ms, s and min.",
    "number": "Write a number, a range or a part of the step's name: step:34, step:34..40, step:train.",
    "argument": "Write a text or a number: arg.shape=[8,128], arg.bytes_accessed>16MiB, arg.flops>=2GFLOP.",
    "text": "Write a text, such as name:dot, name=dot.3, name~^dot; put one with spaces in quotes.",
}


def _inside(text: str, start: int) -> tuple[int, bool]:
    """(the index of the bracket that closes the one before `start`, or -1; whether an OR is in between). What
    is in quotes, or behind a backslash, does not count.
    """
    depth, quote, has_or, at = 1, "", False, start
    while at < len(text):
        letter = text[at]
        is_first = at == start or text[at - 1].isspace() or text[at - 1] in "(:=~<>-"
        if letter == "\\":
            at += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and is_first:
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
            if not depth:
                return at, has_or
        elif is_first and (joint := _JOINT.match(text, at)) and joint[1] in _OR:
            has_or = True
        at += 1
    return -1, has_or


def _compared(operator: str, number: Quantity) -> Bounds:
    is_open = len(operator) == 1
    if operator[0] == ">":
        return Bounds(number.value, None, number.kind, is_low_open=is_open)
    return Bounds(None, number.value, number.kind, is_high_open=is_open)
