"""The tables of an HLO module as data, like `trace/schema.py`. Row numbers are ids, -1 is none; strings are
the module's.
"""

from __future__ import annotations

from tb_tpuprof.trace.schema import ColumnSpec

COMPUTATIONS = (
    ColumnSpec("id", "int64", "id", "id in the file"),
    ColumnSpec("name", "int32", "string", "name"),
    ColumnSpec("root", "int32", "instruction", "the instruction whose value is the computation's"),
    ColumnSpec("first_instruction", "int32", "instruction", "its first instruction; the others follow it"),
    ColumnSpec("n_instructions", "int32", "count", "number of its instructions"),
    ColumnSpec("is_fusion", "bool", "", "whether the file marks it as a fusion's body"),
    ColumnSpec("execution_thread", "int32", "string", "thread that runs it, empty for the main one"),
)
INSTRUCTIONS = (
    ColumnSpec("computation", "int32", "computation", "the computation it belongs to"),
    ColumnSpec("id", "int64", "id", "id in the file; unique within the module"),
    ColumnSpec("name", "int32", "string", "name without %"),
    ColumnSpec("opcode", "int32", "opcode", "index into the module's `opcodes`"),
    ColumnSpec("shape", "int32", "shape", "index into the module's `shapes`"),
    ColumnSpec("op_type", "int32", "string", "framework's type of operation"),
    ColumnSpec("op_name", "int32", "string", "framework's name of the operation (provenance)"),
    ColumnSpec("source_file", "int32", "string", "file of the program's source"),
    ColumnSpec("source_line", "int32", "line", "line in that file, 0 if unknown"),
    ColumnSpec("stack_frame", "int32", "frame", "innermost frame, 1-based as in the file; 0 is none"),
    ColumnSpec("deduplicated_name", "int32", "string", "name of the instruction of which this one is a copy"),
    ColumnSpec("fusion_kind", "int32", "string", "kLoop, kOutput …; empty unless it is a fusion"),
    ColumnSpec("custom_call_target", "int32", "string", "what a custom call calls"),
    ColumnSpec("parameter_number", "int64", "", "number of a parameter"),
    ColumnSpec("tuple_index", "int64", "", "element that get-tuple-element takes"),
    ColumnSpec("channel_id", "int64", "id", "channel of a collective, 0 if none"),
    ColumnSpec("backend_position", "int64", "byte", "offset of the backend's configuration in `data`"),
    ColumnSpec("backend_size", "int64", "bytes", "its size, 0 if none"),
    ColumnSpec("position", "int64", "byte", "offset of the instruction's message in `data`"),
    ColumnSpec("size", "int64", "bytes", "its size"),
)
