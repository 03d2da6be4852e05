"""Runs and files: the runs in a log directory, local and remote files, the caches of columns and results.

Start with `runs.py`; `column_cache.py` stores decoded columns, `result_cache.py` what analyses returned.
"""
