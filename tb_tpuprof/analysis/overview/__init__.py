"""Everything that the overview shows of a host, small enough to keep without the trace.

In: a `Trace`. Out: `Summary`. Start with `summary.py`; `hosts.py` combines the hosts.
"""
