"""Profiles of running jobs, fetched over gRPC: targets and Cloud TPU names → `<host>.xplane.pb` files, and monitoring."""
