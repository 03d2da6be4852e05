"""What functions return for texts such as names of operations, kept for all runs, within a size."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_MOST_CHARACTERS = 8 * 2**20


class text_cache(Generic[P, T]):
    """Keeps a pure function's results by its arguments, a text and plain values. Starts anew once the texts
    have 8 million characters, so that no file can fill the memory with its names.
    """

    def __init__(self, function: Callable[Concatenate[str, P], T]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._kept: dict[Hashable, T] = {}
        self.n_characters = 0

    def __call__(self, text: str, *args: P.args, **kwargs: P.kwargs) -> T:
        """The result, kept unless an argument is given by name."""
        if kwargs:
            return self._function(text, *args, **kwargs)
        key = (text, *args) if args else text
        try:
            return self._kept[key]
        except KeyError:
            result = self._function(text, *args, **kwargs)
        if self.n_characters + len(text) > _MOST_CHARACTERS:
            self._kept, self.n_characters = {}, 0
        if len(text) < _MOST_CHARACTERS:
            self._kept[key] = result
            self.n_characters += len(text)
        return result
