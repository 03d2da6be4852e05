"""Runs and files: the runs in a log directory, local and remote files, the caches of columns and results.

Start with `runs.py`; `cache.py` stores decoded columns, `results.py` what analyses returned.
"""
