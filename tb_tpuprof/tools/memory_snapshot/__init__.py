"""memory_snapshot: what a process had in memory at one moment, and who allocated it. Start with `view.py`."""
