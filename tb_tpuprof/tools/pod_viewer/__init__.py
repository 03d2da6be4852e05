"""The pod viewer: `view.py` answers, `declared.py` declares its tables, `tables.py` fills them, and
`sentences.py` writes its verdict.
"""
