"""Analyses: a `Trace` in, small frozen dataclasses out. Nothing here reads files or knows about pages.

Packages build on each other in this order, which `tests/test_architecture.py` enforces: events < cpu < device
< hlo < kernels < steps < memory < ops < pod, tf_data < input < diagnosis, overview < timeline, graphs. Start
with `steps/steps.py` for step times, `ops/stats.py` for operations, `diagnosis/diagnose.py` for causes.
"""
