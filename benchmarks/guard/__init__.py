"""Whether a hot path has become clearly slower. Run as `python -m benchmarks.guard`, or `make bench-guard`."""
