"""The page of inference requests: latency, where it goes, batches, prefill and decode, the slowest requests."""
