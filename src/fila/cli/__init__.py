"""The `fila` command: queues, producing and consuming from a terminal or a script."""
