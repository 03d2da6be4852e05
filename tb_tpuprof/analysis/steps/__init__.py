"""Steps: when each ran, how long it took, and how its time was spent.

In: a `Trace`. Out: `Steps` and `Pieces`. Start with `steps.py`, which chooses between `host.py`, `gpu.py`,
`gpu_host.py`, `pytorch.py` and `tpu.py`; `classes.py` defines the classes of time, `combine.py` aligns the
steps of several hosts.
"""
