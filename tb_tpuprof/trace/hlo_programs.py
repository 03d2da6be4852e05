"""The compiled programs of one host: which there are, and each one's HLO module, read from the file when
first asked for.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb_tpuprof.trace.hlo import HloModule

KEPT_BYTES = 512 * 2**20
_TITLE = re.compile(r"^(.*)\((\d+)\)$", re.DOTALL)


@dataclass(frozen=True)
class Program:
    """A program whose HLO can be read. Ids are int64 as stats hold them: one above 2^63 in the file is
    negative here.

    `title` is what the file calls it, such as `jit_step(56)`; `name` is that without the id. `path` is set
    where the HLO stands in a file of its own, else `position` is its place in the trace's file.
    """

    program_id: int
    name: str
    title: str
    size_bytes: int
    position: int = -1
    path: str = ""


def program_of(
    title: str, program_id: int | None, size_bytes: int, position: int = -1, path: str = ""
) -> Program:
    """A program by its title; the id in the title goes before the other one, which old writers made of
    something else.
    """
    match = _TITLE.match(title)
    name = match.group(1) if match else title
    stated = int(match.group(2)) if match else program_id
    known = -1 if stated is None else ((stated + 2**63) & (2**64 - 1)) - 2**63
    return Program(known, name, title, size_bytes, position, path)


class Programs(Sequence[Program]):
    """Programs in the file's order; `module` opens one. Safe for use by several threads.

    Opened modules are kept as long as they take less than `kept_bytes` together, the longest unused dropped
    first.
    """

    def __init__(
        self, found: Sequence[Program], read: Callable[[Program], HloModule], kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._found = tuple(found)
        self._read = read
        self._kept_bytes = kept_bytes
        self._by_id = {program.program_id: program for program in reversed(self._found)}
        self._modules: OrderedDict[Program, HloModule] = OrderedDict()
        self._lock = Lock()
        self._reading: dict[Program, Lock] = {}

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: int) -> Program:  # type: ignore[override]
        return self._found[index]

    def __iter__(self) -> Iterator[Program]:
        return iter(self._found)

    def get(self, program_id: int) -> Program | None:
        """The program of that id, signed or unsigned, or None."""
        return self._by_id.get(((program_id + 2**63) & (2**64 - 1)) - 2**63)

    def find(self, text: str) -> Program | None:
        """A program by title, by id in decimal, or by name (the largest of that name)."""
        if match := [program for program in self if program.title == text]:
            return match[0]
        if text.lstrip("-").isdecimal() and len(text) <= 20 and (known := self.get(int(text))):
            return known
        return max(
            (program for program in self if program.name == text),
            key=lambda program: program.size_bytes,
            default=None,
        )

    def module(self, program: Program | int) -> HloModule | None:
        """The HLO of a program (or of its id), None where there is none such. Raises TraceFormatError or
        StorageError.
        """
        wanted = self.get(program) if isinstance(program, int) else program
        if wanted is None:
            return None
        with self._lock:
            reading = self._reading.setdefault(wanted, Lock())
        with reading:
            with self._lock:
                known = self._modules.get(wanted)
                if known is not None:
                    self._modules.move_to_end(wanted)
                    return known
            module = self._read(wanted)
            with self._lock:
                self._modules[wanted] = module
                self._drop_old()
            return module

    @property
    def size_bytes(self) -> int:
        """Memory of the modules that are kept."""
        with self._lock:
            return sum(module.size_bytes for module in self._modules.values())

    def _drop_old(self) -> None:
        total = sum(module.size_bytes for module in self._modules.values())
        for program in list(self._modules)[:-1]:
            if total <= self._kept_bytes:
                break
            total -= self._modules.pop(program).size_bytes
