"""Plain loops over random hosts: what several hosts come to together, written down once more from the documentation, without
arrays and without the code under test, and compared on many random jobs of at least three unlike hosts.
"""
