"""`fila doctor`: what is unsafe or unwise in how a server is set up.

A check is a function that takes what is known and yields findings; it does no I/O. `command.py` collects what is known.
"""
