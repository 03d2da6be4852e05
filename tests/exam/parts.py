"""Planted causes as source text: a part fills some places of a program (`programs.py`).

`$f`, `$g`, … become neutral names, `$on` and `$amount` the numbers that switch the cause on, `$spent` the sum
of its seconds. A line `@name` is replaced by the block of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent, indent

SHARES = (0.1, 0.3, 0.8)


@dataclass(frozen=True)
class Part:
    """One way to plant a cause; with cause "" an activity of healthy jobs.

    `culprits`: roles of the functions that an answer may name, the planted one first; `names`: other names it
    may give. `seen`: whether a trace can name them: "python" with the Python tracer only. `needs_python`: a
    trace without the Python tracer cannot show the cause. `tune`: "amount", or "work" if the cause has a
    fixed cost and the other work is adjusted, or "cold". `lap`: its period in steps.
    """

    name: str
    cause: str
    frameworks: tuple[str, ...] = ("jax", "tensorflow")
    imports: str = ""  # for the file with `side`
    side: str = ""  # functions that may have their own file
    main: str = ""  # lines at the top of the program
    make: str = ""  # lines that rebuild everything
    fetch: str = ""  # the data of a step
    before: str = ""  # lines of a step before the compiled step
    call: str = ""  # instead of the compiled step
    after: str = ""  # lines after it
    cell: str = ""  # lines at the end of the compiled step, where `w` and `x` are defined
    culprits: tuple[str, ...] = ("f",)
    names: tuple[str, ...] = ()
    seen: str = "python"
    needs_python: bool = False
    tune: str = "amount"
    amount: float = 0.004  # to begin with
    shares: tuple[float, ...] = SHARES
    accepted: tuple[str, ...] = ()  # causes that are also right
    lap: int = 1
    is_direct: bool = False  # whether its seconds add directly to the step, without overlap
    is_async: bool = False  # the loop must not wait for each step
    is_wide: bool = True  # whether it works with a step that is spread over devices


def put(text: str, **blocks: str) -> str:
    """The text without its common indentation; a line `@name` becomes the block of that name, indented like
    it.
    """
    filled = re.sub(
        r"^( *)@(\w+)$",
        lambda line: indent(blocks[line[2]], line[1]),
        dedent(text).strip("\n"),
        flags=re.MULTILINE,
    )
    return filled.rstrip()


def timed(lines: str) -> str:
    """The lines, with their seconds added to the part's."""
    return put("a = clock()\n@lines\n$spent += clock() - a", lines=lines)


SLEEP = "time.sleep($amount)"
COMPUTE = put("""
    n = 0
    for i in range(int($amount)):
        n = (n * 31 + i) % 1000003
    """)
