"""Memory over the capture: allocations, the peak and the buffers that cause it, usage per step.

In: a `Trace`. Out: `HostMemory`. Start with `host.py`. Buffers of compiled programs are in `hlo/memory.py`.
"""
