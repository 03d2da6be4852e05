"""Prints HLO instructions as XLA does. Start with `printer.py`; `window.py` prints a range of lines of a
large program.
"""
