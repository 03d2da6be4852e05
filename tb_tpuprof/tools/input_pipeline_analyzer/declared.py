"""Parts of a step, tables, numbers and tiles of the input pipeline analyzer."""

from __future__ import annotations

from tb_tpuprof.tools.facts import fact_specs
from tb_tpuprof.tools.input_pipeline_analyzer.torch_loader import LOADER_TABLES
from tb_tpuprof.tools.part_times import PART_TIMES
from tb_tpuprof.tools.reasons import NO_STEPS
from tb_tpuprof.tools.spec import ScalarSpec, TableSpec, number, text
from tb_tpuprof.tools.tiles import Tile, tiles

# Parts of a step as they are stacked, from the bottom: title, color, what the time was spent on. First the
# parts of CPUs and GPUs.
PARTS = {
    "device_compute": ("Device compute", "compute", "computing on the device"),
    "device_collectives": (
        "Device collectives",
        "collective",
        "in collective communication between devices, such as all-reduce",
    ),
    "device_to_device": ("Device to device", "d2d", "copying between devices"),
    "host_compute": ("Host compute", "host", "in operations and other traced work on the host"),
    "host_python": (
        "Python",
        "python",
        "in Python and in the program's own annotations, where nothing traced ran",
    ),
    "host_wait": ("Waiting", "wait", "waiting in Python, with no trace of what for"),
    "kernel_launch": ("Kernel launch", "launch", "preparing and launching kernels on the host"),
    "compilation": ("Compilation", "compile", "compiling on the host"),
    "output": ("Output", "output", "copying from device to host"),
    "input": (
        "Input",
        "input",
        "waiting for the input pipeline's next element, and copying from host to device",
    ),
    "other": ("Other", "idle", "the rest, in which nothing traced ran: Python, other host work, or waiting"),
}
HOSTS_ONLY = ("host_python", "host_wait")  # unknown for steps of devices
# Those of the cores of TPUs.
CORE_PARTS = {
    "tc_compute": ("Compute", "compute", "computing on the TensorCore"),
    "collective_compute": (
        "Collectives",
        "collective",
        "communicating with other cores",
    ),
    "collective_sync": (
        "Waiting in collectives",
        "launch",
        "waiting in a collective for the slowest core",
    ),
    "device_to_device": ("Send and receive", "d2d", "sending to other cores and receiving from them"),
    "sparse_wait": ("Waiting for the SparseCore", "host", "waiting for embeddings from the SparseCore"),
    "tc_infeed": ("Infeed", "input", "waiting for input: infeed, or idle while the host waited for input"),
    "host_transfer": ("Host transfer", "compile", "sending to the host and receiving from it"),
    "tc_outfeed": ("Outfeed", "output", "sending results to the host"),
    "tc_idle": ("Idle", "idle", "no operation ran"),
}
_SPARSE_CORE_PARTS = {
    "sc_compute": "SparseCore compute",
    "sc_infeed": "SparseCore infeed",
    "sc_outfeed": "SparseCore outfeed",
    "sc_idle": "SparseCore idle",
}
HOST_PARTS = {
    "enqueuing": ("Enqueuing", "d2d", "passing data to the device"),
    "preprocessing": (
        "Preprocessing",
        "host",
        "turning what was read into elements: map, batch, shuffle",
    ),
    "advanced_reads": (
        "Prefetched reads",
        "output",
        "reading files ahead of time: below an interleave, prefetch, parallel map or cache",
    ),
    "demanded_reads": ("On-demand reads", "input", "reading files when the next element is requested"),
    "other": ("Other", "idle", "the rest of the time between enqueues, and stages of no known kind"),
}


def meaning_of(activity: str) -> str:
    """A part's meaning as a sentence: time spent on something, or the rest."""
    return (
        activity[0].upper() + activity[1:]
        if activity.startswith(("the rest", "no operation"))
        else f"Time spent {activity}"
    )


_STEP_PARTS = tuple(
    number(f"{name}_ps", title, "ps", meaning_of(what), is_optional=True)
    for name, (title, _, what) in {**CORE_PARTS, **PARTS}.items()
)
STEPS = TableSpec(
    "steps",
    "Steps",
    (
        text("step", "Step", "Name of the step, or its number"),
        number("step_time_ps", "Step time", "ps", "From the step's start to its end"),
        number("start_ps", "Start", "ps", "Since the trace's start"),
        *_STEP_PARTS,
        number(
            "input_fraction",
            "Waiting for input",
            "fraction",
            "Share of the step spent waiting for input",
            formula="input ÷ step time",
        ),
        number(
            "input_fraction_min",
            "Least waiting core",
            "fraction",
            "Share of waiting for input on the core that waits least; TPUs only",
            is_optional=True,
            unknown="only TPUs have several cores in a step",
        ),
        number(
            "input_fraction_max",
            "Most waiting core",
            "fraction",
            "Share of waiting for input on the core that waits most; TPUs only",
            is_optional=True,
            unknown="only TPUs have several cores in a step",
        ),
        text(
            "input_core",
            "Waits longest",
            "The core that waits longest for input, as host:core; TPUs only",
            is_optional=True,
        ),
        *(
            number(
                f"{name}_ps",
                title,
                "ps",
                "Time of the SparseCores, which run next to the TensorCore; mean over SparseCores",
                is_optional=True,
            )
            for name, title in _SPARSE_CORE_PARTS.items()
        ),
    ),
    "A row per step, a column per part (listed in `breakdown.column`): they add up to the step time. "
    "Times of SparseCores are not part of it",
    sentence="The duration of each step, split into parts that add up to it",
)
BREAKDOWN = TableSpec(
    "breakdown",
    "Step time by category",
    (
        text("category", "Category", "The part of the step"),
        text("column", "Column", "Of the table `steps`"),
        text("color", "Color", "Name of the part's color"),
        *PART_TIMES,
        text("meaning", "Meaning", "What counts as this part"),
    ),
    "A row per part of the step, as they are stacked; the share is the ratio of the sums over all steps",
    sentence="How the time of all steps is shared among its parts",
)
HOST_TIMES = TableSpec(
    "host_categories",
    "Where the host's input time goes",
    (
        text("category", "Category", "Kind of work for input on the host"),
        text("color", "Color", "Name of the category's color"),
        number(
            "time_ps", "Time", "ps", "Self time of the category's operations, summed over threads and hosts"
        ),
        number(
            "fraction",
            "Share",
            "fraction",
            "Of all five categories",
            formula="time ÷ Σ time of all five categories",
            unknown="the trace contains no input operations on the host",
        ),
        text("meaning", "Meaning", "What counts as this category"),
    ),
    "The host's time for input, always in five rows: enqueuing, preprocessing, prefetched reads, "
    "on-demand reads, other. Without any, the shares are null",
    sentence="Time that the hosts spend on input, by kind of work, summed over threads",
)
_OF_ALL = "Of the self time of all input operations"
INPUT_OPS = TableSpec(
    "input_ops",
    "Input operations on the host",
    (
        text(
            "operation",
            "Operation",
            "Name of the operation; instances that a stage creates per element share one name",
        ),
        number("n_occurrences", "Occurrences", "count", "How often the operation ran"),
        number("total_time_ps", "Total time", "ps", "Of all occurrences, with nested operations"),
        number(
            "total_fraction",
            "Total share",
            "fraction",
            _OF_ALL,
            formula="total time ÷ Σ self time of all input operations",
        ),
        number(
            "self_time_ps",
            "Self time",
            "ps",
            "Of all occurrences, without nested operations",
            formula="total time − time of operations nested inside",
        ),
        number(
            "self_fraction",
            "Self share",
            "fraction",
            _OF_ALL,
            formula="self time ÷ Σ self time of all input operations",
        ),
        text("category", "Category", "Kind of work for input; Waiting belongs to no category"),
    ),
    "A row per operation of the input pipeline, largest self time first",
)
HOSTS = TableSpec(
    "hosts",
    "Hosts",
    (
        text("host", "Host", "Name of the host"),
        number("n_steps", "Steps", "count", "Number of the host's own steps"),
        number(
            "step_time_avg_ps",
            "Average step time",
            "ps",
            "Mean duration of the host's own steps",
            formula="Σ step time ÷ number of steps",
            unknown="the host has no steps",
        ),
        number(
            "input_fraction",
            "Waiting for input",
            "fraction",
            "Share of the host's own steps spent waiting for input",
            formula="Σ input ÷ Σ step time",
            unknown="the host has no steps",
        ),
        number(
            "waiting_ps",
            "Waiting per step",
            "ps",
            "Time per step that the host waits for input, mean over its steps",
            formula="Σ input ÷ number of steps",
            unknown="the host has no steps",
        ),
        text(
            "host_category",
            "Largest host category",
            "The kind of input work on which the host spends the most time",
            unknown="the trace contains no input operations on this host",
        ),
        number(
            "host_category_ps",
            "Its time",
            "ps",
            "Time of that kind of input work on the host",
            unknown="the trace contains no input operations on this host",
        ),
    ),
    "A row per host, the one that waits the largest share of its steps first; times per step are null for a "
    "host without steps",
    sentence="Each host's own steps, the one that waits the largest share of them first",
)
ADVICE = TableSpec(
    "advice",
    "What to do",
    (
        text("category", "For", "The part of the step or kind of input work that the advice is about"),
        text("text", "What to do", "What to change"),
        text("tool", "Tool", "The page to open; empty for none"),
    ),
    "For the parts and host categories that matter in this run, largest gain first",
    sentence="Advice for the parts and kinds of input work that matter in this run, largest gain first",
)
TABLES = (STEPS, BREAKDOWN, HOST_TIMES, INPUT_OPS, ADVICE, *LOADER_TABLES, HOSTS)
SCALARS = (
    *fact_specs(
        "step_time_avg_ps",
        "step_time_sd_ps",
        "step_time_min_ps",
        "step_time_max_ps",
        "n_steps",
        "input_fraction",
    ),
    ScalarSpec(
        "input_fraction_sd",
        "Standard deviation of waiting",
        "fraction",
        "How much the share of waiting varies from step to step: the standard deviation of the sample",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "input_fraction_min",
        "Least waiting step",
        "fraction",
        "Share of waiting for input in the step that waits least",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "input_fraction_max",
        "Most waiting step",
        "fraction",
        "Share of waiting for input in the step that waits most",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "waiting_avg_ps",
        "Waiting per step",
        "ps",
        "Time per step spent waiting for input, mean over the steps",
        formula="Σ input ÷ number of steps",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "output_fraction",
        "Output",
        "fraction",
        "Share of the steps spent copying results from the device to the host, or in outfeed",
        formula="Σ output ÷ Σ step time",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "other_fraction",
        "Other",
        "fraction",
        "Share of the steps in which nothing traced runs; on TPUs the TensorCore is idle",
        formula="Σ other ÷ Σ step time",
        unknown=NO_STEPS,
    ),
    ScalarSpec(
        "host_input_ps",
        "Host time for input",
        "ps",
        "Self time of all input operations on the hosts, summed over threads, in all five categories",
        unknown="the trace contains no input operations on the host",
    ),
    ScalarSpec(
        "host_enqueue_fraction",
        "Enqueuing",
        "fraction",
        "Share of the host's time for input that goes into infeed enqueues and copies to the device",
        formula="enqueuing ÷ Σ time of all five categories",
        unknown="the trace contains no infeed enqueues, and no steps with copies to a device",
    ),
    ScalarSpec(
        "input_fraction_worst_core",
        "Waiting on the core that waits longest",
        "fraction",
        "Share of the steps that the core which waits longest spends waiting, mean over steps; TPUs only",
        is_optional=True,
        unknown=NO_STEPS,
    ),
)
_WORTH_A_TILE = 0.0005  # of the steps' time
TILES = tiles(
    "input_fraction",
    "waiting_avg_ps",
    "step_time_avg_ps",
    "host_input_ps",
    "host_enqueue_fraction",
    Tile("output_fraction", _WORTH_A_TILE),
    Tile("other_fraction", _WORTH_A_TILE),
    Tile("n_steps", least=1),
)
