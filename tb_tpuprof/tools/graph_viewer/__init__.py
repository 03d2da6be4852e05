"""The graph viewer: `view.py` answers, `tables.py` fills its tables."""
