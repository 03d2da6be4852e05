"""The TPU compatibility of a graph: `view.py` answers, `tables.py` fills its tables."""
