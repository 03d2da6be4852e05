"""An HLO module → text, as XLA prints it.

LONG prefixes names with % and prints metadata, source stacks and the computations' parameters; SHORT omits
these and is what XLA itself can parse. Lines are generated one by one, so that a module of any size can be
streamed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_tpuprof.analysis.hlo.text.attributes import (
    aliasing_texts,
    attribute_texts,
    custom_call_texts,
    escaped,
    sharding_text,
)
from tb_tpuprof.analysis.hlo.text.literals import literal_text
from tb_tpuprof.trace.hlo import HloModule
from tb_tpuprof.trace.hlo_attributes import Attributes
from tb_tpuprof.trace.hlo_shape import Shape

MAX_LITERAL = 1 << 16  # elements; longer constants are never written
_FEW = 10


@dataclass(frozen=True)
class TextOptions:
    """Parts to print. Constants with more than `literal_limit` elements become {...}."""

    percent: bool = True
    metadata: bool = True
    program_shape: bool = True
    control: bool = True
    operand_numbers: bool = True
    operand_shapes: bool = False
    backend_config: bool = True
    layouts: bool = True
    literal_limit: int = MAX_LITERAL


LONG = TextOptions()
SHORT = TextOptions(percent=False, metadata=False, program_shape=False, control=False, operand_numbers=False)


def module_text(module: HloModule, options: TextOptions = LONG) -> Iterator[str]:
    """The module's lines, without newlines."""
    yield from preamble(module, options)
    for computation in printed_computations(module):
        yield from computation_text(module, computation, options)
        yield ""


def preamble(module: HloModule, options: TextOptions = LONG) -> Iterator[str]:
    """The lines before the first computation."""
    yield _header(module)
    yield ""
    if options.metadata and module.frames.files:
        yield from _stack_frames(module)
        yield ""


def printed_computations(module: HloModule) -> list[int]:
    """`printed_order` without the computations that are printed as part of the instruction that
    starts them.
    """
    hidden = {
        int(module.calls[row][0])
        for row in np.flatnonzero(module.has_opcode(("async-start",))).tolist()
        if _is_wrapped(module, row)
    }
    return [computation for computation in printed_order(module) if computation not in hidden]


def printed_order(module: HloModule) -> list[int]:
    """Computations in XLA's print order: callees before callers, by instruction id; computations without
    callers by their own id.
    """
    called = set(module.calls.values.tolist())
    ids = module.instructions["id"]
    callers: dict[int, list[int]] = {}
    for row in np.unique(module.calls.owner).tolist():
        callers.setdefault(int(module.instructions["computation"][row]), []).append(row)

    def calls(computation: int) -> list[list[int]]:
        rows = sorted(callers.get(computation, ()), key=lambda row: int(ids[row]))
        return [[callee for callee in reversed(module.calls[row].tolist()) if callee >= 0] for row in rows]

    order: list[int] = []
    visited: set[int] = set()
    by_id = np.argsort(module.computations["id"], kind="stable").tolist()
    for root in [
        c for c in by_id if c not in called
    ] + by_id:  # the second round covers recursive computations
        if root in visited:
            continue
        visited.add(root)
        stack = [(root, iter(calls(root)))]
        while stack:
            computation, rest = stack[-1]
            called_next = next(rest, None)
            if called_next is None:
                order.append(computation)
                stack.pop()
                continue
            for callee in called_next:
                if callee not in visited:
                    visited.add(callee)
                    stack.append((callee, iter(calls(callee))))
    return order


def computation_text(module: HloModule, computation: int, options: TextOptions = LONG) -> Iterator[str]:
    """A computation's lines: its name, its instructions in execution order (if known), a closing brace."""
    entry = "ENTRY " if computation == module.info.entry else ""
    name = _name(module.computation_name(computation), options)
    shapes = ""
    if options.program_shape:
        shapes = f" {_program_shape(module, computation)}"
    yield f"{entry}{name}{shapes} {{"
    rows = module.schedule.get(computation)
    for row in module.rows_of(computation) if rows is None else rows.tolist():
        yield f"  {instruction_text(module, row, options)}"
    thread = module.strings.get(int(module.computations["execution_thread"][computation]))
    yield "}" + (f', execution_thread="{thread}"' if thread and thread != "main" else "")


def instruction_text(module: HloModule, row: int, options: TextOptions = LONG) -> str:
    """An instruction on one line: [ROOT ]%name = shape opcode(operands), attributes."""
    computation = int(module.instructions["computation"][row])
    root = "ROOT " if int(module.computations["root"][computation]) == row else ""
    return f"{root}{_name(module.name(row), options)} = {expression_text(module, row, options)}"


def expression_text(module: HloModule, row: int, options: TextOptions = LONG) -> str:
    """An instruction without its name: shape opcode(operands), attributes."""
    attributes = module.attributes(row)
    opcode = _written_opcode(module, row)
    operands = _operands(module, row, attributes, options)
    parts = [f"{module.shape(row).text(options.layouts)} {opcode}({operands})"]
    parts += _opcode_attributes(module, row, attributes, options)
    parts += _common_attributes(module, row, attributes, options)
    return ", ".join(parts)


def _name(name: str, options: TextOptions) -> str:
    return f"%{name}" if options.percent else name


def _written_opcode(module: HloModule, row: int) -> str:
    """The opcode as printed; for an asynchronous operation, the opcode that it wraps if that is a single
    instruction.
    """
    opcode = module.opcode(row)
    if not opcode.startswith("async-"):
        return opcode
    start = row
    for _ in range(_FEW):
        operands = module.operands[start]
        if len(module.calls[start]) or not len(operands) or operands[0] < 0:
            break
        start = int(operands[0])
    if not _is_wrapped(module, start):
        return opcode
    wrapped = module.opcode(int(module.computations["root"][module.calls[start][0]]))
    return wrapped + opcode.removeprefix("async")


def _is_wrapped(module: HloModule, start: int) -> bool:
    """Whether an asynchronous operation runs a computation of a single instruction, which is then printed in
    its place.
    """
    called = module.calls[start]
    root = int(module.computations["root"][called[0]]) if len(called) and called[0] >= 0 else -1
    if root < 0:
        return False
    operands = module.operands[root].tolist()
    is_whole = int(module.computations["n_instructions"][called[0]]) == len(operands) + 1
    return is_whole and all(i >= 0 and module.opcode(i) == "parameter" for i in operands)


def _operands(module: HloModule, row: int, attributes: Attributes, options: TextOptions) -> str:
    opcode = module.opcode(row)
    if opcode == "parameter":
        return str(int(module.instructions["parameter_number"][row]))
    if opcode == "constant":
        return literal_text(attributes.literal, options.literal_limit) if attributes.literal else "{...}"
    names = [_operand(module, int(i), options) if i >= 0 else "?" for i in module.operands[row]]
    numbered = options.operand_numbers
    return ", ".join(
        f"/*index={i}*/{name}" if numbered and i and i % 5 == 0 else name for i, name in enumerate(names)
    )


def _operand(module: HloModule, row: int, options: TextOptions) -> str:
    name = _name(module.name(row), options)
    return f"{module.shape(row).text(options.layouts)} {name}" if options.operand_shapes else name


def _opcode_attributes(
    module: HloModule, row: int, attributes: Attributes, options: TextOptions
) -> Iterator[str]:
    """Attributes of the opcode, and the called computations."""
    opcode = module.opcode(row)
    called = [_name(module.computation_name(int(i)), options) if i >= 0 else "?" for i in module.calls[row]]
    if opcode == "get-tuple-element":
        yield f"index={int(module.instructions['tuple_index'][row])}"
    yield from attribute_texts(opcode, attributes)
    if opcode == "fusion":
        yield f"kind={module.text('fusion_kind', row)}"
        yield from aliasing_texts(attributes)
    if opcode == "custom-call":
        yield from custom_call_texts(module.text("custom_call_target", row), attributes, called)
    elif opcode == "while" and len(called) == 2:
        yield f"condition={called[1]}"
        yield f"body={called[0]}"
    elif opcode == "conditional":
        first = module.operands[row][:1]
        is_pred = (
            len(first) > 0
            and first[0] >= 0
            and module.shape(int(first[0])).element_type == 1
            and len(called) == 2
        )
        yield from (
            [f"true_computation={called[0]}", f"false_computation={called[1]}"]
            if is_pred
            else [_branches(called)]
        )
    elif opcode == "select-and-scatter" and len(called) == 2:
        yield f"select={called[0]}"
        yield f"scatter={called[1]}"
    elif called and opcode in ("fusion", "async-start", "async-update", "async-done"):
        if _written_opcode(module, row) == opcode:
            yield f"calls={called[0]}"
    elif called:
        yield (
            f"to_apply={called[0]}" if len(called) == 1 else "called_computations={" + ", ".join(called) + "}"
        )


def _branches(called: list[str]) -> str:
    return "branch_computations={" + ", ".join(called) + "}"


def _common_attributes(
    module: HloModule, row: int, attributes: Attributes, options: TextOptions
) -> Iterator[str]:
    """Attributes that any instruction may have."""
    if attributes.options.get("is_composite"):
        yield "is_composite=true"
    if attributes.sharding:
        yield f"sharding={sharding_text(attributes.sharding)}"
    if attributes.frontend:
        yield _frontend(attributes.frontend)
    if attributes.control_predecessors and options.control:
        yield (
            "control-predecessors={"
            + ", ".join(_name(module.name(i), options) for i in attributes.control_predecessors)
            + "}"
        )
    if options.metadata:
        metadata = _metadata(module, row, attributes)
        if metadata:
            yield f"metadata={{{metadata}}}"
    config = module.backend_config(row)
    if config and options.backend_config:
        is_json = config[:1] == b"{"
        yield (
            f"backend_config={config.decode('utf-8', 'replace')}"
            if is_json
            else f'backend_config="{escaped(config)}"'
        )


def _frontend(attributes: dict[str, str]) -> str:
    """frontend_attributes={key="value"}; a value in braces is not quoted."""
    texts = {
        key: text if text.startswith("{") and text.endswith("}") else f'"{escaped(text)}"'
        for key, text in attributes.items()
    }
    return "frontend_attributes={" + ",".join(f"{key}={texts[key]}" for key in sorted(texts)) + "}"


def _metadata(module: HloModule, row: int, attributes: Attributes) -> str:
    columns = module.instructions
    parts = [
        f'{key}="{escaped(text)}"'
        for key in ("op_type", "op_name", "source_file")
        if (text := module.text(key, row))
    ]
    end_line, column, end_column = attributes.source_end
    line = int(columns["source_line"][row])
    pairs = (
        ("source_line", line),
        ("source_end_line", end_line),
        ("source_column", column),
        ("source_end_column", end_column),
    )
    parts += [f"{key}={n}" for key, n in pairs if n]
    if attributes.scheduling_name:
        parts.append(f'scheduling_name="{escaped(attributes.scheduling_name)}"')
    if frame := int(columns["stack_frame"][row]):
        parts.append(f"stack_frame_id={frame}")
    return " ".join(parts)


def _program_shape(module: HloModule, computation: int) -> str:
    """(p: f32[2], q: s32[]) -> f32[2]."""
    parameter_rows = {
        int(module.instructions["parameter_number"][i]): i
        for i in module.rows_of(computation)
        if module.opcode(i) == "parameter"
    }
    parameters = (
        f"{module.name(row)}: {module.shape(row).text(False)}" for _, row in sorted(parameter_rows.items())
    )
    root = int(module.computations["root"][computation])
    result = module.shape(root).text(False) if root >= 0 else "()"
    return f"({', '.join(parameters)}) -> {result}"


def _header(module: HloModule) -> str:
    header = module.header
    parts = [f"HloModule {module.info.name}"]
    if header.is_scheduled:
        parts.append("is_scheduled=true")
    if header.aliases:
        kinds = {1: ", may-alias", 2: ", must-alias"}
        texts = (
            f"{_index(a.output_index)}: ({a.operand}, {_index(a.operand_index)}{kinds.get(a.kind, '')})"
            for a in header.aliases
        )
        parts.append("input_output_alias={ " + ", ".join(texts) + " }")
    if header.donors:
        parts.append(
            "buffer_donor={ " + ", ".join(f"({n}, {_index(index)})" for n, index in header.donors) + " }"
        )
    if header.result is not None:
        parts.append(f"entry_computation_layout={{{_layouts(header.parameters, header.result)}}}")
    replicas, partitions = header.replicas
    parts += [f"replica_count={replicas}"] * (replicas > 1) + [f"num_partitions={partitions}"] * (
        partitions > 1
    )
    if header.frontend:
        parts.append(_frontend(header.frontend))
    return ", ".join(parts)


def _layouts(parameters: tuple[Shape, ...], result: Shape) -> str:
    texts = (
        f"/*index={i}*/{shape.text()}" if i and i % 5 == 0 else shape.text()
        for i, shape in enumerate(parameters)
    )
    return f"({', '.join(texts)})->{result.text()}"


def _index(index: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, index)) + "}"


def _stack_frames(module: HloModule) -> Iterator[str]:
    frames = module.frames
    yield "FileNames"
    yield from (f'{i} "{escaped(name)}"' for i, name in enumerate(frames.files, 1))
    yield ""
    yield "FunctionNames"
    yield from (f'{i} "{escaped(name)}"' for i, name in enumerate(frames.functions, 1))
    yield ""
    yield "FileLocations"
    for i, (file, function, line, column, end_line, end_column) in enumerate(frames.locations, 1):
        ends = f"line={line} end_line={end_line} column={column} end_column={end_column}"
        yield f"{i} {{file_name_id={file} function_name_id={function} {ends}}}"
    yield ""
    yield "StackFrames"
    yield from (
        f"{i} {{file_location_id={location} parent_frame_id={parent + 1}}}"
        for i, (location, parent) in enumerate(frames.frames, 1)
    )
    yield ""
