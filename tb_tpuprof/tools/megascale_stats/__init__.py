"""Transfers between slices: `view.py` answers, `tables.py` declares and fills its tables, and `sentences.py`
writes its verdict.
"""
