"""The stat `flow`: each `in` comes from the latest `out` of its category and id."""

from __future__ import annotations

from tb_tpuprof.analysis.events.flow_points import flow_arrows
from tests.builders import drawing

IN, OUT, BOTH = 1, 2, 3


def flow(number: int, direction: int, category: int = 5) -> dict[str, int]:
    """The stat as TensorFlow packs it: category (6 bits) | id (56 bits) | direction (2 bits)."""
    value = category << 58 | number << 2 | direction
    return {"flow": value - (1 << 64) if value >= 1 << 63 else value}


def arrows(text: str, stats: dict[str, dict[str, int]]) -> list[tuple[str, str, int]]:
    """(from, to, category) of each arrow, sorted."""
    trace = drawing(text, stats)
    found = flow_arrows(trace)
    names = [trace.strings[i] for i in trace.event_names[trace.events["metadata"]].tolist()]
    return sorted(
        (names[a], names[b], kind)
        for a, b, kind in zip(
            found.source.tolist(), found.target.tolist(), found.category.tolist(), strict=True
        )
    )


def test_each_in_comes_from_the_latest_out_before_it() -> None:
    found = arrows(
        """
        one    [o1]         [o2]
        two        [i1]          [i2]
        three            [i3]         [i4]
        """,
        {
            "o1": flow(7, OUT),
            "o2": flow(7, OUT),
            "i1": flow(7, IN),
            "i2": flow(7, IN),
            "i3": flow(7, IN),
            "i4": flow(8, IN),
        },
    )
    assert found == [("o1", "i1", 5), ("o1", "i3", 5), ("o2", "i2", 5)]


def test_in_and_out_continues_a_chain() -> None:
    found = arrows(
        """
        one    [o1]
        two        [b1]
        three           [b2]
        four                 [i1]
        """,
        {"o1": flow(0, OUT, 63), "b1": flow(0, BOTH, 63), "b2": flow(0, BOTH, 63), "i1": flow(0, IN, 63)},
    )
    assert found == [("b1", "b2", 63), ("b2", "i1", 63), ("o1", "b1", 63)]


def test_ids_and_categories_are_kept_apart() -> None:
    found = arrows(
        """
        one    [o1][o2][o3]
        two                [i1][i2][i3]
        """,
        {
            "o1": flow(1, OUT, 0),
            "o2": flow(1, OUT, 2),
            "o3": flow(2, OUT, 0),
            "i1": flow(1, IN, 2),
            "i2": flow(2, IN, 0),
            "i3": flow(1, IN, 0),
        },
    )
    assert found == [("o1", "i3", 0), ("o2", "i1", 2), ("o3", "i2", 0)]


def test_an_in_before_every_out_comes_from_the_first_one() -> None:
    found = arrows(
        """
        one         [o1]   [o2]
        two    [i1]     [i2]
        """,
        {"o1": flow(9, OUT), "o2": flow(9, OUT), "i1": flow(9, IN), "i2": flow(9, IN)},
    )
    assert found == [("o1", "i1", 5), ("o1", "i2", 5)]


def test_points_of_one_moment_are_an_out_then_an_in() -> None:
    found = arrows(
        """
        two    [i1]
        one    [o1][o2]
        three      [i2]
        """,
        {"o1": flow(3, OUT), "o2": flow(3, OUT), "i1": flow(3, IN), "i2": flow(3, IN)},
    )
    assert found == [("o1", "i1", 5), ("o2", "i2", 5)]


def test_points_of_one_moment_pass_through_what_is_in_and_out() -> None:
    """Wherever they stand in the file."""
    found = arrows(
        """
        one    [i1]
        two    [b1]
        three  [o1]
        """,
        {"o1": flow(3, OUT), "b1": flow(3, BOTH), "i1": flow(3, IN)},
    )
    assert found == [("b1", "i1", 5), ("o1", "b1", 5)]


def test_the_first_id_s_points_before_every_out() -> None:
    found = arrows(
        """
        one    [i1][i2]   [i3]
        two            [o1]
        """,
        {"o1": flow(0, OUT, 0), "i1": flow(0, IN, 0), "i2": flow(0, IN, 0), "i3": flow(0, IN, 0)},
    )
    assert found == [("o1", "i1", 0), ("o1", "i2", 0), ("o1", "i3", 0)]


def test_points_without_a_partner_give_no_arrow() -> None:
    assert arrows("one  [o1][i1]", {"o1": flow(1, OUT), "i1": flow(2, IN)}) == []
    assert arrows("one  [i0][i1]", {"i0": flow(0, IN, 0), "i1": flow(2, IN)}) == []
    assert arrows("one  [o1]", {}) == []
