"""The tools, in the menu's order. An explicit tuple: to add a tool, add its module here."""

from tb_tpuprof.errors import ToolNotFound
from tb_tpuprof.tools import (
    framework_op_stats,
    graph_viewer,
    hlo_stats,
    input_pipeline_analyzer,
    kernel_stats,
    memory_profile,
    memory_viewer,
    op_profile,
    overview_page,
    pod_viewer,
    roofline_model,
    tf_data_bottleneck_analysis,
    tpu_compatibility,
    trace_viewer,
)
from tb_tpuprof.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (
    overview_page.TOOL,
    input_pipeline_analyzer.TOOL,
    tf_data_bottleneck_analysis.TOOL,
    trace_viewer.TOOL,
    framework_op_stats.TOOL,
    kernel_stats.TOOL,
    op_profile.TOOL,
    hlo_stats.TOOL,
    roofline_model.TOOL,
    memory_profile.TOOL,
    memory_viewer.TOOL,
    graph_viewer.TOOL,
    tpu_compatibility.TOOL,
    pod_viewer.TOOL,
)


def get_tool(name: str) -> Tool:
    """The tool of that name. Raises ToolNotFound."""
    for tool in TOOLS:
        if tool.name == name:
            return tool
    raise ToolNotFound(name, [tool.name for tool in TOOLS])
