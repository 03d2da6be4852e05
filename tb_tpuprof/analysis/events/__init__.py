"""What every analysis needs to read a trace: the roles of planes, stats as columns, nesting, links between
events.

In: a `Trace`. Out: rows and columns (NumPy arrays); nothing is aggregated yet. Start with `planes.py` (roles
of planes), `stat_rows.py` (stats of events), `nesting.py` (parents and self times), `memo.py` (`once`).
"""
