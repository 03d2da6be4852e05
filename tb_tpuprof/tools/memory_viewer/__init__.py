"""The memory viewer: `view.py` answers, `tables.py` fills its tables."""
