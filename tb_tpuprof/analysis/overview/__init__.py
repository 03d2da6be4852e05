"""What the overview shows of a host: everything it needs, small enough to keep when the trace is gone.

In: a `Trace`. Out: `Summary`. Start with `summary.py`; `hosts.py` combines the hosts.
"""
