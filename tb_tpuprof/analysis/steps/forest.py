"""The events that matter for grouping as a small graph: roots and tied events, nested in each other and tied
by hubs.

A million events have a few thousand such nodes. Labels spread over the small graph; then one pass gives each
event the label of its innermost enclosing node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tb_tpuprof.analysis.events.links import Ties, ties
from tb_tpuprof.analysis.events.nesting import parents
from tb_tpuprof.analysis.events.stat_rows import marked
from tb_tpuprof.analysis.steps.tpu_grouping import representatives
from tb_tpuprof.native import flood, informative_hubs, relabel
from tb_tpuprof.trace.trace import Trace

Int64s = npt.NDArray[np.int64]
NO_LABEL = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Forest:
    """`rows`: the event of each node (ascending); nodes from len(rows) on are hubs. `enclosing`: the
    innermost node around each event.

    Edges go from cause to effect: the targets of node i are targets[offsets[i] … offsets[i + 1]].
    """

    rows: npt.NDArray[np.intp]
    enclosing: npt.NDArray[np.int32]
    offsets: Int64s
    targets: Int64s
    sources: Int64s

    @property
    def n_nodes(self) -> int:
        """Number of events and hubs."""
        return len(self.offsets) - 1

    def no_labels(self) -> Int64s:
        """Initial labels: none for all nodes."""
        return np.full(self.n_nodes, NO_LABEL, np.int64)

    def node_of(self, events: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Nodes of events, which must be nodes."""
        return np.searchsorted(self.rows, events)

    def label_of(self, events: npt.NDArray[np.intp], labels: Int64s) -> Int64s:
        """Labels of events, which must be nodes; -1 for none."""
        label = labels[self.node_of(events)]
        return np.where(label == NO_LABEL, -1, label)

    def claim(self, label: Int64s, events: npt.NDArray[np.intp], labels: Int64s) -> Int64s:
        """Label events and spread the labels along edges; the smallest label that reaches a node wins."""
        labels = labels.copy()
        nodes = self.node_of(events)
        better = label < labels[nodes]
        labels[nodes[better]] = label[better]
        frontier = self._distinct(nodes[better])
        while len(frontier):
            source, target = self._out_edges(frontier)
            offered = labels[source]
            better = offered < labels[target]
            np.minimum.at(labels, target[better], offered[better])
            frontier = self._distinct(target[better])
        return labels

    def has_ancestor_among(self, events: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """For each event, whether another of the events precedes it in the graph, directly or not."""
        nodes = self.node_of(events)
        is_candidate = np.zeros(self.n_nodes, np.bool_)
        is_candidate[nodes] = True
        is_reached = np.zeros(self.n_nodes, np.bool_)
        frontier = nodes
        while len(frontier):
            _, target = self._out_edges(frontier)
            frontier = self._distinct(target[~is_reached[target]])
            is_reached[frontier] = True
        result = is_reached[nodes]
        # A cycle can lead an event back to itself: check those few one by one.
        for i in np.flatnonzero(result).tolist():
            result[i] = self._search_up(int(nodes[i]), is_candidate)
        return result

    def spread(self, labels: Int64s) -> npt.NDArray[np.int32]:
        """Label of every event of the trace: its innermost node's, -1 for none. Overwrites `enclosing`, so
        the forest cannot be used afterwards.
        """
        node_labels = labels[: len(self.rows)]
        relabel(self.enclosing, np.where(node_labels == NO_LABEL, -1, node_labels).astype(np.int32))
        return self.enclosing

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
        edge = np.repeat(first - np.append(0, np.cumsum(n)[:-1]), n) + np.arange(int(n.sum()))
        return np.repeat(nodes.astype(np.int64), n), self.targets[edge]

    def _search_up(self, node: int, is_candidate: npt.NDArray[np.bool_]) -> bool:
        """Whether a candidate other than the node itself leads to the node."""
        seen = {node}
        open_nodes = [node]
        while open_nodes:
            for source in self._in_edges(open_nodes.pop()):
                if source not in seen:
                    if is_candidate[source]:
                        return True
                    seen.add(source)
                    open_nodes.append(source)
        return False

    def _in_edges(self, node: int) -> list[int]:
        order, offsets = self._inverse
        sources: list[int] = self.sources[order[offsets[node] : offsets[node + 1]]].tolist()
        return sources

    @cached_property
    def _inverse(self) -> tuple[npt.NDArray[np.intp], Int64s]:
        """Edges by target: their order, and the offset of each node's edges."""
        counts = np.bincount(self.targets, minlength=self.n_nodes)
        return np.argsort(self.targets, kind="stable"), np.append(0, np.cumsum(counts)).astype(np.int64)


def _useful_ties(trace: Trace, tie: Ties, roots: npt.NDArray[np.intp]) -> Ties:
    """Ties without those that add no information: from one event to a sibling, if neither is known to have
    another cause.

    (XLA:CPU ties each operation to the mark of its end. Both have the same parent, from which they get their
    label, unless the first is itself a root or tied to another event.)
    """
    if not tie.n_hubs:
        return tie
    parent = parents(trace)
    has_own_cause = np.zeros(trace.n_events, np.uint8)
    has_own_cause[roots] = 1
    has_own_cause[tie.consumer] = 1
    is_useful: npt.NDArray[np.bool_] = informative_hubs(
        (tie.producer, tie.producer_hub, tie.consumer, tie.consumer_hub), tie.n_hubs, parent, has_own_cause
    )
    new_hub = np.cumsum(is_useful, dtype=np.int32) - np.int32(1)
    has_producer, has_consumer = is_useful[tie.producer_hub], is_useful[tie.consumer_hub]
    return Ties(
        tie.producer[has_producer],
        new_hub[tie.producer_hub[has_producer]],
        tie.consumer[has_consumer],
        new_hub[tie.consumer_hub[has_consumer]],
        int(is_useful.sum()),
    )


def forest(trace: Trace, roots: npt.NDArray[np.intp], extra: Int64s, runs: Int64s | None = None) -> Forest:
    """The graph of roots and tied events. `extra`: additional ties from event to event (2 columns).

    `runs`: likewise, but their targets get no label from the event that encloses them: a thread that ends one
    step's work can begin the next step's in the same region.
    """
    runs = np.empty((0, 2), np.int64) if runs is None else runs
    extra = np.concatenate((extra, runs))
    tie = _useful_ties(trace, ties(trace), roots)
    producer, consumer = representatives(trace, tie.producer), representatives(trace, tie.consumer)
    rows = marked(
        np.concatenate((roots, producer[producer >= 0], consumer[consumer >= 0], extra.ravel())),
        trace.n_events,
    )
    entry = np.full(trace.n_events, -1, np.int32)
    entry[rows] = np.arange(len(rows), dtype=np.int32)
    parent_of = parents(trace)
    enclosing = flood(
        parent_of, entry, entry
    )  # in place: nodes keep their numbers, and ten million events take 40 MB less
    parent = parent_of[rows]
    child = np.flatnonzero(parent >= 0)
    outer = enclosing[parent[child]]
    nested = outer >= 0
    if len(runs):
        nested &= ~np.isin(rows[child], runs[:, 1])
    n = len(rows)
    has_producer, has_consumer = producer >= 0, consumer >= 0
    source = np.concatenate(
        (outer[nested], entry[producer[has_producer]], n + tie.consumer_hub[has_consumer], entry[extra[:, 0]])
    )
    target = np.concatenate(
        (child[nested], n + tie.producer_hub[has_producer], entry[consumer[has_consumer]], entry[extra[:, 1]])
    )
    order = np.argsort(source, kind="stable")
    n_nodes = n + tie.n_hubs
    offsets = np.append(0, np.cumsum(np.bincount(source, minlength=n_nodes))).astype(np.int64)
    return Forest(rows, enclosing, offsets, target[order].astype(np.int64), source[order].astype(np.int64))
