"""A chunk's data → its records.

A simple chunk holds the sizes of its records and the records end to end, both possibly compressed. A
transposed chunk holds equal fields of all records together (`transposed.py`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_tpuprof.ingest.riegeli.codecs import unpacked
from tb_tpuprof.ingest.riegeli.layout import TRANSPOSED_KIND, Chunk, Read, chunk_data
from tb_tpuprof.ingest.riegeli.transposed import transposed_records
from tb_tpuprof.ingest.riegeli.varints import Damaged, VarintReader

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
# A header may state any size. Real chunks unpack to 3 to 40 times their size.
MOST_RATIO, _RATIO_COUNTS_FROM = 1000, 64 * 2**20
MOST_RECORDS = 2**24  # of a chunk
_SIZE_BYTES = 9  # at most, of a record's size


def chunk_records(read: Read, chunk: Chunk, most_bytes: int) -> tuple[Bytes, Ints]:
    """(the records of a chunk end to end, the end of each). Raises Damaged if they cannot be read or would
    take more than `most_bytes`, MissingCodec if they are compressed in a way that is not installed.
    """
    if chunk.size > min(most_bytes, max(_RATIO_COUNTS_FROM, MOST_RATIO * chunk.data_size)):
        raise Damaged(f"its {chunk.data_size:,} bytes would unpack to {chunk.size:,}")
    if chunk.n_records > MOST_RECORDS:
        raise Damaged(f"it states {chunk.n_records:,} records")
    data = chunk_data(read, chunk)
    if not len(data):
        raise Damaged("its bytes are not those that were written: their hash is wrong")
    if chunk.kind == TRANSPOSED_KIND:
        return transposed_records(data, chunk.n_records, chunk.size)
    return _simple_records(data, chunk.n_records, chunk.size)


def _simple_records(data: Bytes, n_records: int, size: int) -> tuple[Bytes, Ints]:
    codec, reader = int(data[0]), VarintReader(data[1:])
    packed_sizes = reader.bytes(reader.number())
    size_reader = VarintReader(unpacked(codec, packed_sizes, _SIZE_BYTES * n_records))
    sizes = size_reader.numbers(n_records)
    if len(size_reader.rest()) or (sizes > size).any() or int(sizes.sum(dtype=np.float64)) != size:
        raise Damaged("the sizes of its records contradict its header")
    values = unpacked(codec, reader.rest(), size)
    if len(values) != size:
        raise Damaged("its records do not have the size that its header says")
    return values, np.cumsum(sizes)
