"""The Redis backend. Needs the extra `jobs`; import its public names from `fila.jobs`."""
