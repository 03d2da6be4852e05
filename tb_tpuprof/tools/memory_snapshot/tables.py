"""The parameter, tables and numbers of the memory snapshot."""

from __future__ import annotations

from tb_tpuprof.tools.base import Param
from tb_tpuprof.tools.memory_snapshot.history_tables import (
    HISTORY_PARAMS,
    HISTORY_SCALARS,
    HISTORY_TABLES,
    PLACE,
)
from tb_tpuprof.tools.spec import ColumnSpec, ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

N_ROWS = 2000
NOT_NAMED = "the snapshot does not name it"
PARAMS = (
    Param(
        "before",
        "Compare with",
        "text",
        None,
        "Another snapshot of the run, named by its host: shows what has grown since then",
    ),
    *HISTORY_PARAMS,
)

_N_BLOCKS = number("n_blocks", "Blocks", "count", "Blocks in use; JAX: buffers and executables")
_SIZE = number("size_bytes", "In use", "bytes", "Memory of these blocks, as the allocator rounds it up")
_FRACTION = number(
    "fraction",
    "Share",
    "fraction",
    "Share of all memory in use in the snapshot",
    formula="in use ÷ all in use",
)
_DEVICE = text("device", "Device", "The device that the memory belongs to", unknown=NOT_NAMED)
_KIND = text(
    "kind",
    "Kind",
    "JAX: buffer (an array) or executable (a compiled program). PyTorch: allocated, or freed but in use by a "
    "stream",
    unknown=NOT_NAMED,
)


def _changed(name: str, title: str, sentence: str, formula: str = "") -> ColumnSpec:
    return number(name, title, "bytes", sentence, formula=formula)


PLACES = TableSpec(
    "places",
    "In use when saved, by place",
    (PLACE, _SIZE, _FRACTION, _N_BLOCKS),
    "A row per place in the program that allocated memory in use, the largest first; they add up",
)
KINDS = TableSpec(
    "kinds",
    "In use when saved, by device and kind",
    (_DEVICE, _KIND, _SIZE, _FRACTION, _N_BLOCKS),
    "A row per device and kind of memory",
)
POOLS = TableSpec(
    "pools",
    "Allocator when saved",
    (
        text("device", "Device", "The device that the allocator holds memory of"),
        number("reserved_bytes", "Held", "bytes", "Memory that the allocator holds of the device"),
        number("used_bytes", "In use", "bytes", "Held memory in blocks that are in use"),
        number(
            "free_bytes",
            "Held, not in use",
            "bytes",
            "Held memory that new allocations can use",
            formula="held − in use",
        ),
        number(
            "largest_free_bytes",
            "Largest free block",
            "bytes",
            "The largest allocation that held memory can serve",
        ),
        number(
            "rounding_bytes",
            "Rounding",
            "bytes",
            "Memory in use beyond what was requested",
            formula="in use − requested",
        ),
    ),
    "What the caching allocator holds of each device (PyTorch)",
    is_optional=True,
)
GROWTH = TableSpec(
    "growth",
    "Since the other snapshot",
    (
        PLACE,
        _changed(
            "before_bytes", "Before", "Memory in use that this place had allocated in the other snapshot"
        ),
        _changed("after_bytes", "Now", "Memory in use that it has allocated in this snapshot"),
        _changed("growth_bytes", "Growth", "Negative where memory was freed", "now − before"),
        number("growth_n_blocks", "More blocks", "count", "How many more blocks are in use"),
    ),
    "A row per place whose memory has changed, the largest growth first",
    is_optional=True,
)
FUNCTIONS = TableSpec(
    "functions",
    "In use when saved, by function",
    (
        text("function", "Function", "A function on the stacks of blocks in use"),
        text("file", "File", "The file that defines it", unknown=NOT_NAMED),
        number(
            "size_bytes", "With callees", "bytes", "Memory in use allocated while it ran; rows do not add up"
        ),
        number("own_bytes", "Its own", "bytes", "Part that the function's own lines allocated"),
        _N_BLOCKS,
        number(
            "fraction",
            "Share",
            "fraction",
            "Share of all memory in use, with callees",
            formula="with callees ÷ all in use",
        ),
    ),
    "A row per function, with what was allocated while it ran, the largest first",
)
STACKS = TableSpec(
    "stacks",
    "In use when saved, by stack",
    (
        _DEVICE,
        _KIND,
        _SIZE,
        _FRACTION,
        _N_BLOCKS,
        PLACE,
        text("stack", "Stack", "Calls from the innermost outward, each with file and line"),
    ),
    "A row per device, kind and stack of blocks in use, the largest first",
)
TABLES = (GROWTH, *HISTORY_TABLES, PLACES, KINDS, POOLS, FUNCTIONS, STACKS)

SCALARS = (
    ScalarSpec(
        "used_bytes", "In use", "bytes", "Memory in blocks that were in use when the snapshot was saved"
    ),
    ScalarSpec("n_blocks", "Blocks", "count", "Number of blocks in use; JAX: buffers and executables"),
    ScalarSpec("n_places", "Places", "count", "Number of places in the program that allocated them"),
    ScalarSpec(
        "unattributed_bytes",
        "Without a stack",
        "bytes",
        "Memory in use whose allocation stack the snapshot does not record",
    ),
    ScalarSpec(
        "growth_bytes",
        "Growth",
        "bytes",
        "How much more is in use than in the other snapshot",
        is_optional=True,
        formula="now − before",
    ),
    ScalarSpec(
        "reserved_bytes", "Held", "bytes", "Memory that the allocator holds of all devices", is_optional=True
    ),
    ScalarSpec(
        "free_bytes",
        "Held, not in use",
        "bytes",
        "Held memory that new allocations can use",
        is_optional=True,
        formula="held − in use",
    ),
    ScalarSpec(
        "rounding_bytes",
        "Rounding",
        "bytes",
        "Memory in use beyond what was requested",
        is_optional=True,
        formula="in use − requested",
    ),
    *HISTORY_SCALARS,
)
TILES = tiles(
    Tile("n_failures", least=1),
    "peak_bytes",
    "reserved_peak_bytes",
    "used_bytes",
    "growth_bytes",
    "reserved_bytes",
    "free_bytes",
    "n_blocks",
    "n_places",
    Tile("unattributed_bytes", least=1, unlike="used_bytes"),
)
