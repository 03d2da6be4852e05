"""Source stacks of an HLO module: frame ids → file, line and function of each caller."""

from __future__ import annotations

from dataclasses import dataclass

_MAX_DEPTH = 1000


@dataclass(frozen=True)
class SourceLocation:
    """A place in the program's source. Columns and end lines are 0 where the file does not tell."""

    file: str
    function: str
    line: int
    end_line: int = 0
    column: int = 0
    end_column: int = 0

    @property
    def text(self) -> str:
        """As `file:line`."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class StackFrames:
    """The module's tables of names, places and frames, whose numbers begin at 1 as in the file; 0 is none.

    A location is (file, function, line, column, end_line, end_column), a frame (location, parent frame).
    """

    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    locations: tuple[tuple[int, int, int, int, int, int], ...] = ()
    frames: tuple[tuple[int, int], ...] = ()

    def stack(self, frame: int) -> list[SourceLocation]:
        """The frame and its callers, innermost first; ends at a frame that is missing or was
        there already.
        """
        found: list[SourceLocation] = []
        seen: set[int] = set()
        while 0 < frame <= len(self.frames) and frame not in seen and len(found) < _MAX_DEPTH:
            seen.add(frame)
            location, parent = self.frames[frame - 1]
            if 0 < location <= len(self.locations):
                file, function, line, column, end_line, end_column = self.locations[location - 1]
                place = (
                    _at(self.files, file),
                    _at(self.functions, function),
                    line,
                    end_line,
                    column,
                    end_column,
                )
                found.append(SourceLocation(*place))
            frame = parent
        return found


def _at(names: tuple[str, ...], number: int) -> str:
    return names[number - 1] if 0 < number <= len(names) else ""
