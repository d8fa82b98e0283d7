"""Fila, a durable message broker with fair scheduling: the public names of its Python SDK.

`fila.client.__all__` lists them. They are loaded on first use, so that `fila --help` does not load the SDK.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

__version__: str

if TYPE_CHECKING:
    from fila.client import *  # noqa: F403
else:

    def __getattr__(name: str) -> object:
        if name == "__version__":
            return version("fila-client")
        if name == "__all__":
            return __dir__()
        if name[:1].isupper() and name in (client := import_module("fila.client")).__all__:  # all of them are classes
            return getattr(client, name)
        raise AttributeError(f"module 'fila' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted([*import_module("fila.client").__all__, "__version__"])
