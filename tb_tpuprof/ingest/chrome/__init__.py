"""Chrome trace JSON and Kineto files (PyTorch, JAX, `trace.json.gz`): events in, the same columns as of an
XSpace out.

Start with `decoder.py`; `kineto*.py` know what PyTorch writes.
"""
