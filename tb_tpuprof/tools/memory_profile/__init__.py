"""The memory profile: `view.py` answers, `declared.py` declares its tables, `tables.py` fills them."""
