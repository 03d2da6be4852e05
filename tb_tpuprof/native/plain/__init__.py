"""The inner loops in plain Python and NumPy: the same results, slowly. Used where nothing was compiled, and
as oracles by tests.
"""
