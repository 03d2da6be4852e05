"""Runs and files: what a log directory holds, reading local and remote files, the caches of columns and
results.

Start with `runs.py`; `cache.py` keeps decoded columns, `results.py` keeps what analyses returned.
"""
