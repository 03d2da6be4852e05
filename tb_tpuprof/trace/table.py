"""A frozen bundle of equally long NumPy columns that follows a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native.memory import Arena
from tb_tpuprof.trace.schema import ColumnSpec

Array = npt.NDArray[Any]


class Table:
    """Columns by name: `table["start_ps"]`. Arrays are read-only; dtypes are the schema's, or narrower if the
    values fit.
    """

    __slots__ = ("columns", "n_rows", "spec")

    def __init__(self, spec: Sequence[ColumnSpec], columns: Mapping[str, Array]) -> None:
        names = [column.name for column in spec]
        if list(columns) != names:
            raise ValueError(f"columns are {list(columns)}, not {names}")
        lengths = {len(values) for values in columns.values()}
        if len(lengths) != 1:
            raise ValueError(f"columns differ in length: {sorted(lengths)}")
        for values in columns.values():
            values.flags.writeable = False
        self.spec = tuple(spec)
        self.columns = dict(columns)
        self.n_rows = lengths.pop()

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return self.n_rows

    @property
    def size_bytes(self) -> int:
        """Memory of all columns."""
        return sum(values.nbytes for values in self.columns.values())


def empty_columns(
    spec: Sequence[ColumnSpec], n_rows: int, dtypes: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Array]:
    """Uninitialized columns of a schema, to be filled. `dtypes` overrides the schema's dtype for columns that
    can be narrower.
    """
    arena = Arena()
    return {column.name: arena.take(n_rows, dtypes.get(column.name, column.dtype)) for column in spec}


def table_from_rows(spec: Sequence[ColumnSpec], rows: Sequence[Sequence[int]]) -> Table:
    """A table from a list of rows in the schema's order. For small tables and tests."""
    columns = list(zip(*rows, strict=True)) or [()] * len(spec)
    return Table(spec, {c.name: np.array(values, c.dtype) for c, values in zip(spec, columns, strict=True)})
