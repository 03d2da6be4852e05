"""Transfers between slices over the data center network (DCN), as MegaScale XLA makes them.

In: a `Trace` per host. Out: `DcnHost`, then `Summary`. `ops.py` finds the operations of each rendezvous,
`transfers.py` measures their occurrences, `messages.py` reads what the hosts received, `summary.py` combines
hosts.
"""
