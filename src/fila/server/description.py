"""How the server is set up, as DescribeServer tells it. No secret is in it: names of files and numbers."""

import os
import stat
import time
from importlib.metadata import version
from pathlib import Path

from fila.broker.broker import Broker
from fila.config import Config
from fila.server.certificates import Certificates
from fila.server.enums import number_of
from fila.server.protected_mode import ProtectedMode
from fila.server.timestamps import timestamp
from fila.storage.room import low_watermark
from fila.v1 import admin_pb2 as pb

_NS = 1_000_000_000


class Description:
    """Looked up anew each time: certificates, rights and the disk change under a running server."""

    def __init__(
        self, config: Config, protected_mode: ProtectedMode, certificates: Certificates | None, broker: Broker
    ) -> None:
        self._config = config
        self._protected_mode = protected_mode
        self._certificates = certificates
        self._broker = broker

    def write(self) -> pb.DescribeServerResponse:
        config = self._config
        return pb.DescribeServerResponse(
            version=version("fila"),
            now=timestamp(time.time_ns()),
            listen_addr=config.server.listen_addr,
            http_listen_addr=config.telemetry.prometheus_listen,
            insecure=config.server.insecure,
            protected_mode=self._protected_mode.on,
            has_keys=self._broker.state.access.enforced,
            tls=None if self._certificates is None else self._write_tls(self._certificates),
            store=self._write_store(),
            journal_enabled=config.journal.enabled,
            runs_as_root=os.geteuid() == 0,
        )

    def _write_tls(self, certificates: Certificates) -> pb.TlsInfo:
        config, found = self._config.tls, certificates.found
        return pb.TlsInfo(
            client_auth=number_of(pb.ClientAuth, config.client_auth),
            min_version=number_of(pb.TlsVersion, config.min_version.replace(".", "_")),
            certificate_error=found.error,
            certificate_expires_at=None if found.error else timestamp(int(found.not_after) * _NS),
            certificate_names=found.names,
            key_file=str(Path(config.key).absolute()),
            key_file_mode=_mode(config.key),
        )

    def _write_store(self) -> pb.StoreInfo:
        config = self._config.storage
        free, total = _disk(config.data_dir)
        return pb.StoreInfo(
            data_dir=str(Path(config.data_dir).absolute()),
            data_dir_mode=_mode(config.data_dir),
            durability=number_of(pb.Durability, config.survives),
            free_bytes=free,
            min_free_bytes=low_watermark(total, config.min_free_bytes),
        )


def _disk(path: str) -> tuple[int, int]:
    """Bytes that are free and the size of the file system; 0 for a folder that is gone."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return 0, 0
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def _mode(path: str) -> int:
    """Its permission bits; 0 for a file that is gone."""
    try:
        return stat.S_IMODE(Path(path).stat().st_mode)
    except OSError:
        return 0
