"""Advice in the terms of the job's framework, citing this run's trace."""

from __future__ import annotations

from collections.abc import Callable

from tb_tpuprof.analysis.events.frameworks import JAX, PYTORCH, SERVING, TENSORFLOW
from tb_tpuprof.analysis.ops.framework_calls import (
    EAGER,
    GRAPH,
    LAUNCH,
    LOADER,
    SYNC,
    WORKERS,
    Call,
)
from tb_tpuprof.analysis.overview.facts import RunFacts
from tb_tpuprof.units import format_time

_COLLECTIVES = {
    PYTORCH: "Overlap communication with the backward pass (DDP's `bucket_cap_mb`, FSDP's prefetching), or "
    "use a larger batch per GPU.",
    JAX: "Overlap communication with compute, use a larger batch per device, or shard differently "
    "(`jax.sharding`).",
    TENSORFLOW: "Use a larger batch per replica, or pack gradients "
    "(`experimental_communication_options` of `tf.distribute`).",
}
_COMPILING = {
    PYTORCH: "Keep shapes constant (`torch.compile(dynamic=True)`, padded batches), to avoid recompilation.",
    JAX: "Keep shapes, dtypes and static arguments constant from step to step, so that `jax.jit` compiles "
    "once.",
    TENSORFLOW: "Pass tensors instead of Python numbers to `tf.function`, and keep shapes constant, so that "
    "it is traced once.",
}
_OUTPUT = {
    PYTORCH: "Fetch results less often: keep metrics on the device, and copy them (`.cpu()`, `.item()`) "
    "every n-th step.",
    JAX: "Fetch results less often: keep metrics on the device, and convert them (`float(loss)`) every n-th "
    "step.",
    TENSORFLOW: "Fetch results less often: keep metrics on the device, and call `.numpy()` every n-th step.",
}
_PYTHON_TRACER = {
    PYTORCH: "Capture with `with_stack=True` to see Python calls between operators.",
    JAX: "Capture with the Python tracer on (`python_tracer_level=1`) to see Python calls between "
    "operations.",
    TENSORFLOW: "Capture with the Python tracer on (`python_tracer_level=1`) to see Python calls between "
    "operations.",
}
_IN_GENERAL = {
    "device_collectives": "Overlap communication with compute, use a larger batch per device, or shard "
    "differently.",
    "compilation": "Keep shapes and arguments constant from step to step, to avoid recompilation.",
    "output": "Fetch results less often: log every n-th step, keep metrics on the device.",
    "other": "Look for host work between operations.",
    "input": "Load ahead: use more workers, and load the next batch while the current step runs.",
    "kernel_launch": "Launch fewer, larger kernels: compile the step, or run several steps per call.",
    "host_python": "Do less in Python per step: prepare data in other threads or processes, log less often, "
    "compile the work.",
    "host_wait": "Check in the trace viewer what the step waits for; move work that the step does not need "
    "to another thread.",
}
_MANY = 8  # launches per step
_WORTH_CITING = 0.01  # of the steps' time
_GOOD = "The steps are compute-bound: optimize the most expensive operations."
_ANNOTATE = {
    PYTORCH: "Call `prof.step()` after each step, or mark steps with `record_function`, so that step time "
    "and its parts can be measured.",
    JAX: "Wrap each step in `jax.profiler.StepTraceAnnotation`, so that step time and its parts can be "
    "measured.",
    TENSORFLOW: "Wrap each step in `tf.profiler.experimental.Trace`, so that step time and its parts can be "
    "measured.",
}


def framework_advice(category: str, facts: RunFacts, calls: tuple[Call, ...]) -> tuple[str, ...]:
    """Advice on the category that the verdict names, largest gain first."""
    framework = TENSORFLOW if facts.software.framework == SERVING else facts.software.framework
    if not len(facts.steps):
        if facts.common.is_disjoint:
            return ("Select one host at a time: the captures do not overlap.",)
        return (_ANNOTATE.get(framework, "Annotate steps, so that step time and its parts can be measured."),)
    makers: dict[str, Callable[[str, RunFacts, tuple[Call, ...]], tuple[str, ...]]] = {
        "input": _input,
        "other": _idle,
        "kernel_launch": _launches,
        "synchronization": lambda *args: tuple(_waits(*args)),
    }
    if category in makers:
        general = _IN_GENERAL.get(category)
        return makers[category](framework, facts, calls) or ((general,) if general else ())
    tables = {"device_collectives": _COLLECTIVES, "compilation": _COMPILING, "output": _OUTPUT}
    if category in tables:
        return (tables[category].get(framework, _IN_GENERAL[category]),)
    if category in _IN_GENERAL:
        return (_IN_GENERAL[category],)
    return (_GOOD,)


def _calls_of(kind: str, calls: tuple[Call, ...]) -> list[Call]:
    return [call for call in calls if call.kind == kind]


def _n_calls(kind: str, calls: tuple[Call, ...]) -> int:
    return sum(call.n for call in _calls_of(kind, calls))


def _input(framework: str, facts: RunFacts, calls: tuple[Call, ...]) -> tuple[str, ...]:
    if framework == PYTORCH:
        return _data_loader(calls, facts.kind == "GPU")
    if facts.software.uses_tf_data:
        return (
            "Let tf.data work ahead: use parallel `map` and `interleave`, `prefetch(tf.data.AUTOTUNE)` at "
            "the end, and `cache` data that fits in memory.",
        )
    if framework == JAX:
        return (
            "Load ahead of use: Grain with `worker_count`, or another loader in threads or processes, and "
            "`jax.device_put` the next batch while the current step runs.",
        )
    if framework == TENSORFLOW:
        return (
            "Feed the job with tf.data and `prefetch(tf.data.AUTOTUNE)`: no stage of a tf.data pipeline was "
            "traced.",
        )
    return ()


def _data_loader(calls: tuple[Call, ...], has_gpu: bool) -> tuple[str, ...]:
    in_process, workers = _calls_of(LOADER, calls), _calls_of(WORKERS, calls)
    pinned = (
        "`pin_memory=True` with `.to(device, non_blocking=True)` overlaps the copy to the GPU with "
        "computation."
    )
    if in_process:
        first = (
            f"The `DataLoader` loads in the training process ({_batches(in_process[0].n)} took "
            f"{format_time(in_process[0].time_ps)}): set "
            "`num_workers` to 4 or more per GPU, with `persistent_workers=True`."
        )
    elif workers:
        first = (
            f"The `DataLoader`'s workers are too slow ({_batches(workers[0].n)} waited "
            f"{format_time(workers[0].time_ps)}): use more "
            "`num_workers`, a larger `prefetch_factor`, or cheaper transforms."
        )
    else:
        first = (
            "Load in worker processes: `DataLoader(num_workers=4, persistent_workers=True)`, or more workers "
            "if processors are free."
        )
    return (first, pinned) if has_gpu else (first,)


def _idle(framework: str, facts: RunFacts, calls: tuple[Call, ...]) -> tuple[str, ...]:
    advice = _waits(framework, facts, calls) + (
        list(_launches(framework, facts, calls)) if facts.kind == "GPU" else []
    )
    if framework == TENSORFLOW:
        advice.append(
            "Keep Python out of the loop: run several steps per call (`steps_per_execution` in Keras, or a "
            "loop inside `tf.function`)."
        )
    if framework == JAX and facts.kind == "CPU" and not advice and not facts.steps.is_ahead:
        advice.append(
            "JAX dispatches asynchronously: fetch values (`float(loss)`, `block_until_ready`) only every "
            "n-th step."
        )
    if facts.software.has_python:
        advice.append("Python calls are traced: check in the trace viewer which run while nothing else does.")
    elif framework in _PYTHON_TRACER:
        advice.append(_PYTHON_TRACER[framework])
    return tuple(advice)


def _waits(framework: str, facts: RunFacts, calls: tuple[Call, ...]) -> list[str]:
    """Advice on the host's waits for the device, if they were traced and cost enough."""
    least = _WORTH_CITING * float(facts.steps.duration_ps.sum())
    waits = [call for call in _calls_of(SYNC, calls) if call.time_ps > least]
    if not waits:
        return []
    cited = " and ".join(
        f"`{_bare(call.name)}` ({_calls(call.n)}, {format_time(call.time_ps)})" for call in waits[:2]
    )
    what = {
        PYTORCH: "move `.item()`, `.cpu()`, printing of losses and `torch.cuda.synchronize()` out of the "
        "step, or do them only every n-th step",
        JAX: "move `block_until_ready`, `float(loss)` and `np.asarray` out of the step, or do them only "
        "every n-th step",
        TENSORFLOW: "move `.numpy()` and printing of tensors out of the step, or do them only every n-th "
        "step",
    }.get(framework, "fetch results only every n-th step")
    return [f"The host waits for the device in {cited}: {what}."]


def _batches(n: int) -> str:
    return "1 batch" if n == 1 else f"{n:,} batches"


def _calls(n: int) -> str:
    return "1 call" if n == 1 else f"{n:,} calls"


def _bare(name: str) -> str:
    return name.rpartition(" ")[2] if name.startswith("$") else name


def _launches(framework: str, facts: RunFacts, calls: tuple[Call, ...]) -> tuple[str, ...]:
    """Advice on kernels that are launched one by one, with their number."""
    n = _n_calls(LAUNCH, calls) if len(facts.steps) else 0
    cited = f"{n:,} kernels were launched one by one in the steps: " if n >= _MANY * len(facts.steps) else ""
    if framework == PYTORCH:
        graphs = "HIP graphs" if facts.software.is_amd else "CUDA graphs"
        if _n_calls(GRAPH, calls):
            return (f"{cited}{graphs} are in use; capture more of the step in them.",) if cited else ()
        how = "`torch.compile(mode='reduce-overhead')`"
        return (
            f"{cited or 'Launch fewer, larger kernels: '}fuse them with {how}, or replay them as {graphs}.",
        )
    if framework == TENSORFLOW:
        eager = _n_calls(EAGER, calls)
        first = (
            f"{eager:,} operations ran eagerly: put the step into a `tf.function`. "
            if eager > len(facts.steps)
            else ""
        )
        return (
            f"{first}{cited or 'Launch fewer, larger kernels: '}compile the step with "
            "`tf.function(jit_compile=True)`.",
        )
    if framework == JAX:
        return (
            f"{cited or 'Launch fewer, larger programs: '}put the whole step into one `jax.jit`, or several "
            "steps into a `lax.scan`.",
        )
    return ()
