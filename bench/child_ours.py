"""One request answered by this project in a fresh process: `python -m bench.child_ours REQUEST` -> a Sample
as JSON.
"""

from __future__ import annotations

import sys
import threading

from bench.cases import READING
from bench.requests import Answer, Request, measured, read_request, write_sample
from tb_tpuprof.encode import encode_columns, encode_json
from tb_tpuprof.encode.gzip import FAST, SMALL, gzipped
from tb_tpuprof.session import Session
from tb_tpuprof.tools import all_tools

TRACE_VIEWER = "trace_viewer"


class OwnSide:
    """Opens the run at the first question and keeps the session, as the plugin does, which has imported all
    tools before.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.tools = {tool.name: tool for tool in all_tools()}
        self.session: Session | None = None

    def ask(self, window: tuple[float, float] | None, search: str) -> Answer:
        """The body of the page's first answer: binary columns for the timeline, JSON for the rest. The page
        then requests the diagnosis, if that takes longer.
        """
        request = self.request
        if self.session is None:
            self.session = Session(request.run_dir, cache=request.use_cache, executor="auto")
        if request.tool == READING:
            return Answer(_read(self.session, request.host))
        tool = self.tools[request.tool]
        if request.tool != TRACE_VIEWER:
            op_params = {"op": request.op, "times": request.with_times} if request.op else {}
            return Answer(encode_json(tool.run(self.session, None, op_params, waits=False)))
        params: dict[str, object] = {"width_px": request.width_px}
        if window:
            params |= {"start_ps": int(window[0]), "end_ps": int(window[1])}
        if search:
            return Answer(encode_columns(tool.run(self.session, [request.host], {"query": search}, "slices")))
        payload = tool.run(self.session, [request.host], params, waits=False)
        return Answer(encode_columns(payload), float(payload.scalars["trace_duration_ps"].value or 0))


def _read(session: Session, host: str) -> bytes:
    """What every answer of a program's viewers begins with: the list of programs, and the largest one's
    module.
    """
    programs = session.programs(host)
    module = programs.module(max(programs, key=lambda program: program.size_bytes))
    return str(module.n_instructions if module else 0).encode()


def compressed(body: bytes) -> bytes:
    """As the plugin compresses its answers."""
    return gzipped(body, FAST if body.startswith(b"TPC1") else SMALL)


def main() -> None:
    """Answer, then wait until the column cache is on disk if the request needs it."""
    request = read_request(sys.argv)
    write_sample(measured(request, OwnSide(request).ask, compressed))
    for thread in threading.enumerate():
        if "cache" in thread.name:  # threads of pools wait for work for ever
            thread.join(timeout=120)


if __name__ == "__main__":
    main()
