"""Traces of any size, real and synthetic, and the measurements that compare this project with its peer."""
