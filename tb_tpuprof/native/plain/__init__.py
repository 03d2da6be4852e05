"""The inner loops in plain Python and NumPy: the same results, but slower. Used if nothing was compiled, and
by tests as oracles.
"""
