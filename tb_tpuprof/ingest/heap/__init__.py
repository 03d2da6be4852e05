"""Snapshots of memory: files of pprof (JAX's save_device_memory_profile) and PyTorch's pickles → a `Heap`.

Start with `snapshot.py`. Pickles are read by a reader of our own, which knows no opcode that names code.
"""
