"""Addresses of brokers, as options, variables and contexts name them."""

from __future__ import annotations

from fila.settings.fields import is_address

DEFAULT_ADDR = "localhost:5555"


def is_broker_address(text: str) -> bool:
    """Whether it is host:port, or several with commas between them. Port 0 is none that can be connected to."""
    return all(is_address(each) and int(each.rpartition(":")[2]) > 0 for each in map(str.strip, text.split(",")))
