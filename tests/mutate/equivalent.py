"""Changes that change nothing that anybody could see: of each module the key of the change, and why.

A key names function, expression before and after (and the how-manieth of those that read alike), so that it outlives edits
elsewhere. `test_mutants.py` fails for a key of which nothing is left.
"""

EQUIVALENT: dict[str, dict[str, str]] = {}
