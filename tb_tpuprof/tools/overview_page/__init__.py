"""The overview: `view.py` answers, `scalars.py` and `tables.py` fill its tiles and tables."""
