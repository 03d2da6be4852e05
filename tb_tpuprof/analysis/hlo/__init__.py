"""Static analysis of a compiled program: FLOPs, bytes, padding, graph, buffers.

In: an `HloModule` (see `trace/hlo.py`). Out: costs per instruction, graphs, memory use over the schedule.
Start with `cost.py` for FLOPs and bytes, `memory.py` for buffers, `text/printer.py` for HLO text.
"""
