"""Traces of any size, real and synthetic, and the measurements of this project beside its peer."""
