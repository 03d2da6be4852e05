"""The trace viewer: `view.py` dispatches to windows (`window.py`), searches and totals (`questions.py`) and
one event (`details.py`).
"""
