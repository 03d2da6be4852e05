"""The compiled programs of one host, each with its HLO module, which is read from the file on first use."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from tb_tpuprof.trace.hlo import HloModule

KEPT_BYTES = 512 * 2**20  # where no session bounds them together with everything else
_TITLE = re.compile(r"^(.*)\((\d+)\)$", re.DOTALL)


@dataclass(frozen=True)
class Program:
    """A program whose HLO can be read. Ids are int64 as in stats: an id above 2^63 in the file is negative
    here.

    `title` is the file's name for it, such as `jit_step(56)`; `name` is the title without the id. `path` is
    set if the HLO has a file of its own; else `position` is its byte offset in the trace's file.
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
    """A program by its title. An id in the title takes precedence over `program_id`, which old writers
    derived differently.
    """
    match = _TITLE.match(title)
    name = match.group(1) if match else title
    stated = int(match.group(2)) if match else program_id
    signed_id = -1 if stated is None else ((stated + 2**63) & (2**64 - 1)) - 2**63
    return Program(signed_id, name, title, size_bytes, position, path)


Watcher = Callable[["Programs", Program], object]


class Programs(Sequence[Program]):
    """Programs in the file's order; `module` opens one. Safe for use by several threads.

    Keeps opened modules while together they take less than `kept_bytes`; drops the least recently used first.
    A watcher is told of each use, so that it can drop modules sooner.
    """

    COUNTED_APART: ClassVar[bool] = True

    def __init__(
        self, programs: Sequence[Program], read: Callable[[Program], HloModule], kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._programs = tuple(programs)
        self._read = read
        self._kept_bytes = kept_bytes
        self._by_id = {program.program_id: program for program in reversed(self._programs)}
        self._modules: OrderedDict[Program, HloModule] = OrderedDict()
        self._lock = Lock()
        self._reading: dict[Program, Lock] = {}
        self._watcher: Watcher | None = None

    def watch(self, watcher: Watcher | None) -> None:
        """Call `watcher(self, program)` at each use of a module."""
        self._watcher = watcher

    def __len__(self) -> int:
        return len(self._programs)

    def __getitem__(self, index: int) -> Program:  # type: ignore[override]
        return self._programs[index]

    def __iter__(self) -> Iterator[Program]:
        return iter(self._programs)

    def get(self, program_id: int) -> Program | None:
        """The program with that id, signed or unsigned, or None."""
        return self._by_id.get(((program_id + 2**63) & (2**64 - 1)) - 2**63)

    def find(self, text: str) -> Program | None:
        """A program by title, by decimal id, or by name (the largest one of that name)."""
        if titled := [program for program in self if program.title == text]:
            return titled[0]
        if text.lstrip("-").isdecimal() and len(text) <= 20 and (by_id := self.get(int(text))):
            return by_id
        return max(
            (program for program in self if program.name == text),
            key=lambda program: program.size_bytes,
            default=None,
        )

    def module(self, program: Program | int) -> HloModule | None:
        """The HLO of a program (or of its id), None if there is none. Raises TraceFormatError or
        StorageError.
        """
        target = self.get(program) if isinstance(program, int) else program
        if target is None:
            return None
        module = self._opened(target)
        if self._watcher:
            self._watcher(self, target)
        return module

    def _opened(self, target: Program) -> HloModule:
        with self._lock:
            reading = self._reading.setdefault(target, Lock())
        with reading:
            with self._lock:
                opened = self._modules.get(target)
                if opened is not None:
                    self._modules.move_to_end(target)
                    return opened
            module = self._read(target)
            with self._lock:
                self._modules[target] = module
                self._drop_old()
            return module

    @property
    def size_bytes(self) -> int:
        """Memory of the opened modules."""
        with self._lock:
            return sum(module.size_bytes for module in self._modules.values())

    def bytes_of(self, program: Hashable) -> int:
        """Memory of an opened module and, about, of what was computed from it."""
        with self._lock:
            module = self._modules.get(program)  # type: ignore[call-overload]
        return module.kept_bytes if module else 0

    def drop(self, program: Hashable) -> bool:
        """Forget an opened module."""
        with self._lock:
            self._modules.pop(program, None)  # type: ignore[call-overload]
        return True

    def _drop_old(self) -> None:
        total = sum(module.size_bytes for module in self._modules.values())
        for program in list(self._modules)[:-1]:
            if total <= self._kept_bytes:
                break
            total -= self._modules.pop(program).size_bytes
