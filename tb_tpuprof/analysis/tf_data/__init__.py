"""tf.data: iterator calls as trees, the critical path through each pipeline, and what a change would gain.

In: a `Trace`. Out: `Pipeline` and `Estimate`. Start with `pipeline.py`, then `what_if.py`.
"""
