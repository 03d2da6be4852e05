"""Captures profiles of running jobs into a logdir, over the profiler service: targets, Cloud TPU names,
monitoring. The only package that uses gRPC.
"""
