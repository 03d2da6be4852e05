"""Rules about operations of compiled programs: pages that show the same one show the same of it, and sums of
work are those of their parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_tpuprof.tools.payload import Payload, Table
from tests.consistency.pages import EQUAL, Pages, Violation, column_of, numbers_of, texts_of

_SAME = (
    "n_occurrences",
    "total_time_ps",
    "total_self_time_ps",
    "hbm_bytes_per_s",
    "memory_bandwidth_bytes_per_s",
    "operational_intensity_flops_per_byte",
)


def operations_agree(pages: Pages) -> Iterator[Violation]:
    """An operation has the same numbers on the pages of HLO statistics, roofline and op profile."""
    found = [
        _by_op(pages[page].tables["ops"]) if page in pages and "ops" in pages[page].tables else {}
        for page in ("hlo_stats", "roofline_model")
    ]
    yield from _compared(*found)
    if "op_profile" in pages:
        yield from _in_the_tree(pages["op_profile"].tables["nodes"], found[0])
    yield from _rates(pages)


Rows = dict[tuple[str, str], dict[str, float | str]]


def _by_op(table: Table) -> Rows:
    """Rows by program and name; those whose name a program uses more than once are left out."""
    columns = {
        column.name: texts_of(column) if column.strings is not None else numbers_of(column).tolist()
        for column in table.columns
    }
    keys = list(zip(columns.get("program", ()), columns["op"], strict=False))
    count: dict[tuple[str, str], int] = {}
    for key in keys:
        count[key] = count.get(key, 0) + 1
    return {
        key: {name: values[row] for name, values in columns.items()}
        for row, key in enumerate(keys)
        if count[key] == 1
    }


def _near(a: float, b: float) -> bool:
    return (a != a and b != b) or abs(a - b) <= EQUAL * max(abs(a), abs(b)) + 1e-9


def _compared(ours: Rows, theirs: Rows) -> Iterator[Violation]:
    for key in ours.keys() & theirs.keys():
        for name in _SAME:
            if name not in ours[key] or name not in theirs[key]:
                continue
            a, b = float(ours[key][name]), float(theirs[key][name])
            if not _near(a, b):
                text = f"`{key[1]}` of `{key[0]}`: {name} is {a:g} and {b:g}"
                yield Violation("operations agree", "hlo_stats, roofline_model", text)
        if ours[key]["bound_by"] != theirs[key]["bound_by"]:
            text = f"`{key[1]}` is bound by {ours[key]['bound_by']} and {theirs[key]['bound_by']}"
            yield Violation("operations agree", "hlo_stats, roofline_model", text)


def _in_the_tree(nodes: Table, ops: Rows) -> Iterator[Violation]:
    columns = {
        column.name: texts_of(column) if column.strings is not None else numbers_of(column).tolist()
        for column in nodes.columns
    }
    for row, (program, name) in enumerate(zip(columns["program"], columns["name"], strict=True)):
        op = ops.get((str(program), str(name)))
        if op is None or columns["kind"][row] != "op":
            continue
        for mine, other in (("self_time_ps", "total_self_time_ps"), ("n_occurrences", "n_occurrences")):
            a, b = float(columns[mine][row]), float(op[other])
            if not _near(a, b):
                yield Violation(
                    "operations agree", "op_profile, hlo_stats", f"`{name}`: {mine} is {a:g} and {b:g}"
                )


def _rates(pages: Pages) -> Iterator[Violation]:
    """Rates times times are sums of work."""
    roofline, profile = pages.get("roofline_model"), pages.get("op_profile")
    if profile is not None:
        yield from _tree_sums(profile)
    if roofline is not None and profile is not None:
        yield from _same_work(roofline, profile)
        yield from _same_rates(pages.get("overview_page"), roofline, profile)


def _tree_sums(profile: Payload) -> Iterator[Violation]:
    """A node's time, waste and work are those of its children together, where all are shown."""
    columns = {column.name: numbers_of(column) for column in profile.tables["nodes"].columns}
    parent = columns["parent"].astype(np.int64)
    n_shown = np.bincount(parent[1:], minlength=len(parent))
    whole = (n_shown == columns["n_children"]) & (n_shown > 0)
    for name in ("self_time_ps", "time_fraction", "flops", "hbm_bytes"):
        values = np.nan_to_num(columns[name])
        sums = np.bincount(parent[1:], values[1:], minlength=len(parent))
        wrong = whole & (np.abs(sums - values) > 1e-5 * np.abs(values) + 2)
        if wrong.any():
            row = int(wrong.argmax())
            text = f"node {row}: {name} is {values[row]:g}, of its children together {sums[row]:g}"
            yield Violation("operations agree", "op_profile", text)


def _same_work(roofline: Payload, profile: Payload) -> Iterator[Violation]:
    """FLOPs and bytes of all operations: those of the tree's root, and of the whole program."""
    whole, root = (
        {column.name: numbers_of(column) for column in page.tables[name].columns if column.strings is None}
        for page, name in ((roofline, "programs"), (profile, "nodes"))
    )
    for name in ("flops", "hbm_bytes"):
        a, b = float(root[name][0]), float(whole[name][0])
        if (a == a or b == b) and not abs(a - b) <= EQUAL * max(a, b):
            yield Violation("operations agree", "op_profile, roofline_model", f"{name} are {a:g} and {b:g}")


def _same_rates(overview: Payload | None, roofline: Payload, profile: Payload) -> Iterator[Violation]:
    """The same work over the time with idle (overview, roofline) and without it (op profile)."""
    whole = float(numbers_of(column_of(roofline.tables["programs"], "total_time_ps"))[0])
    busy = _number(profile, "busy_ps")
    pairs = [
        (
            "roofline efficiency",
            _number(overview, "roofline_fraction"),
            _number(roofline, "efficiency_fraction"),
        ),
        (
            "FLOPs",
            _number(roofline, "flop_rate_flops_per_s") * whole,
            _number(profile, "flop_rate_flops_per_s") * busy,
        ),
    ]
    for ours, theirs in (("flops_fraction", "flops_fraction"), ("hbm_bandwidth_fraction", "hbm_fraction")):
        pairs.append((ours, _number(overview, ours) * whole, _number(profile, theirs) * busy))
    for name, a, b in pairs:
        if abs(a - b) > EQUAL * max(abs(a), abs(b)):
            text = f"{name} of the whole is {a:g} and {b:g}"
            yield Violation("operations agree", "overview_page, roofline_model, op_profile", text)


def _number(page: Payload | None, name: str) -> float:
    """A scalar's number, NaN if the page does not show it."""
    scalar = page.scalars.get(name) if page is not None else None
    return np.nan if scalar is None or scalar.value is None else float(scalar.value)
