"""The TPU compatibility of a graph: `view.py` answers, `declared.py` declares its tables, `tables.py` and
`drawing.py` fill them.
"""
