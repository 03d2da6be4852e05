"""One request answered by xprof in a fresh process: `python -m bench.child_peer REQUEST` -> a
Sample as JSON.
"""

from __future__ import annotations

import glob
import gzip
import json
import os
import re
import sys

from xprof.convert.raw_to_tool_data import xspace_to_tool_data, xspace_to_tool_names

from bench.requests import Answer, Request, measured, read_request, write_sample

GZIP_LEVEL = 9  # what its plugin compresses with
TRACE_VIEWER = "trace_viewer"
PROGRAM_TOOLS = ("memory_viewer", "graph_viewer")
PROGRAM_SUFFIX = ".hlo_proto.pb"
_TIMESPAN_MS = re.compile(rb'"fullTimespan":\s*(\[[^\]]*\])')


class PeerSide:
    """Calls what the peer's plugin calls for a page."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.files = sorted(glob.glob(os.path.join(request.run_dir, "*.xplane.*")))

    def ask(self, window: tuple[float, float] | None, search: str) -> Answer:
        """The answer's body; its timeline comes as JSON and takes milliseconds."""
        if self.request.tool in PROGRAM_TOOLS:
            return Answer(self._of_program())
        if self.request.tool != TRACE_VIEWER:
            return Answer(self._convert(self.files, self.request.tool, {}))
        options: dict[str, object] = {"resolution": self.request.width_px}
        if window:
            options |= {"start_time_ms": str(window[0]), "end_time_ms": str(window[1])}
        if search:
            options |= {"search_prefix": search}
        files = [file for file in self.files if os.path.basename(file).startswith(f"{self.request.host}.")]
        params = {"hosts": [self.request.host], "trace_viewer_options": options}
        body = self._convert(files, "trace_viewer@", params)
        timespan = _TIMESPAN_MS.search(body)
        return Answer(body, float(json.loads(timespan.group(1))[1]) if timespan else 0.0)

    def _of_program(self) -> bytes:
        """For the first program; the plugin requests the tools' names first, which writes the programs next
        to the trace.
        """
        programs = self._programs() or (xspace_to_tool_names(self.files) and self._programs())
        if not programs:
            raise SystemExit("no program in the trace")
        params: dict[str, object] = {"module_name": programs[0], "memory_space": "0"}
        if self.request.tool == "graph_viewer":
            options = {
                "node_name": self.request.op,
                "module_name": programs[0],
                "graph_width": 3,
                "type": "graph",
                "format": "html",
            }
            params = {"graph_viewer_options": {**options, "show_metadata": False, "merge_fusion": False}}
        return self._convert(self.files, self.request.tool, params)

    def _programs(self) -> list[str]:
        paths = sorted(glob.glob(os.path.join(glob.escape(self.request.run_dir), f"*{PROGRAM_SUFFIX}")))
        return [os.path.basename(path).removesuffix(PROGRAM_SUFFIX) for path in paths]

    def _convert(self, files: list[str], tool: str, params: dict[str, object]) -> bytes:
        data, _ = xspace_to_tool_data(
            files, tool, {"use_saved_result": True, "host": self.request.host, **params}
        )
        if not data:
            raise SystemExit(f"no answer for {tool}")
        return data.encode() if isinstance(data, str) else bytes(data)


def main() -> None:
    """Answer one request."""
    request = read_request(sys.argv)
    write_sample(measured(request, PeerSide(request).ask, lambda body: gzip.compress(body, GZIP_LEVEL)))


if __name__ == "__main__":
    main()
