"""Run in the peer's environment: `python live_memory_viewer.py FOLDER OUT` writes what xprof's memory viewer
answers for each program (`*.hlo_proto.pb`, which it makes itself where the trace holds HLO) and memory space
of each run in FOLDER, as one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from xprof.convert.raw_to_tool_data import xspace_to_tool_data, xspace_to_tool_names

SUFFIX = ".hlo_proto.pb"
SPACES = ("0", "1", "5")


def answers_of(run: Path) -> dict[str, dict[str, object]]:
    """The peer's answers by program and memory space; None where it says nothing."""
    files = sorted(str(path) for path in run.glob("*.xplane.pb"))
    xspace_to_tool_names(files)
    found: dict[str, dict[str, object]] = {}
    for path in sorted(run.glob(f"*{SUFFIX}")):
        title = path.name.removesuffix(SUFFIX)
        for space in SPACES:
            params = {"use_saved_result": False, "module_name": title, "memory_space": space, "host": "h"}
            data = xspace_to_tool_data(files, "memory_viewer", params)[0]
            found.setdefault(title, {})[space] = json.loads(data) if data else None
    return found


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    runs = sorted(path for path in folder.iterdir() if path.is_dir())
    out.write_text(json.dumps({run.name: answers_of(run) for run in runs}))


if __name__ == "__main__":
    main()
