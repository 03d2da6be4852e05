"""Operations and their times, on hosts, GPUs and TPUs, by framework name and by HLO instruction.

In: a `Trace`. Out: `OpMetrics` and `HloOps`. Start with `stats.py` (framework operations) and `hlo.py`
(compiled operations); `roofline.py` compares them with the device's peak rates.
"""
