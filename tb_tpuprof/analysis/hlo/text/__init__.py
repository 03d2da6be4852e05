"""Prints HLO instructions as XLA does. Start with `printer.py`; `window.py` prints a few lines of a large
program.
"""
