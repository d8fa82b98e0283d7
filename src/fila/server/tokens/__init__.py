"""Tokens of an identity provider: its keys, from a file or from an address, and the check of signatures (PyJWT).

What the claims mean is in `fila.auth.claims`.
"""
