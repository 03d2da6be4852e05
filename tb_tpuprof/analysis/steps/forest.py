"""The events that matter for grouping as a small graph: roots and tied events, nested in one another and tied
by hubs.

A million events have a few thousand such nodes. Labels travel over the small graph; one pass then hands each
event the label of the innermost node around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.links import Ties, ties
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.stat_rows import marked
from tb_tpuprof.analysis.steps.tpu_grouping import credited
from tb_tpuprof.native import flood, relabel, telling
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
NO_LABEL = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Forest:
    """`rows`: the event of each node (ascending); nodes from len(rows) on are hubs. `around`: of each event
    its innermost node.

    Edges go from cause to effect: those out of node i are targets[offsets[i] … offsets[i + 1]].
    """

    rows: npt.NDArray[np.intp]
    around: npt.NDArray[np.int32]
    offsets: Int64s
    targets: Int64s
    sources: Int64s

    @property
    def n_nodes(self) -> int:
        """Events and hubs."""
        return len(self.offsets) - 1

    def no_labels(self) -> Int64s:
        """Labels of an untouched graph."""
        return np.full(self.n_nodes, NO_LABEL, np.int64)

    def node_of(self, events: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Nodes of events that are known to be nodes."""
        return np.searchsorted(self.rows, events)

    def label_of(self, events: npt.NDArray[np.intp], labels: Int64s) -> Int64s:
        """Label of events that are nodes, -1 for none."""
        found = labels[self.node_of(events)]
        return np.where(found == NO_LABEL, -1, found)

    def claim(self, label: Int64s, events: npt.NDArray[np.intp], labels: Int64s) -> Int64s:
        """Give events their labels and let these spread; the smallest label that reaches a node wins."""
        labels = labels.copy()
        nodes = self.node_of(events)
        better = label < labels[nodes]
        labels[nodes[better]] = label[better]
        frontier = np.unique(nodes[better])
        while len(frontier):
            source, target = self._out_edges(frontier)
            offered = labels[source]
            better = offered < labels[target]
            np.minimum.at(labels, target[better], offered[better])
            frontier = self._distinct(target[better])
        return labels

    def has_ancestor_among(self, events: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Whether another of the events lies (directly or not) before each event."""
        nodes = self.node_of(events)
        wanted = np.zeros(self.n_nodes, np.bool_)
        wanted[nodes] = True
        reached = np.zeros(self.n_nodes, np.bool_)
        frontier = nodes
        while len(frontier):
            _, target = self._out_edges(frontier)
            frontier = self._distinct(target[~reached[target]])
            reached[frontier] = True
        result = reached[nodes]
        # A cycle can lead back to where it began: look at those few one by one.
        for i in np.flatnonzero(result).tolist():
            result[i] = self._search_up(int(nodes[i]), wanted)
        return result

    def spread(self, labels: Int64s) -> npt.NDArray[np.int32]:
        """Label of every event of the trace: its innermost node's, -1 none. Written over `around`: the forest
        is used up.
        """
        known = labels[: len(self.rows)]
        relabel(self.around, np.where(known == NO_LABEL, -1, known).astype(np.int32))
        return self.around

    def _distinct(self, nodes: Int64s) -> npt.NDArray[np.intp]:
        """Distinct nodes, ascending."""
        return (
            marked(nodes, self.n_nodes)
            if len(nodes) > self.n_nodes // 64
            else np.unique(nodes).astype(np.intp)
        )

    def _out_edges(self, nodes: npt.NDArray[np.intp] | Int64s) -> tuple[Int64s, Int64s]:
        first, last = self.offsets[nodes], self.offsets[nodes + 1]
        n = last - first
        at = np.repeat(first - np.append(0, np.cumsum(n)[:-1]), n) + np.arange(int(n.sum()))
        return np.repeat(nodes.astype(np.int64), n), self.targets[at]

    def _search_up(self, node: int, wanted: npt.NDArray[np.bool_]) -> bool:
        """Whether any wanted node other than itself leads to a node."""
        seen = {node}
        open_nodes = [node]
        while open_nodes:
            for source in self._in_edges(open_nodes.pop()):
                if source not in seen:
                    if wanted[source]:
                        return True
                    seen.add(source)
                    open_nodes.append(source)
        return False

    def _in_edges(self, node: int) -> list[int]:
        order, offsets = self._inverse
        found: list[int] = self.sources[order[offsets[node] : offsets[node + 1]]].tolist()
        return found

    @cached_property
    def _inverse(self) -> tuple[npt.NDArray[np.intp], Int64s]:
        """Edges by target: their order, and where each node's begin."""
        counts = np.bincount(self.targets, minlength=self.n_nodes)
        return np.argsort(self.targets, kind="stable"), np.append(0, np.cumsum(counts)).astype(np.int64)


def _telling(trace: Trace, tie: Ties, roots: npt.NDArray[np.intp]) -> Ties:
    """Ties without those that can add nothing: from one event to one beside it, of which neither more is
    known.

    (XLA on the CPU ties each operation to the mark of its end. Such a pair lies under one parent, from which
    both have what they can have, unless the first is itself a root or tied to another.)
    """
    if not tie.n_hubs:
        return tie
    above = parents(trace)
    heads = np.zeros(trace.n_events, np.uint8)
    heads[roots] = 1
    heads[tie.consumer] = 1
    kept: npt.NDArray[np.bool_] = telling(
        (tie.producer, tie.producer_hub, tie.consumer, tie.consumer_hub), tie.n_hubs, above, heads
    )
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    made, used = kept[tie.producer_hub], kept[tie.consumer_hub]
    return Ties(
        tie.producer[made],
        number[tie.producer_hub[made]],
        tie.consumer[used],
        number[tie.consumer_hub[used]],
        int(kept.sum()),
    )


def forest(trace: Trace, roots: npt.NDArray[np.intp], extra: Int64s, runs: Int64s | None = None) -> Forest:
    """The graph of roots and tied events. `extra`: further ties from event to event (2 columns).

    `runs`: the same, but what they lead to belongs to no other event, whatever it lies in: a thread that ends
    one step's work can begin the next one's in the same region.
    """
    runs = np.empty((0, 2), np.int64) if runs is None else runs
    extra = np.concatenate((extra, runs))
    tie = _telling(trace, ties(trace), roots)
    producer, consumer = credited(trace, tie.producer), credited(trace, tie.consumer)
    rows = marked(
        np.concatenate((roots, producer[producer >= 0], consumer[consumer >= 0], extra.ravel())),
        trace.n_events,
    )
    entry = np.full(trace.n_events, -1, np.int32)
    entry[rows] = np.arange(len(rows), dtype=np.int32)
    above = parents(trace)
    around = flood(
        above, entry, entry
    )  # in place: nodes keep their numbers, and ten million events take 40 MB less
    parent = above[rows]
    child = np.flatnonzero(parent >= 0)
    outer = around[parent[child]]
    nested = outer >= 0
    if len(runs):
        nested &= ~np.isin(rows[child], runs[:, 1])
    n = len(rows)
    made, used = producer >= 0, consumer >= 0
    source = np.concatenate(
        (outer[nested], entry[producer[made]], n + tie.consumer_hub[used], entry[extra[:, 0]])
    )
    target = np.concatenate(
        (child[nested], n + tie.producer_hub[made], entry[consumer[used]], entry[extra[:, 1]])
    )
    order = np.argsort(source, kind="stable")
    n_nodes = n + tie.n_hubs
    offsets = np.append(0, np.cumsum(np.bincount(source, minlength=n_nodes))).astype(np.int64)
    return Forest(rows, around, offsets, target[order].astype(np.int64), source[order].astype(np.int64))
