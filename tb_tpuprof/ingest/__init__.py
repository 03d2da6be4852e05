"""Bytes of captured profiles → Trace. The only package that knows file formats."""

from tb_tpuprof.ingest.opening import open_trace

__all__ = ["open_trace"]
