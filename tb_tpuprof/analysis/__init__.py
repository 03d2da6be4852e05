"""Trace to numbers: pure functions from a Trace to frozen results. No I/O, no JSON; ratios are 0–1, times are picoseconds."""
