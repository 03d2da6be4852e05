"""Names of the Python files of libraries that jobs call, so that time can be told from the user's
own code.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def library_files() -> dict[str, frozenset[str]]:
    """File names without `.py` by section of the list: `framework`, `library`, `either` (both have it),
    `common` (users have it, too).
    """
    found: dict[str, list[str]] = {}
    section = ""
    for line in files(__package__).joinpath("library_files.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif not line.startswith("#"):
            found.setdefault(section, []).extend(line.split())
    return {name: frozenset(words) for name, words in found.items()}
