"""The page of inference requests: latency, its parts, batches, prefill and decode."""
