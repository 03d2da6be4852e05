"""Running work in parallel: parts of one host's work on threads; many hosts on threads, in processes or on
Dask.

In: functions and what to apply them to. Out: results in the order of the input. Start with `policy.py`,
which holds every threshold from which work is split. `threads.py` has `run_in_parallel` and
`single_threaded`, `splitting.py` cuts arrays into even parts, `executors.py` opens the executor for many
hosts (`process_pool.py` is our own one), `progress.py` reports how much has been read, `background.py` runs
what nobody waits for.
"""
