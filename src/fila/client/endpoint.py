"""Where a client connects to, and as whom: its arguments and environment variables, checked."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fila.client.api_key import ApiKey, warn_of_plaintext
from fila.client.arguments import addresses_of
from fila.client.tls import TLS, client_tls
from fila.wire.addresses import Addresses
from fila.wire.tls_context import ClientTls


class Endpoint(NamedTuple):
    addresses: Addresses
    key: ApiKey
    tls: ClientTls | None


def endpoint_of(
    addr: str | Sequence[str], api_key: str | None, api_key_file: str | Path | None, tls: TLS | bool | None
) -> Endpoint:
    """What the arguments of a client mean. To be called by its constructor: a warning names the line that calls that.

    Raises InvalidArgumentError.
    """
    key, secure = ApiKey(api_key, api_key_file), client_tls(tls)
    addresses = addresses_of(addr)
    warn_of_plaintext(addresses, key, secure=secure is not None, stacklevel=4)
    return Endpoint(addresses, key, secure)
