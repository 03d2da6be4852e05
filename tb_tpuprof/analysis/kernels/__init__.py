"""GPU kernels: names, launch parameters, occupancy, and the operation that launched each.

In: a `Trace`. Out: one row per group of equal kernels. Start with `kernels.py`.
"""
