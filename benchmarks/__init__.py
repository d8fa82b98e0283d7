"""What Fila costs and how fast it is: real processes, real sockets, a real disk. Run as `python -m benchmarks`."""
