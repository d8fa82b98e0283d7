"""Whether a message costs the same as everything around it grows. Run as `python -m benchmarks.growth`."""
