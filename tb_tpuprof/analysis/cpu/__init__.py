"""Operations of XLA:CPU: which events are executions of which operation, on which thread, and how long each
execution really took.

In: a `Trace`. Out: `CpuRuns`, one row per execution. Start with `runs.py`.
"""
