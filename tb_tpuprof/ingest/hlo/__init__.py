"""HLO protos: bytes in, `HloModule` (see `trace/hlo.py`) out. Start with `module.py`."""
