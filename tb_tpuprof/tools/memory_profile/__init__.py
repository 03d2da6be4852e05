"""The memory profile: `view.py` answers, `tables.py` fills its tables."""
