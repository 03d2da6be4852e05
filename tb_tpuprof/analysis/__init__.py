"""Analyses: a `Trace` in, small frozen dataclasses out. Nothing here reads files or knows about pages.

A package imports only from those above it in ARCHITECTURE.md's table; `tests/test_architecture.py` enforces
this. Start with `steps/steps.py` for step times, `ops/stats.py` for operations, `diagnosis/diagnose.py` for
causes.
"""
