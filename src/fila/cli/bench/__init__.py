"""`fila bench`: what a running broker does in a second, and how fast it answers."""
