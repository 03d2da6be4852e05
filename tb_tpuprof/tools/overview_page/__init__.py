"""The overview: `view.py` answers, `scalars.py` and `tables.py` fill what it shows."""
