"""Run in the peer's environment: `python live_peer.py FOLDER OUT` writes what xprof answers for each run in
FOLDER as one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from live_memory_viewer import answers_of
from xprof.convert.raw_to_tool_data import xspace_to_tool_data

TOOLS = ("overview_page", "framework_op_stats", "input_pipeline_analyzer", "kernel_stats", "pod_viewer")
ONE_HOST = "memory_profile"
# Runs that plant something for one tool alone, by the beginning of their name.
COMPILED = ("hlo_stats", "op_profile", "roofline_model")
CORPUS = (
    "kernel_stats",
    ONE_HOST,
    "pod_viewer",
    *COMPILED,
    "op_profile by category",
    "op_profile by provenance",
)
ONLY = {
    "kernels": ("kernel_stats",),
    "memory": (ONE_HOST,),
    "requests": ("inference_profile",),
    "corpus": CORPUS,
}


def _answer(files: list[str], hosts: list[str], asked: str) -> str:
    """What the peer says of all hosts, or of the first where it takes but one."""
    tool, _, grouping = asked.partition(" by ")
    if tool == ONE_HOST:
        files, hosts = files[:1], hosts[:1]
    params = {
        "use_saved_result": False,
        "host": hosts[0] if tool == ONE_HOST else "ALL_HOSTS",
        "hosts": hosts,
    }
    params |= {"group_by": grouping} if grouping else {}
    answer: str = xspace_to_tool_data(files, tool, params)[0]
    return answer


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    answers: dict[str, dict[str, object]] = {}
    for run in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(str(path) for path in run.glob("*.xplane.pb"))
        hosts = [Path(file).name.removesuffix(".xplane.pb") for file in files]
        tools = ONLY.get(run.name.partition("_")[0], TOOLS)
        if run.name.startswith("tpu") and len(files) == 1:
            tools = (*tools, *COMPILED)
        answers[run.name] = {tool: json.loads(_answer(files, hosts, tool)) for tool in tools}
        if run.name.startswith("corpus"):
            answers[run.name]["memory_viewer"] = answers_of(run)
    out.write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
