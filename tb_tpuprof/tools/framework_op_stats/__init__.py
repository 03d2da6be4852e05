"""The framework op stats: `view.py` answers, `tables.py` declares what the answer holds."""
