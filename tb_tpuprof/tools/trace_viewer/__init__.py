"""The trace viewer: `view.py` chooses between windows (`window.py`), searches and totals (`questions.py`) and
one event (`details.py`).
"""
