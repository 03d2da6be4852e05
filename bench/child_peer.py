"""One request answered by xprof in a fresh process: `python -m bench.child_peer REQUEST` -> a Sample as JSON."""

from __future__ import annotations

import glob
import gzip
import json
import os
import re
import sys

from xprof.convert.raw_to_tool_data import xspace_to_tool_data

from bench.requests import Answer, Request, measured, read_request, write_sample

GZIP_LEVEL = 9  # what its plugin compresses with
TRACE_VIEWER = "trace_viewer"
_TIMESPAN_MS = re.compile(rb'"fullTimespan":\s*(\[[^\]]*\])')


class PeerSide:
    """Calls what the peer's plugin calls for a page."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.files = sorted(glob.glob(os.path.join(request.run_dir, "*.xplane.pb")))

    def ask(self, window: tuple[float, float] | None, search: str) -> Answer:
        """The answer's body; its timeline comes as JSON and takes milliseconds."""
        if self.request.tool != TRACE_VIEWER:
            return Answer(self._convert(self.files, self.request.tool, {}))
        options: dict[str, object] = {"resolution": self.request.width_px}
        if window:
            options |= {"start_time_ms": str(window[0]), "end_time_ms": str(window[1])}
        if search:
            options |= {"search_prefix": search}
        file = os.path.join(self.request.run_dir, f"{self.request.host}.xplane.pb")
        params = {"hosts": [self.request.host], "trace_viewer_options": options}
        body = self._convert([file], "trace_viewer@", params)
        timespan = _TIMESPAN_MS.search(body)
        return Answer(body, float(json.loads(timespan.group(1))[1]) if timespan else 0.0)

    def _convert(self, files: list[str], tool: str, params: dict[str, object]) -> bytes:
        data, _ = xspace_to_tool_data(files, tool, {"use_saved_result": True, "host": self.request.host, **params})
        if not data:
            raise SystemExit(f"no answer for {tool}")
        return data.encode() if isinstance(data, str) else bytes(data)


def main() -> None:
    """Answer one request."""
    request = read_request(sys.argv)
    write_sample(measured(request, PeerSide(request).ask, lambda body: gzip.compress(body, GZIP_LEVEL)))


if __name__ == "__main__":
    main()
