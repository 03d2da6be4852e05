"""Which scopes of a graph's drawing a request opens and closes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tb_tpuprof.errors import BadParameter
from tb_tpuprof.tools.tpu_compatibility.drawing import toggled_scopes

TREE: Any = SimpleNamespace(name=["scope"] * 21)


@pytest.mark.parametrize(
    ("text", "toggled", "chosen"),
    [
        ("", [], {}),
        ("3.17o.20c", [3], {17: True, 20: False}),
        ("20.21.0", [20, 0], {}),
        ("20o.21o", [], {20: True}),
        ("..5..5", [5, 5], {}),
        ("5o.5c", [], {5: False}),
        (".".join(["7"] * 1000), [7] * 1000, {}),
        ("999999999", [], {}),
    ],
)
def test_rows_to_toggle_open_and_close(text: str, toggled: list[int], chosen: dict[int, bool]) -> None:
    assert toggled_scopes(text, TREE) == (toggled, chosen)


@pytest.mark.parametrize("text", ["x", "3.-1", "1oc", "1 ", "1234567890", ".".join(["7"] * 1001)])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(BadParameter) as refused:
        toggled_scopes(text, TREE)
    assert refused.value.parameter == "boxes"
