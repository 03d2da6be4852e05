"""Operations of XLA:CPU: which events are executions of which operation, on which thread, and how long each
really ran.

In: a `Trace`. Out: `Runs`, one row per execution. Start with `runs.py`.
"""
