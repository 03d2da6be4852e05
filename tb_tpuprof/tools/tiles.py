"""The key numbers that a page opens with: chosen among its scalars by what the run has.

declared               value                           shown
"step_time_avg_ps"     12.4 ms                         yes
Tile(…, unlike=…)      14.8%, and so is the other one  no: a number stands there once
Tile(…, least=1)       0 B                             no
"flops_fraction"       unknown                         no: its note says why
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tb_tpuprof.tools.payload import Scalar

MAX_TILES = 6
_SAME = 0.002  # of the number: two tiles that differ by less would show the same three digits


@dataclass(frozen=True)
class Tile:
    """A scalar that a page shows as a tile if its value is known, at least `least`, and not the same number
    as one of the scalars `unlike`, separated by spaces; and if the value of the scalar `unless` is not known.
    """

    name: str
    least: float | None = None
    unlike: str = ""
    unless: str = ""


def tiles(*names: str | Tile) -> tuple[Tile, ...]:
    """Tiles in display order; a name stands for a tile without conditions."""
    return tuple(Tile(name) if isinstance(name, str) else name for name in names)


def shown_tiles(declared: Sequence[Tile], scalars: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Names of the scalars that the page shows, at most six."""
    shown = [tile.name for tile in declared if _is_shown(tile, scalars)]
    return tuple(shown[:MAX_TILES])


def _is_shown(tile: Tile, scalars: Mapping[str, Scalar]) -> bool:
    value = _value(scalars, tile.name)
    if value is None or (tile.least is not None and value < tile.least):
        return False
    if tile.unless and _value(scalars, tile.unless) is not None:
        return False
    others = [_value(scalars, name) for name in tile.unlike.split()]
    return all(other is None or abs(value - other) > _SAME * abs(other) for other in others)


def _value(scalars: Mapping[str, Scalar], name: str) -> float | None:
    scalar = scalars.get(name)
    return None if scalar is None or scalar.value is None else float(scalar.value)
