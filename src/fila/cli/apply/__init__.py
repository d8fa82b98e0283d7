"""`fila apply`: queues, limits, configuration and rights as a file.

`manifest.py` reads the file, `plan.py` compares it with the broker, `command.py` shows the difference and makes it so.
"""
