"""An open run: its hosts, their traces and the results of analyses, each computed once.

In: a run's folder and functions of a trace. Out: their results. Start with `session.py`; it combines
`host_store.py` (all data of one host, and which cache it comes from), `runner.py` (functions mapped over
hosts) and `run_files.py` (programs and TensorFlow graphs beside the traces). `session_store.py` keeps the
sessions of a server, `memory.py` bounds what they keep.
"""

from tb_tpuprof.session.live import measure
from tb_tpuprof.session.session import Session
from tb_tpuprof.session.session_store import SessionStore

__all__ = ["Session", "SessionStore", "measure"]
