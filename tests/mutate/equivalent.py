"""Mutants that behave like the original: `equivalent.json` holds, for each module, the mutant's key and the
reason.

A key consists of the function, the expression before and after, and a number if several read the same, so it
survives edits elsewhere in the module. `test_mutants.py` fails for a key that matches no mutant.
"""

from __future__ import annotations

import json
from pathlib import Path

EQUIVALENT: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("equivalent.json").read_text("utf-8")
)
