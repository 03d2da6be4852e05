"""The pod viewer: `view.py` answers, `tables.py` fills its tables, `sentences.py` words its verdict."""
