"""Source stacks of an HLO module: frame ids → file, line and function of each caller."""

from __future__ import annotations

from dataclasses import dataclass

_MAX_DEPTH = 1000


@dataclass(frozen=True)
class SourceLocation:
    """A position in the program's source. Columns and end lines are 0 if the file does not record them."""

    file: str
    function: str
    line: int
    end_line: int = 0
    column: int = 0
    end_column: int = 0

    @property
    def text(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class StackFrames:
    """The module's tables of names, locations and frames. Their numbers start at 1 as in the file; 0 is none.

    A location is (file, function, line, column, end_line, end_column), a frame (location, parent frame).
    """

    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    locations: tuple[tuple[int, int, int, int, int, int], ...] = ()
    frames: tuple[tuple[int, int], ...] = ()

    def stack(self, frame: int) -> list[SourceLocation]:
        """The frame and its callers, innermost first; stops at a missing or repeated frame."""
        callers: list[SourceLocation] = []
        seen: set[int] = set()
        while 0 < frame <= len(self.frames) and frame not in seen and len(callers) < _MAX_DEPTH:
            seen.add(frame)
            location, parent = self.frames[frame - 1]
            if 0 < location <= len(self.locations):
                file, function, line, column, end_line, end_column = self.locations[location - 1]
                place = (
                    _name_at(self.files, file),
                    _name_at(self.functions, function),
                    line,
                    end_line,
                    column,
                    end_column,
                )
                callers.append(SourceLocation(*place))
            frame = parent
        return callers


def _name_at(names: tuple[str, ...], number: int) -> str:
    return names[number - 1] if 0 < number <= len(names) else ""
