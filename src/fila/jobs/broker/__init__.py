"""The backend on a Fila broker. Import its public names from `fila.jobs`."""
