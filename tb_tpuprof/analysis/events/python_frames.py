"""Names on a Python thread: frames of the Python tracer and the user's annotations, and which of them wait or
hand over data.

Frames are called `$train.py:15 batches` (the file, the line at which the function is defined, the function)
or `$time sleep` (a module and a function written in C); PyTorch's tracer calls them `train.py(15): batches`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from tb_tpuprof.analysis.events.library_files import library_files
from tb_tpuprof.analysis.events.text_cache import text_cache


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_JAX_FRAME = re.compile(r"\$(?:(?P<file>[^\s:]+\.pyx?):(?P<line>\d+)|(?P<module>\S+)) (?P<function>.+)")
_TORCH_FRAME = re.compile(r"(?P<file>[^():]+\.pyx?)\((?P<line>\d+)\): (?P<function>.+)")
_TORCH_BUILTIN = re.compile(r"<built-in (?:method|function) (?P<function>\w+)\b.*>")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

# Functions that return only when something else has happened. `get` and `read` are mostly calls on
# dictionaries and text, but then they take no time.
_WAITS = _set(
    "sleep wait wait_for acquire poll epoll select join recv recv_into recvfrom recvmsg accept read readinto "
    "readline result "
    "get block_until_ready synchronize sched_yield TFE_ExecutorWaitForAllPendingNodes"
)
_LIBRARY_WAITS = _set(
    "threading queue queues connection selectors select socket ssl subprocess _base popen_fork synchronize "
    "poll"
)
_CAPTURES = re.compile(r"\$(?:profiler\.py:\d+ (?:start|stop)_trace|profiler_v2\.py:\d+ (?:start|stop))")
_LIBRARY = _LIBRARY_WAITS | frozenset(("contextlib", "_bootstrap", "functools", "profiler"))
# Words in the name of a function or annotation that hands over data, and words that mark it as part of the
# step whatever its other words are.
_DATA_WORDS = _set(
    "load loader loading loaded dataloader data dataset datasets next batch batches input inputs fetch read "
    "reader reading prefetch generator gen feed feeder pipeline iterator sample samples examples records "
    "decode augment preprocess tokenize shard"
)
_STEP_WORDS = _set(
    "train training test eval evaluate validate step update loss forward backward grad gradient apply norm "
    "on fit predict "
    "model main run parallel loop epoch device init compile optimizer save checkpoint log write"
)
_LOADER_FILES = _set("dataloader iterator_ops data_loader dataset_iterator lazy_dataset grain_pool")
_RUNTIME = re.compile(
    r"PjitFunction\(|TFE_|Eager[A-Z]|FunctionRun|SessionRun|RunGraph|Xla|XLA|P[jJ][rR][tT]|Execut|ParseArguments|DevicePut|"
    r"Handle (?:inputs|outputs|input)|Wait for |Allocate|Build buffer|"
    r"Make(?:Output|Iterator)|Memory(?:All|Deall)|Mem[cC]py|[DH]2[DH] |"
    r"ValidateInput|(?:Prefetch|Parallel)\w*(?:Consume|Produce)|np\.asarray|ArrayImpl|shard_args|batched_device_put|cpp_pjit|"
    r"convert_to_tensor|tf\.constant|RecordUsage|ThenExecute|RemoteCall|Resolve constant|"
    r"Codegen|LoadProgram|hip[A-Z]|cu[A-Z]|cuda|"
    r"end: |Infeed|Outfeed|TraceContext|BatchingSession|ProcessBatch|IteratorGetNext|<unknown>|\(unknown|"
    r"Acquire semaphore|Release semaphore|PCIe|MapDma|Linearize|Delinearize"
)
_COMPILE = re.compile(
    r"(?:backend_compile|XlaCompile|CompileAndLoad|CompileModule|lower_sharding_computation|"
    r"tf\.function-graph_building)|\w*Compiler::(?!BufferFrom)|\w+::Compile"
)


class Kind(IntEnum):
    """The kind of a host event, by its name. NONE: an operation or a call of the runtime."""

    NONE = 0
    PYTHON = 1  # a frame
    ANNOTATION = 2  # a stretch that the user named
    WAIT = 3  # a frame that returns only when something else has happened
    LOADER = 4  # a frame or annotation that hands over data
    NEXT = 5  # `next`: it calls a generator or an iterator


@dataclass(frozen=True)
class Frame:
    """A frame of the Python tracer. `file` and `line`: the function's definition, empty and 0 if it is
    written in C.
    """

    function: str
    file: str = ""
    line: int = 0
    module: str = ""

    @property
    def place(self) -> str:
        """`train.py:15`, empty if the function is written in C."""
        return f"{self.file}:{self.line}" if self.file else ""

    @property
    def stem(self) -> str:
        """The file name without folder and suffix."""
        return self.file.rpartition("/")[2].partition(".")[0]

    @property
    def is_users(self) -> bool:
        """Whether its file is known and not one of Python's own that only wait, such as `queue.py`."""
        return bool(self.file) and self.stem not in _LIBRARY


@text_cache
def frame_of(name: str) -> Frame | None:
    """The frame with this name; None if the name is not a frame's."""
    match = _JAX_FRAME.fullmatch(name) if name.startswith("$") else None
    if match:
        return Frame(match["function"], match["file"] or "", int(match["line"] or 0), match["module"] or "")
    if name.startswith("$"):
        return Frame(name[1:])
    match = _TORCH_FRAME.fullmatch(name)
    if match:
        return Frame(match["function"], match["file"].rpartition("/")[2], int(match["line"]))
    match = _TORCH_BUILTIN.fullmatch(name)
    return Frame(match["function"], module="builtins") if match else None


def python_place(name: str) -> str:
    """`/app/train.py:15`: the whole path and line of a frame of PyTorch's tracer; empty for other events. JAX
    and TensorFlow record only the name of the file.
    """
    match = _TORCH_FRAME.fullmatch(name)
    return f"{match['file']}:{match['line']}" if match else ""


def _names_data(name: str) -> bool:
    """Whether a name refers to handing over data and not to a step: `load_batch`, `NextBatch`, but not
    `train_on_batch`.
    """
    words = {word.lower() for word in _WORDS.findall(name)}
    return bool(words & _DATA_WORDS) and not words & _STEP_WORDS


def kind_of(name: str) -> Kind:
    """The kind of a host event, by its name."""
    frame = frame_of(name)
    if frame is None:
        if ":" in name or not name or _RUNTIME.match(name) or _COMPILE.match(name):
            return Kind.NONE
        return Kind.LOADER if _names_data(name) else Kind.ANNOTATION
    if frame.module == "builtins" and frame.function == "next":
        return Kind.NEXT
    waits = frame.function in _WAITS
    if waits and (not frame.file or frame.stem in _LIBRARY_WAITS):
        return Kind.WAIT
    if frame.function == "__next__" or (frame.stem in _LOADER_FILES and not frame.function.startswith("_")):
        return Kind.LOADER
    # A framework's `read_variable_op` and `batch_all_reduce` are not input; only functions in its data files
    # are.
    is_framework = frame.stem in library_files()["framework"] and not _names_data(frame.stem)
    if frame.is_users and not is_framework and _names_data(frame.function):
        return Kind.LOADER
    return Kind.WAIT if waits and frame.function in ("block_until_ready", "synchronize") else Kind.PYTHON


def is_compilation(name: str) -> bool:
    """Whether a host event compiles a program: `backend_compile`, `CpuCompiler::Compile`."""
    return not name.startswith("$") and bool(_COMPILE.match(name))


def is_capture(name: str) -> bool:
    """Whether a host event is the profiler's own work, which no job does when it is not profiled:
    `$profiler.py:213 stop_trace`.
    """
    return _CAPTURES.fullmatch(name) is not None
