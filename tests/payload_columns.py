"""Columns of payloads that tests make by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_tpuprof.tools.payload import Column


def text_column(name: str, title: str, texts: Sequence[str]) -> Column:
    """A column of texts, interned."""
    strings = list(dict.fromkeys(texts))
    code = {text: i for i, text in enumerate(strings)}
    return Column(
        name,
        title,
        np.array([code[text] for text in texts], np.int32),
        strings=strings,
    )
