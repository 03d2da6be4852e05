"""Running jobs → profiles in a logdir, over the profiler service: targets, Cloud TPU names, monitoring. Only
here is gRPC known.
"""
