"""Plain-loop oracles: combinations of several hosts, implemented again from the documentation, without arrays
and without the code under test, and compared on many random jobs with at least three unlike hosts.
"""
