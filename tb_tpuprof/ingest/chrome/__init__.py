"""Chrome trace JSON and Kineto files (PyTorch, JAX, `trace.json.gz`) → the same columns as from an XSpace.

Start with `decoder.py`; `kineto*.py` handle what PyTorch writes.
"""
