"""Requests of inference jobs: how many, how long each took, and where its time went.

In: a `Trace` per host. Out: `HostInference`, one row per request; `summed` joins hosts. Start with
`requests.py`.
"""
