"""A host's trace → the batch size, where shapes reveal it. Traces do not state it: all of this is derived,
and unknown with the reason where shapes leave a doubt.

    HLO       train_step(params, images f32[384,256], labels s32[384]) → (params, loss)
              parameters that are no results are the input: all begin with 384
              predict(params, images f32[16,32,32,3]) → f32[16,10]
              parameters that begin like the result, beside those of one container (`params[…]`)
    PyTorch   aten::conv2d, aten::embedding, attention: the first dimension of their inputs (`Input Dims`)
    tf.data   the outermost batching stage of each pipeline (`batch_size`)
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.events.stat_rows import events_named
from tb_tpuprof.analysis.ops.hlo import hlo_ops
from tb_tpuprof.analysis.tf_data.forest import forest, stage_type
from tb_tpuprof.errors import ProfilerError
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import Sharding
from tb_tpuprof.trace.hlo_shape import Shape
from tb_tpuprof.trace.trace import Trace

_LEAST_SHARE = 0.05  # of the compiled operations' time: programs that take less are not the step's
_MOST_SAMPLES = 12  # calls whose shapes are read, of each operation
_KEY_DIMS = ((2,), (4,))  # of keys of random numbers, u32
_U32 = 8
_TILED = 3
# Operations whose first dimension is the batch, the position of that input, and its rank.
_PYTORCH = {
    "aten::conv1d": (0, 3),
    "aten::conv2d": (0, 4),
    "aten::conv3d": (0, 5),
    "aten::embedding": (1, 2),
    "aten::scaled_dot_product_attention": (0, 4),
}
_BATCHES = re.compile(r"(?:Padded|Parallel)?Batch(?:V\d+)?|MapAndBatch(?:V\d+)?")
_NO_SHAPES = (
    "no shapes in the trace show it: neither the HLO of the program, nor PyTorch's `record_shapes=True`, "
    "nor a batching stage of tf.data"
)


@dataclass(frozen=True)
class BatchSize:
    """`value`: examples per step, 0 if unknown; `per`: of what, such as `device`, empty for the whole
    program; `how`: where it is from, or why it is unknown.
    """

    value: int
    per: str
    how: str


UNKNOWN = BatchSize(0, "", _NO_SHAPES)


@dataclass(frozen=True)
class _Input:
    """A parameter of a program: its name in the framework, shape, and the devices that share its first
    dimension, 0 if unknown.
    """

    name: str
    shape: Shape
    n_shards: int

    @property
    def root(self) -> str:
        """Its name before the first index or attribute: `params[0][1]` is in `params`."""
        return re.split(r"[\[.]", self.name, maxsplit=1)[0]


def batch_size(trace: Trace) -> BatchSize:
    """The batch size of one host. If several sources reveal it, the compiled program's counts; a size that
    tf.data contradicts is unknown.
    """
    compiled, batched = _of_programs(trace), _of_tf_data(trace)
    if compiled is not None and compiled.value and batched is not None and batched.value:
        return compiled if compiled.value % batched.value == 0 else _contradiction(compiled, batched)
    parts = [part for part in (compiled, _of_pytorch(trace), batched) if part is not None]
    known = next((part for part in parts if part.value), None)
    return known or (parts[0] if parts else UNKNOWN)


def _contradiction(compiled: BatchSize, batched: BatchSize) -> BatchSize:
    return BatchSize(0, "", f"{compiled.value:,} by {compiled.how}, but {batched.value:,} by {batched.how}")


def _unknown(reason: str) -> BatchSize:
    return BatchSize(0, "", reason)


def _of_programs(trace: Trace) -> BatchSize | None:
    """By the parameters of the programs that take most of the time; None if no program's HLO is known."""
    ops = hlo_ops(trace)
    programs, code = np.unique(ops.program, return_inverse=True)
    times = np.bincount(code.reshape(-1), ops.self_ps, len(programs))
    main = [int(i) for i in np.argsort(-times, kind="stable") if times[i] >= _LEAST_SHARE * times.sum() > 0]
    found: list[BatchSize] = []
    for i in main:
        module = _module(trace, int(programs[i]))
        if module is not None:
            found.append(_of_program(module))
    if not found:
        return None
    known = {(one.value, one.per) for one in found if one.value}
    if len(known) > 1:
        sizes = ", ".join(f"{value:,}" for value, _ in sorted(known))
        return _unknown(f"it differs between programs that take at least 5% of the time: {sizes}")
    return next((one for one in found if one.value), found[0])


def _module(trace: Trace, program: int) -> HloModule | None:
    try:
        return trace.programs.module(program)
    except ProfilerError:  # reported on the program's own page
        return None


def _of_program(module: HloModule) -> BatchSize:
    result = module.header.result
    leaves = [leaf.dims for leaf in result.leaves] if result is not None else []
    inputs = [one for one in _inputs(module) if one.shape.dims and not _is_key(one.shape)]
    name = module.info.name
    fresh = [one for one in inputs if one.shape.dims not in leaves]
    if len(fresh) < len(inputs):  # it returns what it updates
        return _agreed(module, fresh, name)
    return _of_inference(module, inputs, leaves, name)


def _inputs(module: HloModule) -> list[_Input]:
    """The parameters of the entry computation; none if a damaged file lacks it."""
    if module.info.entry < 0:
        return []
    entry = module.rows_of(module.info.entry)
    is_parameter = module.has_opcode(("parameter",))[entry.start : entry.stop]
    rows = (entry.start + np.flatnonzero(is_parameter)).tolist()
    return [
        _Input(
            module.text("op_name", row) or module.name(row),
            module.shape(row),
            _n_shards(module.attributes(row).sharding),
        )
        for row in rows
        if module.shape(row).is_array
    ]


def _n_shards(sharding: Sharding | None) -> int:
    """Devices that the first dimension is spread over, 0 if unknown."""
    if sharding is None or sharding.named is not None:
        return 0
    return sharding.dims[0] if sharding.type == _TILED and sharding.dims else 1 if sharding.type == 0 else 0


def _is_key(shape: Shape) -> bool:
    return shape.element_type == _U32 and shape.dims in _KEY_DIMS


def _agreed(module: HloModule, inputs: list[_Input], name: str) -> BatchSize:
    """The first dimension of all inputs of a program that returns its state."""
    sizes = {one.shape.dims[0] for one in inputs}
    if not inputs:
        return _unknown(f"all parameters of `{name}` are results, too: none is a batch")
    if len(inputs) == 1:
        return _unknown(
            f"`{name}` has only one input, `{inputs[0].name}`, which does not show which dimension is the "
            "batch"
        )
    if len(sizes) > 1:
        texts = ", ".join(f"`{one.name}` {_dims(one.shape)}" for one in inputs[:3])
        return _unknown(f"the inputs of `{name}` begin with different dimensions: {texts}")
    return _whole(module, inputs, name)


def _of_inference(
    module: HloModule, inputs: list[_Input], leaves: list[tuple[int, ...]], name: str
) -> BatchSize:
    """The first dimension of all results, if inputs outside of the weights' container share it."""
    firsts = {dims[0] if dims else 0 for dims in leaves}
    size = firsts.pop() if len(firsts) == 1 else 0
    batched = [one for one in inputs if one.shape.dims[0] == size]
    weights = [one for one in inputs if one.shape.dims[0] != size]
    containers = {one.root for one in weights}
    is_clear = len(containers) == 1 and all(one.name != one.root for one in weights)
    if size < 2 or not batched or not is_clear or containers & {one.root for one in batched}:
        return _unknown(f"the shapes of `{name}` do not show which dimension is the batch")
    return _whole(module, batched, name)


def _whole(module: HloModule, inputs: list[_Input], name: str) -> BatchSize:
    """The size over all devices: a program that is spread over devices states one device's part."""
    replicas, partitions = (max(n, 1) for n in module.header.replicas)
    size = inputs[0].shape.dims[0]
    names = " and ".join(f"`{one.name}`" for one in inputs[:2]) + (" and others" if len(inputs) > 2 else "")
    how = f"the first dimension of {names} in `{name}`"
    shards = {one.n_shards for one in inputs} if partitions > 1 else {1}
    if len(shards) > 1 or 0 in shards:
        return BatchSize(size, "device", f"{how}; its sharding over {partitions} devices is not stated")
    factor = shards.pop() * replicas
    return BatchSize(size * factor, "", f"{how}, {size:,} on each of {factor} devices" if factor > 1 else how)


def _dims(shape: Shape) -> str:
    return f"[{','.join(map(str, shape.dims))}]"


def _of_pytorch(trace: Trace) -> BatchSize | None:
    """By the inputs of PyTorch's operations; None if the trace has none of them, or not their shapes."""
    sizes: Counter[int] = Counter()
    seen: list[str] = []
    for name, (position, rank) in _PYTORCH.items():
        found = list(_first_dims(trace, name, position, rank))
        sizes.update(found)
        seen += [name] if found else []
    if not sizes:
        return None
    names = " and ".join(f"`{name}`" for name in seen)
    if len(sizes) > 1:
        texts = ", ".join(f"{size:,}" for size in sorted(sizes)[:4])
        return _unknown(f"the inputs of {names} begin with different dimensions: {texts}")
    return BatchSize(next(iter(sizes)), "process", f"the first dimension of the inputs of {names}")


def _first_dims(trace: Trace, name: str, position: int, rank: int) -> Iterable[int]:
    rows = events_named(trace, (name,))
    if not len(rows):
        return
    sample = rows[np.unique(np.linspace(0, len(rows) - 1, _MOST_SAMPLES).astype(np.int64))]
    for row in sample.tolist():
        stats = trace.source.event_stats(trace, row)
        text = next((str(value) for key, value in stats if key == "Input Dims"), "")
        if not text:  # shapes were not recorded
            return
        dims = _input_dims(text, position)
        if len(dims) == rank:
            yield dims[0]


def _input_dims(text: str, position: int) -> list[int]:
    """The dimensions of one input; empty if the text is no list of them."""
    try:
        shapes = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    dims = shapes[position] if isinstance(shapes, list) and len(shapes) > position else []
    is_shape = isinstance(dims, list) and all(type(dim) is int and 0 < dim < 2**31 for dim in dims)
    return dims if is_shape else []


def _of_tf_data(trace: Trace) -> BatchSize | None:
    """By the outermost batching stage of each pipeline; None if no pipeline has one."""
    iterators = forest(trace)
    outermost: dict[int, str] = {}
    for node, stage in enumerate(iterators.stages):
        above, _, _ = stage.rpartition("::")
        if _BATCHES.fullmatch(stage_type(stage)):
            if not any(_BATCHES.fullmatch(part) for part in above.split("::")):
                outermost[node] = stage
        elif stage_type(stage).startswith("Rebatch"):
            return _unknown("tf.data divides its batches again (`Rebatch`)")
    sizes: dict[int, str] = {}
    for node, stage in outermost.items():
        events = np.flatnonzero(iterators.node == node)
        sample = (
            events[np.unique(np.linspace(0, len(events) - 1, 8).astype(np.int64))] if len(events) else events
        )
        for row in iterators.row[sample].tolist():
            stats = trace.source.event_stats(trace, int(row))
            text = next((str(value) for key, value in stats if key == "batch_size"), "")
            if text.isdecimal() and 0 < len(text) < 10:
                sizes[int(text)] = stage_type(stage)
    if not sizes:
        return None
    if len(sizes) > 1:
        return _unknown(f"tf.data makes batches of different sizes: {', '.join(map(str, sorted(sizes)))}")
    size, kind = next(iter(sizes.items()))
    return BatchSize(size, "host", f"the stage `{kind}` of tf.data")
