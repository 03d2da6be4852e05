"""How long steps wait for input, on the host and on the device, and the host's work on input meanwhile.

In: a `Trace` per host. Out: `InputPipeline`. Start with `pipeline.py`.
"""
