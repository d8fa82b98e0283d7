"""`fila context`: brokers by name."""
