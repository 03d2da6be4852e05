"""What questions of the trace viewer have in common: how they open hosts, and their parameters."""

from __future__ import annotations

from collections.abc import Callable

from tb_tpuprof.session import Session
from tb_tpuprof.tools.base import Param, Params
from tb_tpuprof.tools.payload import Payload, Scalar, Table
from tb_tpuprof.tools.trace_hosts import View, open_view

Answer = tuple[dict[str, Table], dict[str, Scalar]]
NAME = "trace_viewer"
_START = Param("start_ps", "Start", "float", None, "Start of the window; absent: the trace's start")
_END = Param("end_ps", "End", "float", None, "End of the window; absent: the trace's end")
WIDTH = Param("width_px", "Width", "int", 2000, "Width of the window in pixels", minimum=1, maximum=20_000)
TRACKS = Param("tracks", "Tracks", "text", None, "Track ids separated by commas; absent: all")
RANGE = (_START, _END, TRACKS)


def answering(
    make: Callable[[View, Params], Answer],
) -> Callable[[Session, tuple[str, ...], Params], Payload]:
    """A question's view, from a function that answers it for opened hosts."""

    def view(session: Session, hosts: tuple[str, ...], params: Params) -> Payload:
        opened = open_view(session, hosts)
        answer, scalars = make(opened, params)
        shown = tuple(host.host for host in opened.hosts)
        return Payload(NAME, session.run, shown, answer, scalars, diagnostics=opened.diagnostics())

    return view
