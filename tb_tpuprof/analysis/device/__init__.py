"""A host's accelerators: model, number, peak rates, memory capacity.

In: a `Trace`. Out: `Hardware`. Start with `hardware.py`; `peaks.py` has the table of peak rates.
"""
