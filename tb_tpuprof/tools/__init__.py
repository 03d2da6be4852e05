"""The tools, in the menu's order. An explicit tuple: to add a tool, add its module here."""

from tb_tpuprof.errors import ToolNotFound
from tb_tpuprof.tools.communication.view import TOOL as COMMUNICATION
from tb_tpuprof.tools.flame_graph.view import TOOL as FLAME_GRAPH
from tb_tpuprof.tools.framework_op_stats.view import TOOL as FRAMEWORK_OP_STATS
from tb_tpuprof.tools.graph_viewer.view import TOOL as GRAPH_VIEWER
from tb_tpuprof.tools.hlo_stats.view import TOOL as HLO_STATS
from tb_tpuprof.tools.inference_profile.view import TOOL as INFERENCE_PROFILE
from tb_tpuprof.tools.input_pipeline_analyzer.view import TOOL as INPUT_PIPELINE_ANALYZER
from tb_tpuprof.tools.kernel_stats.view import TOOL as KERNEL_STATS
from tb_tpuprof.tools.megascale_stats.view import TOOL as MEGASCALE_STATS
from tb_tpuprof.tools.memory_profile.view import TOOL as MEMORY_PROFILE
from tb_tpuprof.tools.memory_snapshot.view import TOOL as MEMORY_SNAPSHOT
from tb_tpuprof.tools.memory_viewer.view import TOOL as MEMORY_VIEWER
from tb_tpuprof.tools.op_profile.view import TOOL as OP_PROFILE
from tb_tpuprof.tools.overview_page.view import TOOL as OVERVIEW_PAGE
from tb_tpuprof.tools.pod_viewer.view import TOOL as POD_VIEWER
from tb_tpuprof.tools.roofline_model.view import TOOL as ROOFLINE_MODEL
from tb_tpuprof.tools.saved_pages.view import TOOL as SAVED_PAGES
from tb_tpuprof.tools.tf_data_bottleneck_analysis.view import TOOL as TF_DATA_BOTTLENECK_ANALYSIS
from tb_tpuprof.tools.tool import Tool
from tb_tpuprof.tools.tpu_compatibility.view import TOOL as TPU_COMPATIBILITY
from tb_tpuprof.tools.trace_viewer.view import TOOL as TRACE_VIEWER

TOOLS: tuple[Tool, ...] = (
    OVERVIEW_PAGE,
    INFERENCE_PROFILE,
    INPUT_PIPELINE_ANALYZER,
    TF_DATA_BOTTLENECK_ANALYSIS,
    TRACE_VIEWER,
    FLAME_GRAPH,
    COMMUNICATION,
    FRAMEWORK_OP_STATS,
    KERNEL_STATS,
    OP_PROFILE,
    HLO_STATS,
    ROOFLINE_MODEL,
    MEMORY_PROFILE,
    MEMORY_SNAPSHOT,
    MEMORY_VIEWER,
    GRAPH_VIEWER,
    TPU_COMPATIBILITY,
    POD_VIEWER,
    MEGASCALE_STATS,
    SAVED_PAGES,
)


def get_tool(name: str) -> Tool:
    """The tool of that name. Raises ToolNotFound."""
    for tool in TOOLS:
        if tool.name == name:
            return tool
    raise ToolNotFound(name, [tool.name for tool in TOOLS])
