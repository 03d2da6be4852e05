"""Which of a page's numbers are its tiles: known ones, each once, at most six."""

from __future__ import annotations

import pytest

from tb_tpuprof.tools import all_tools
from tb_tpuprof.tools.payload import Scalar
from tb_tpuprof.tools.tiles import Tile, shown_tiles, tiles
from tb_tpuprof.tools.tool import Tool


def scalars(**values: float | bool | None) -> dict[str, Scalar]:
    return {name: Scalar(value, "fraction", name) for name, value in values.items()}


def test_unknown_and_missing_numbers_are_no_tiles() -> None:
    declared = tiles("b", "missing", "unknown", "a", "zero", "no")
    shown = shown_tiles(declared, scalars(a=1.0, b=2.0, unknown=None, zero=0.0, no=False))
    assert shown == ("b", "a", "zero", "no")


def test_a_tile_may_need_a_least_value() -> None:
    declared = tiles(Tile("small", least=0.005), Tile("exact", least=0.005), Tile("large", least=0.005))
    assert shown_tiles(declared, scalars(small=0.00499, exact=0.005, large=0.4)) == ("exact", "large")


@pytest.mark.parametrize(
    ("other", "is_shown"), [(0.302, True), (0.3015, False), (0.301, False), (0.3, True), (None, True)]
)
def test_a_number_stands_there_once(other: float | None, is_shown: bool) -> None:
    declared = tiles("idle", Tile("other", unlike="idle"))
    shown = shown_tiles(declared, scalars(idle=other, other=0.3012))
    assert ("other" in shown) is is_shown


@pytest.mark.parametrize(("other", "is_shown"), [(-0.5, False), (-0.5005, False), (-0.6, True), (0.5, True)])
def test_negative_numbers_are_compared_by_size(other: float, is_shown: bool) -> None:
    shown = shown_tiles(tiles(Tile("b", unlike="a")), scalars(a=other, b=-0.5))
    assert shown == (("b",) if is_shown else ())


def test_two_zeros_are_the_same_number() -> None:
    assert shown_tiles(tiles("a", Tile("b", unlike="a")), scalars(a=0.0, b=0.0)) == ("a",)


def test_at_most_six_in_declared_order() -> None:
    names = [f"n{i}" for i in (3, 1, 4, 0, 5, 9, 2, 6)]
    assert shown_tiles(tiles(*names), scalars(**dict.fromkeys(sorted(names), 1.0))) == tuple(names[:6])


@pytest.mark.parametrize("tool", [tool for tool in all_tools() if tool.tiles], ids=lambda tool: tool.name)
def test_tiles_are_declared_numbers_of_their_page(tool: Tool) -> None:
    declared = {spec.name for spec in tool.scalars}
    names = [tile.name for tile in tool.tiles]
    assert len(set(names)) == len(names)
    assert {*names, *(name for tile in tool.tiles for name in tile.unlike.split())} <= declared
    assert len(names) > 2
