"""Formulas with a run's numbers put in, for the tooltips of tiles: `1 − 4.90 ms ÷ 12.3 ms = 60.2%`."""

from __future__ import annotations

from tb_tpuprof.units import format_fraction, format_time, format_value


def quotient(
    pair: tuple[float, float],
    units: str | tuple[str, str],
    result: float | None = None,
    result_unit: str = "fraction",
    words: str = "",
) -> str:
    """`a ÷ b = result`. `units`: of both numbers, or of each; `result`: the quotient unless it is given;
    `words` follow the second number. Empty if the divisor is 0 or unknown.
    """
    above, below = pair
    if not below or below != below or above != above:
        return ""
    first, second = (units, units) if isinstance(units, str) else units
    shown = above / below if result is None else result
    base = f"{format_value(below, second)} {words}".strip()
    return f"{format_value(above, first)} ÷ {base} = {format_value(shown, result_unit)}"


def rest(busy_ps: float, total_ps: float, base: str = "") -> str:
    """`1 − busy ÷ total = share`: the share of the time that is not busy. `base` names the total. Empty
    without time.
    """
    if not total_ps:
        return ""
    total = f"{format_time(total_ps)} {base}".strip()
    return f"1 − {format_time(busy_ps)} busy ÷ {total} = {format_fraction(1 - busy_ps / total_ps)}"


def difference(pair: tuple[float, float], unit: str) -> str:
    """`a − b = difference`."""
    first, second = pair
    return (
        f"{format_value(first, unit)} − {format_value(second, unit)} = {format_value(first - second, unit)}"
    )
