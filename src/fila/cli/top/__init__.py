"""`fila top`: a live view of a broker or of one queue."""

from fila.cli.top.samples import Samples

__all__ = ["Samples"]
