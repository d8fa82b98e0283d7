"""No-op jobs through `fila.jobs` and through other libraries, on the same Redis in one run: `make bench-jobs`."""
