"""The tools, in the menu's order. To add a tool, add its name here: the module of that name, or `view.py` in
the folder of that name, defines `TOOL`.

A tool is imported when it is first needed, so that a command line that shows one of them starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tb_tpuprof.errors import ToolNotFound

if TYPE_CHECKING:
    from tb_tpuprof.tools.tool import Tool

NAMES = (
    "overview_page",
    "inference_profile",
    "input_pipeline_analyzer",
    "tf_data_bottleneck_analysis",
    "trace_viewer",
    "flame_graph",
    "communication",
    "framework_op_stats",
    "kernel_stats",
    "op_profile",
    "hlo_stats",
    "roofline_model",
    "memory_profile",
    "memory_snapshot",
    "memory_viewer",
    "graph_viewer",
    "tpu_compatibility",
    "pod_viewer",
    "megascale_stats",
    "saved_pages",
)


def get_tool(name: str) -> Tool:
    """The tool of that name. Raises ToolNotFound."""
    if name not in NAMES:
        raise ToolNotFound(name, list(NAMES))
    module = import_module(f"{__name__}.{name}")
    if hasattr(module, "__path__"):
        module = import_module(f"{module.__name__}.view")
    tool: Tool = module.TOOL
    return tool


def all_tools() -> tuple[Tool, ...]:
    """Every tool, in the menu's order."""
    return tuple(get_tool(name) for name in NAMES)
