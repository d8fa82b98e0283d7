"""Fila beside the brokers that a user would pick instead. Run as `python -m benchmarks.peers`."""
