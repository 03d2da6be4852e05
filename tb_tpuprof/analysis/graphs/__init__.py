"""TensorFlow graphs: scopes, drawing, and the operations that a TPU cannot run.

In: a `Graph` (see `trace/graph.py`). Start with `tpu_compatibility.py`.
"""
