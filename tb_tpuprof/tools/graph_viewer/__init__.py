"""The graph viewer: `view.py` answers, `declared.py` declares its tables, `tables.py` fills them."""
