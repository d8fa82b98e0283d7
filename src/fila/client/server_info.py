"""How a server is set up: what it listens on, its certificate, its store."""

from dataclasses import dataclass
from datetime import datetime

from google.protobuf.message import Message

from fila.client.admin_service import AdminCalls, moment
from fila.client.enums import name_of
from fila.v1 import admin_pb2, service_pb2


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The TLS of a server."""

    #: "none", "optional" or "required".
    client_auth: str
    #: "1.2" or "1.3".
    min_version: str
    #: Why clients refuse the certificate; empty: they do not, unless they connect to another name.
    certificate_error: str
    #: None if the certificate cannot be used.
    certificate_expires_at: datetime | None
    #: The host names and addresses that the certificate is for.
    certificate_names: tuple[str, ...]
    key_file: str
    #: Permission bits, such as 0o600.
    key_file_mode: int


@dataclass(frozen=True, slots=True)
class ServerStore:
    """The store of a server."""

    data_dir: str
    #: Permission bits, such as 0o700.
    data_dir_mode: int
    #: "wal" or "fsync".
    durability: str
    free_bytes: int
    #: Producers are refused while less is free.
    min_free_bytes: int


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """How a server is set up."""

    version: str
    #: By the clock of the server's machine.
    now: datetime
    listen_addr: str
    #: The port of metrics and probes; empty: it is off.
    http_listen_addr: str
    #: Whether it serves everyone though neither keys nor client certificates are set up.
    insecure: bool
    #: Whether it serves loopback clients only.
    protected_mode: bool
    #: Whether calls need a key.
    has_keys: bool
    #: None: no TLS.
    tls: ServerTls | None
    store: ServerStore
    journal_enabled: bool
    runs_as_root: bool


@dataclass(frozen=True, slots=True)
class Description:
    """What every client may know of a server."""

    version: str
    #: What it can do, such as "claims" or "journal".
    features: frozenset[str]
    #: The largest requests that it accepts, such as `limits["max_payload_bytes"]`: `Limits` in proto/fila/v1.
    limits: dict[str, int]
    #: How long it remembers what makes a repeated request harmless: `Memory` in proto/fila/v1.
    memory: dict[str, int]


class ServerCalls(AdminCalls):
    """The calls about the server itself, as `AsyncClient` has them."""

    async def describe(self) -> Description:
        """Version, features and limits of the server. Needs no permission."""
        admin = self._admin()
        found = await admin.call(admin.service.Describe, service_pb2.DescribeRequest())
        return Description(
            found.version,
            frozenset(name_of(service_pb2.Feature, feature) for feature in found.features),
            _numbers(found.limits),
            _numbers(found.memory),
        )

    async def describe_server(self) -> ServerInfo:
        """How the server is set up. Needs the permission `audit` on the server once keys exist."""
        admin = self._admin()
        found = await admin.call(admin.stub.DescribeServer, admin_pb2.DescribeServerRequest())
        return ServerInfo(
            version=found.version,
            now=moment(found.now),
            listen_addr=found.listen_addr,
            http_listen_addr=found.http_listen_addr,
            insecure=found.insecure,
            protected_mode=found.protected_mode,
            has_keys=found.has_keys,
            tls=_tls(found.tls) if found.HasField("tls") else None,
            store=_store(found.store),
            journal_enabled=found.journal_enabled,
            runs_as_root=found.runs_as_root,
        )


def _numbers(message: Message) -> dict[str, int]:
    return {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}


def _tls(tls: admin_pb2.TlsInfo) -> ServerTls:
    return ServerTls(
        name_of(admin_pb2.ClientAuth, tls.client_auth),
        name_of(admin_pb2.TlsVersion, tls.min_version).replace("_", "."),
        tls.certificate_error,
        moment(tls.certificate_expires_at) if tls.HasField("certificate_expires_at") else None,
        tuple(tls.certificate_names),
        tls.key_file,
        tls.key_file_mode,
    )


def _store(store: admin_pb2.StoreInfo) -> ServerStore:
    return ServerStore(
        store.data_dir,
        store.data_dir_mode,
        name_of(admin_pb2.Durability, store.durability),
        store.free_bytes,
        store.min_free_bytes,
    )
