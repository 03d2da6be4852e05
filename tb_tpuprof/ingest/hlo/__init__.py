"""HLO protos: bytes → `HloModule` (see `trace/hlo.py`). Start with `module.py`."""
