"""The API key of a client, or its token of an identity provider: sent with every call as `authorization: Bearer`.

Precedence: 1. `api_key`, 2. `api_key_file`, 3. $FILA_API_KEY, 4. $FILA_API_KEY_FILE, 5. none.

A file is read again when it has changed, so a key is rotated by replacing the file: calls that begin later send the new
key, and streams that end with the old key reconnect with the new one.
"""

import os
import warnings
from pathlib import Path

from fila.client.errors import InvalidArgumentError
from fila.wire.address import is_loopback
from fila.wire.addresses import Addresses
from fila.wire.status import Metadata

KEY_VARIABLE = "FILA_API_KEY"
FILE_VARIABLE = "FILA_API_KEY_FILE"
_MAX_BYTES = 16 << 10


class ApiKey:
    """Where the key comes from. Its text is never shown."""

    def __init__(self, api_key: str | None = None, api_key_file: str | Path | None = None) -> None:
        """Raises InvalidArgumentError when both are given, or when there is no key where it should be."""
        if api_key is not None and api_key_file is not None:
            raise InvalidArgumentError("api_key and api_key_file exclude each other")
        if api_key is None and api_key_file is None:
            api_key = os.environ.get(KEY_VARIABLE) or None
            api_key_file = os.environ.get(FILE_VARIABLE) or None if api_key is None else None
        self._file = None if api_key_file is None else Path(api_key_file)
        self._read_at: tuple[int, int, int] | None = None
        self._metadata: Metadata = ()
        if api_key is not None:
            self._metadata = _metadata(api_key, "api_key")
        self.metadata()

    def metadata(self) -> Metadata:
        """What a call sends. Raises InvalidArgumentError for a file that cannot be read the first time; later, the last
        key that was read is sent.
        """
        if self._file is None:
            return self._metadata
        try:
            found = self._file.stat()
            stamp = found.st_mtime_ns, found.st_size, found.st_ino
            if stamp != self._read_at:
                self._metadata = _metadata(_read(self._file), str(self._file))
                self._read_at = stamp
        except (OSError, ValueError) as error:
            if not self._metadata:
                raise InvalidArgumentError(f"the API key cannot be read from {self._file}: {error}") from error
        except InvalidArgumentError:
            if not self._metadata:
                raise
        return self._metadata

    def __repr__(self) -> str:
        return "ApiKey(...)" if self._metadata else "ApiKey()"


def warn_of_plaintext(addresses: Addresses, key: ApiKey, *, secure: bool, stacklevel: int) -> None:
    """A key that leaves the machine without TLS can be read and used by whoever is on the path."""
    if secure or not key.metadata():
        return
    hosts = [address.rpartition(":")[0].strip("[]") for address in addresses.in_turn()]
    far = next((host for host in hosts if host != "localhost" and not is_loopback(host)), None)
    if far is not None:
        warnings.warn(
            f"the API key travels to {far} in plaintext: use TLS (tls=..., --tls-ca or FILA_TLS)", stacklevel=stacklevel
        )


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MAX_BYTES).decode()


def _metadata(text: str, where: str) -> Metadata:
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidArgumentError(f"{where} holds no API key or token: one line of printable ASCII")
    return (("authorization", f"Bearer {key}"),)
