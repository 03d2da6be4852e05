"""File names of the Python libraries that jobs call, to separate their time from that of the
user's own code.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def library_files() -> dict[str, frozenset[str]]:
    """File names without `.py` by section of the list: `framework`, `library`, `either` (both have it),
    `common` (users have it, too).
    """
    words_of: dict[str, list[str]] = {}
    section = ""
    for line in files(__package__).joinpath("library_files.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif not line.startswith("#"):
            words_of.setdefault(section, []).extend(line.split())
    return {name: frozenset(words) for name, words in words_of.items()}
