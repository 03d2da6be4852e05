"""Small makers of payload columns and tables that several tools need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.tools.payload import Column, Table


def text_column(name: str, title: str, texts: Sequence[str], description: str = "") -> Column:
    """A column of texts, interned."""
    strings = list(dict.fromkeys(texts))
    code = {text: i for i, text in enumerate(strings)}
    return Column(
        name,
        title,
        np.array([code[text] for text in texts], np.int32),
        strings=strings,
        description=description,
    )


def pairs_table(title: str, pairs: Sequence[tuple[str, str]]) -> Table:
    """A table of `name` and `value`."""
    names, values = [name for name, _ in pairs], [value for _, value in pairs]
    return Table(title, (text_column("name", "Name", names), text_column("value", "Value", values)))
