"""Running work side by side: `threads.py` for pieces of one host's work, `executors.py` for many hosts
(threads, processes, Dask).

`helpers.py` is the process pool behind `executors.py`; `progress.py` reports how much has been read.
"""
