"""Stats that are decoded on opening are those that analyses ask for: none too many, which would cost time in
every trace, none too few.
"""

from __future__ import annotations

import re
from pathlib import Path

from tb_tpuprof.trace.schema import DEVICE_STATS, HOT_STATS

PACKAGE = Path(__file__).resolve().parents[2] / "tb_tpuprof"
ASKED = re.compile(
    r"event_stats\.\w+\(\s*\"([^\"]+)\"|(?:first_ints|events_with)\(\s*trace,\s*((?:\"[^\"]+\",?\s*)+)"
)


def test_every_decoded_stat_is_asked_for_and_the_other_way_round() -> None:
    source = "\n".join(
        path.read_text("utf-8")
        for part in ("analysis", "tools")
        for path in sorted((PACKAGE / part).rglob("*.py"))
    )
    declared = {*HOT_STATS, *(name for names in DEVICE_STATS.values() for name in names)}
    assert {name for name in declared if f'"{name}"' not in source} == set()
    asked = {
        name
        for one, many in ASKED.findall(source)
        for name in ([one] if one else re.findall(r"\"([^\"]+)\"", many))
    }
    assert len(asked) > 5
    # What only this project's reader of PyTorch's files writes is never read from an XSpace.
    chrome = PACKAGE / "ingest" / "chrome"
    files = ("kineto.py", "kineto_collectives.py", "kineto_inputs.py")
    kineto = "".join((chrome / file).read_text("utf-8") for file in files)
    only_there = {name for name in asked if name.startswith("comm_")} | {
        "copied_bytes",
        "launched_by",
        "op_inputs",
        "call_stack",
    }
    own = {name for name in only_there if f'"{name}"' in kineto}
    assert asked - declared - own == set()
