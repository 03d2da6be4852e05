"""Communication of each device: which part of it compute hides, and which part is exposed.

In: a `Trace` per host. Out: `Comm`. `tpu.py`, `gpu.py` and `cpu.py` find when a device communicates and when
it computes, `exposure.py` divides that time, `host.py` sums it by step, `join.py` combines hosts.
"""
