"""Many hosts and cores: shared steps, collectives, transfers, stragglers.

In: a `Trace` per host. Out: `Pod`. `host.py` computes the part of one host, `join.py` combines them,
`stragglers.py` compares them.
"""
