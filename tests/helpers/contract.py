"""Every method of every service of the contract, also of those that a later proto file adds."""

from importlib import import_module
from pathlib import Path

import fila.v1


def contract():
    """Each method, and the module with its messages."""
    for path in sorted(Path(fila.v1.__path__[0]).glob("*_pb2.py")):
        file = import_module(f"fila.v1.{path.stem}")
        for service in file.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                yield method, file


METHODS = {method.name: (method, file) for method, file in contract()}


def path_of(name):
    """The path of an RPC."""
    return f"/{METHODS[name][0].containing_service.full_name}/{name}"
