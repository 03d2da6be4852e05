"""Stats as decoders have gathered them → one table, sorted by key."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from tb_tpuprof.native.events import Decoder
from tb_tpuprof.native.memory import new_array
from tb_tpuprof.trace import schema
from tb_tpuprof.trace.table import Table

Ids = npt.NDArray[np.int32]
_MAX_THREADS = 8


def stat_table(decoders: list[Decoder], names: Ids, texts: list[Ids]) -> Table:
    """Stats of several decoders, one after the other, as a table of STATS.

    `names` is the string of each row of stat metadata, which are the decoders' keys; `texts` holds for each decoder the strings of its
    `text_spans`. The decoders' memory is given back chunk by chunk.
    """
    found = sorted((int(names[key]), i, key) for i, decoder in enumerate(decoders) for key in decoder.kept_keys())
    chunks = [(name, i, chunk) for name, i, key in found for chunk in decoders[i].take_chunks(key)]
    alive = np.array([n_alive for _, _, (_, _, n_alive) in chunks], np.int64)
    n = int(alive.sum())
    key = np.repeat(np.array([name for name, _, _ in chunks], np.int32), alive)
    owner, kind, value, size = new_array(n, np.int32), new_array(n, np.uint8), new_array(n, np.int64), np.zeros(n, np.int32)
    places = (np.cumsum(alive) - alive).tolist()
    waiting = [(i, memory, n_rows, at) for (_, i, (memory, n_rows, _)), at in zip(chunks, places, strict=True)]
    del chunks

    def put() -> None:
        while True:
            try:
                i, memory, n_rows, at = waiting.pop()
            except IndexError:
                return
            decoders[i].put(memory, n_rows, at, (owner, kind, value, size), names, texts[i])

    n_threads = min(os.cpu_count() or 1, _MAX_THREADS)
    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(put) for _ in range(n_threads)]:
            done.result()
    columns = (owner, key, kind, value, size)
    return Table(schema.STATS, {spec.name: values for spec, values in zip(schema.STATS, columns, strict=True)})
