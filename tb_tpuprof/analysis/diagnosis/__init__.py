"""Why steps are slow: every moment of a step has one cause, and causes with a culprit become findings.

pieces of steps ── parts ──▶ time by cause and culprit ── rules ──▶ findings ── diagnose ──▶ ranked, adding up
to the step
"""
