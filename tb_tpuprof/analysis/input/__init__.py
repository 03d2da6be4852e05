"""How long steps wait for input, on the host and on the device, and what the host does meanwhile.

In: a `Trace` per host. Out: `InputPipeline`. Start with `pipeline.py`.
"""
