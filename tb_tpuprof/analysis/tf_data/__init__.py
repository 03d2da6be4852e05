"""tf.data: iterator calls as trees, the critical path through each pipeline, and the gain of changes.

In: a `Trace`. Out: `Pipeline` and `Estimate`. Start with `pipeline.py`, then `what_if.py`.
"""
