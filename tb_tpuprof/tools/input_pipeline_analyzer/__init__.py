"""The input pipeline analyzer: `view.py` answers, `tables.py` fills its tables."""
