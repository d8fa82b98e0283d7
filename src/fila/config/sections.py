"""The server's settings: one frozen section for each part, with every default.

Add a setting: one line here and one in `deploy/fila.toml.example`; a test compares the two. Units are in the names.
"""

import re
from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

from fila.settings import Section, address, choice, flag, text, text_list, whole_number
from fila.settings.fields import is_address

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
DAY_MS = 24 * 60 * 60 * 1000


def _is_endpoint(value: str) -> bool:
    match = re.fullmatch(r"https?://(.*?)/?", value)
    return value == "" or (match is not None and is_address(match[1]))


_PATH = "a path, or nothing"


def _is_path(value: str) -> bool:
    return "\0" not in value


def _is_name(value: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9._/-]{1,100}", value) is not None


@dataclass(frozen=True, slots=True)
class ServerConfig(Section):
    """Where the server listens and how it stops."""

    listen_addr: str = address("0.0.0.0:5555", '"0.0.0.0:5555", "localhost:5555" or "[::]:5555"')
    #: Serve peers of other machines although neither keys nor client certificates are set up.
    insecure: bool = flag(default=False)
    #: How long SIGTERM waits for accepted requests before it closes streams.
    shutdown_grace_ms: int = whole_number(10_000, 0, 3_600_000)
    #: Busy-poll: how long the server polls for more work before it sleeps. 0: it sleeps at once.
    stay_awake_us: int = whole_number(100, 0, 1_000_000)
    #: Connections at a time: of all clients, and of one address.
    max_connections: int = whole_number(10_000, 1, 1_000_000)
    max_peer_connections: int = whole_number(1_000, 1, 1_000_000)
    #: Bytes that all peers together can make the server hold: incoming and running requests, unsent responses.
    max_held_bytes: int = whole_number(64 * MIB, 4 * MIB, 64 * GIB)
    #: A turn of the event loop that takes so long is logged. 0: none is.
    slow_turn_ms: int = whole_number(100, 0, 3_600_000)
    #: Worker processes, each with its queues and its store, behind the one address. 1: one process does all.
    workers: int = whole_number(1, 1, 64)
    #: The first of as many ports, one for each worker, which clients are told to use directly. 0: none.
    worker_port: int = whole_number(0, 0, 65_535)


@dataclass(frozen=True, slots=True)
class TlsConfig(Section):
    """Certificates of both ports, and what clients have to show. Files are PEM. Without `cert` there is no TLS."""

    #: The server's certificate, followed by those of intermediate CAs.
    cert: str = text("", _PATH, _is_path)
    #: Its private key, not encrypted.
    key: str = text("", _PATH, _is_path)
    #: The CAs that sign client certificates.
    client_ca: str = text("", _PATH, _is_path)
    #: Whether clients of the gRPC port show a certificate: never, if they have one, or always.
    client_auth: Literal["none", "optional", "required"] = choice("none", "optional", "required")
    #: The oldest TLS version that is accepted.
    min_version: Literal["1.2", "1.3"] = choice("1.2", "1.3")

    @property
    def enabled(self) -> bool:
        return bool(self.cert)

    def check(self) -> None:
        self.require(bool(self.cert) == bool(self.key), "cert and key together, or neither")
        self.require(self.enabled or not self.client_ca, "cert and key where there is client_ca")
        self.require(
            (self.client_auth == "none") == (not self.client_ca),
            'client_ca together with client_auth = "optional" or "required"',
        )


ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""Signatures that only the owner of a private key can make. `none` and HMAC are in no list: they cannot be allowed."""

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def is_jwks_url(value: str) -> bool:
    """Whether keys may be fetched from there: HTTPS, or HTTP from this very machine."""
    try:
        parts = urlsplit(value)
        return bool(parts.hostname) and (
            parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOCAL)
        )
    except ValueError:
        return False


def _is_claim(value: str) -> bool:
    return len(value) <= 300 and value.isprintable()


def _maps_role(value: str) -> bool:
    claim, equals, role = value.rpartition("=")
    return bool(claim and equals and role) and value.isprintable()


@dataclass(frozen=True, slots=True)
class JwtConfig(Section):
    """Tokens of an identity provider (JWT). Without `issuer` none is accepted; with it, every caller must be known."""

    #: What the claim `iss` must be.
    issuer: str = text("", "a name of the identity provider, or nothing", _is_claim)
    #: What the claim `aud` must be or contain.
    audience: str = text("", "a name of this server, or nothing", _is_claim)
    #: The provider's public keys (JWKS): a file, or where they are fetched from.
    jwks_file: str = text("", _PATH, _is_path)
    jwks_url: str = text(
        "", "an https address, an http address of this machine, or nothing", lambda url: url == "" or is_jwks_url(url)
    )
    #: How often keys are fetched. An unknown key is looked for at once, at most every 5 seconds.
    jwks_refresh_ms: int = whole_number(300_000, 1_000, DAY_MS)
    algorithms: tuple[str, ...] = text_list(
        ("RS256", "ES256"), f"a list of {', '.join(ALGORITHMS)}", lambda name: name in ALGORITHMS
    )
    #: Which claim names the principal, and what is put before it, so that it is not one that has keys.
    principal_claim: str = text("sub", "the name of a claim", lambda claim: claim != "" and _is_claim(claim))
    principal_prefix: str = text("jwt:", "up to 40 letters, digits and ._@:/=,-", lambda v: len(v) <= 40)
    #: Which claim lists groups, scopes or roles: its name, or a path such as "realm_access.roles".
    roles_claim: str = text("", "the name of a claim, or nothing", _is_claim)
    #: What they are here: "VALUE=ROLE" or "VALUE=ROLE:PATTERN". What is not listed brings no rights.
    roles: tuple[str, ...] = text_list((), 'a list such as ["billing-team=producer:billing.**"]', _maps_role)
    #: By how much the clocks of provider and server may differ.
    leeway_ms: int = whole_number(10_000, 0, 300_000)
    #: How old a token may become, whatever its own end is. 0: as old as it says.
    max_age_ms: int = whole_number(DAY_MS, 0, 365 * DAY_MS)
    max_token_bytes: int = whole_number(8 * KIB, 256, 12 * KIB)

    @property
    def enabled(self) -> bool:
        return bool(self.issuer)

    def check(self) -> None:
        self.require(self.enabled == bool(self.audience), "issuer and audience together, or neither")
        sources = bool(self.jwks_file) + bool(self.jwks_url)
        self.require(sources == self.enabled, "one of jwks_file and jwks_url together with issuer")
        self.require(bool(self.algorithms), "at least one of algorithms")
        self.require(not self.roles or bool(self.roles_claim), "roles_claim where there are roles")


StoreName = Literal["rocksdb", "memory"]


@dataclass(frozen=True, slots=True)
class StorageConfig(Section):
    """Where messages are kept and what a confirmed write survives."""

    #: Which store: "rocksdb" on disk, or "memory", which keeps nothing when the server stops. `storage/opening.py` has
    #: one row for each.
    store: StoreName = choice(*get_args(StoreName))  # noqa: RUF009 - it makes a field, as every line here
    data_dir: str = text("data", "a path", lambda path: path != "" and "\0" not in path)
    #: "wal" survives kill -9; "fsync" survives power loss as well, at the cost of one sync per group of writes.
    durability: Literal["wal", "fsync"] = choice("wal", "fsync")
    write_buffer_bytes: int = whole_number(64 * MIB, 64 * KIB, 16 * GIB)
    block_cache_bytes: int = whole_number(32 * MIB, 0, 1024 * GIB)
    #: Producers are refused while less is free on the disk. 0: an eighth of the file system, at most 1 GiB.
    min_free_bytes: int = whole_number(0, 0, 1024 * GIB)

    @property
    def survives(self) -> str:
        """What a confirmed write survives, as `durability` says it; empty in memory: nothing."""
        return "" if self.store == "memory" else self.durability


@dataclass(frozen=True, slots=True)
class SchedulerConfig(Section):
    """What is delivered next, and how much work one tick takes on."""

    #: Messages of cost 1 that a fairness key of weight 1 may send in one round.
    quantum: int = whole_number(4, 1, 1_000_000)
    #: How long a consumer holds a message, unless its queue says otherwise.
    visibility_timeout_ms: int = whole_number(30_000, 1, 365 * DAY_MS)
    #: How long a dedup key is remembered; 0 remembers none.
    dedup_window_ms: int = whole_number(300_000, 0, 365 * DAY_MS)
    #: Messages in commands that wait for the engine. Above it producers are refused.
    max_queued_commands: int = whole_number(100_000, 1, 10_000_000)
    #: Bytes of these messages. Above it producers are refused.
    max_queued_bytes: int = whole_number(64 * MIB, 1, 16 * GIB)
    #: Messages handled in one tick: bounds how long everything else waits.
    max_tick_messages: int = whole_number(2_000, 1, 1_000_000)
    #: Bytes of messages enqueued in one tick. A single larger request is still taken.
    max_tick_bytes: int = whole_number(4 * MIB, 1, GIB)


@dataclass(frozen=True, slots=True)
class LimitsConfig(Section):
    """The largest inputs that are accepted. Above a limit the caller gets an error that names it."""

    #: A protobuf message cannot reach 2 GiB, and a payload shares its message with headers. By default a delivery fits
    #: into the 4 MiB that gRPC libraries take unless told otherwise, with its headers, keys and failed attempts.
    max_payload_bytes: int = whole_number(4 * MIB - 256 * KIB, 1, GIB)
    max_headers: int = whole_number(64, 0, 65_535)
    #: Names and values of all headers of one message together.
    max_header_bytes: int = whole_number(16 * KIB, 0, 16 * MIB)
    #: Queue names; stored with a two-byte length at most.
    max_name_bytes: int = whole_number(255, 1, 65_535)
    #: Fairness, throttle and dedup keys.
    max_key_bytes: int = whole_number(255, 1, 65_535)
    max_batch_messages: int = whole_number(5_000, 1, 1_000_000)
    #: Unsettled messages that one consumer may ask for.
    max_in_flight: int = whole_number(65_535, 1, 10_000_000)
    max_delay_ms: int = whole_number(365 * DAY_MS, 0, 36_500 * DAY_MS)
    max_queues: int = whole_number(10_000, 1, 10_000_000)
    #: Messages of one claim.
    max_claim_messages: int = whole_number(100_000, 1, 1_000_000)
    #: How long a claim may last from when it was made or extended.
    max_claim_lease_ms: int = whole_number(DAY_MS, 1, 365 * DAY_MS)
    #: Claims of one group that are not acked.
    max_claims: int = whole_number(100, 1, 10_000)
    #: Groups of one queue.
    max_groups: int = whole_number(100, 1, 10_000)
    #: Messages that are staged for one transaction.
    max_transaction_messages: int = whole_number(5_000_000, 1, 1_000_000_000)
    #: Bytes that are staged for one transaction.
    max_transaction_bytes: int = whole_number(GIB, 1, 1024 * GIB)
    #: Bytes that are staged for all transactions.
    max_staged_bytes: int = whole_number(4 * GIB, 1, 1024 * GIB)
    #: How long staged messages may wait for their commit.
    max_transaction_ttl_ms: int = whole_number(7 * DAY_MS, 1, 365 * DAY_MS)
    #: Producers whose last transaction is remembered.
    max_transaction_producers: int = whole_number(10_000, 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class LuaConfig(Section):
    """Limits of one call of a hook, of all hooks together, and when a failing hook is bypassed."""

    #: CPU time of one call. A queue may lower it, not raise it.
    timeout_ms: int = whole_number(10, 1, 1_000)
    #: Memory of one script: its code and what it keeps between calls. A queue may lower it, not raise it.
    memory_bytes: int = whole_number(MIB, 64 * KIB, 64 * MIB)
    #: Memory limits of all scripts together. A queue whose script would exceed it is refused.
    max_total_memory_bytes: int = whole_number(128 * MIB, 64 * KIB, 64 * GIB)
    #: Time for the hooks of all queues in one tick. Messages that still need a hook wait for the next tick.
    tick_ms: int = whole_number(5, 1, 1_000)
    #: Time for the hooks of all queues, in percent of the server's time.
    max_time_percent: int = whole_number(75, 1, 100)
    #: Failures in a row after which a hook is bypassed.
    breaker_failures: int = whole_number(3, 1, 1_000)
    #: How long it is bypassed before it is tried again.
    breaker_cooldown_ms: int = whole_number(10_000, 1, DAY_MS)
    max_script_bytes: int = whole_number(64 * KIB, 1, 256 * KIB)


@dataclass(frozen=True, slots=True)
class TelemetryConfig(Section):
    """Where metrics and traces go. Telemetry is off while neither a collector nor an address is set."""

    #: An OTLP collector (gRPC), such as "http://localhost:4317". Empty: none.
    otlp_endpoint: str = text("", 'an address such as "http://localhost:4317", or nothing', _is_endpoint)
    #: The service name that the collector shows.
    service_name: str = text("fila", "a name of up to 100 letters, digits, dots, slashes and hyphens", _is_name)
    #: How often metrics are sent to the collector.
    metrics_interval_ms: int = whole_number(10_000, 100, 3_600_000)
    #: Whether spans are sent to the collector.
    traces: bool = flag(default=True)
    #: Traces per second that the broker begins itself, for each kind of operation (enqueue, lease, ack, nack), where
    #: neither producer nor caller sends a trace context. 0: none.
    own_traces_per_second: int = whole_number(10, 0, 100_000)
    #: Serves /metrics for Prometheus, and /healthz and /readyz for probes. Empty: no port is opened.
    prometheus_listen: str = address("", '"127.0.0.1:9464"', optional=True)
    #: Queues that have series of their own, including dead-letter queues; all others are summed as "other".
    top_queues: int = whole_number(200, 0, 10_000)
    #: Fairness keys that have series of their own, of each queue.
    top_keys: int = whole_number(20, 0, 1_000)
    #: Throttle keys that have series of their own.
    top_throttles: int = whole_number(100, 0, 10_000)


@dataclass(frozen=True, slots=True)
class JournalConfig(Section):
    """Whether events are recorded in the journal, and how much of it is kept."""

    #: Off, because with many fairness keys it costs more than 3 % of the server's CPU time.
    enabled: bool = flag(default=False)
    max_age_ms: int = whole_number(7 * DAY_MS, 1, 3_650 * DAY_MS)
    max_bytes: int = whole_number(256 * MIB, MIB, 1024 * GIB)


@dataclass(frozen=True, slots=True)
class AuditConfig(Section):
    """How much of the audit is kept. It is always on."""

    max_age_ms: int = whole_number(365 * DAY_MS, 1, 36_500 * DAY_MS)
    #: Changes. Refused calls have an eighth of it beside that, so that a flood of them pushes out no change.
    max_bytes: int = whole_number(64 * MIB, MIB, 1024 * GIB)


@dataclass(frozen=True, slots=True)
class LogConfig(Section):
    """What is logged and in which form."""

    level: Literal["debug", "info", "warning", "error"] = choice("info", "debug", "warning", "error")
    #: "auto" is pretty on a terminal and JSON elsewhere.
    format: Literal["auto", "json", "pretty"] = choice("auto", "json", "pretty")


def _is_member(value: str) -> bool:
    name, equals, where = value.partition("=")
    return bool(equals) and _is_plain(name) and is_address(where)


def _is_plain(value: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", value) is not None


def _is_plain_or_empty(value: str) -> bool:
    return value == "" or _is_plain(value)


@dataclass(frozen=True, slots=True)
class ClusterConfig(Section):
    """A broker that is kept by several members, which follow one log. Without `log` there is no cluster."""

    #: The same for all members, and for good: ids of messages come from it.
    name: str = text("", "letters, digits, '.', '_' and '-', up to 63", _is_plain_or_empty)
    #: Which of the members this is.
    member: str = text("", "letters, digits, '.', '_' and '-', up to 63", _is_plain_or_empty)
    #: All of them, in the same order everywhere: "NAME=HOST:PORT", where clients and the other members reach it.
    members: tuple[str, ...] = text_list((), 'a list such as ["a=10.0.0.1:5555", "b=10.0.0.2:5555"]', _is_member)
    #: The log, which no other cluster uses: "postgres://...".
    log: str = text("", "the URL of a log, or nothing", secret=True)
    #: Another log, of snapshots: what stands before one is cut off. Empty: the log is kept whole.
    snapshots: str = text("", "the URL of another log, or nothing", secret=True)

    @property
    def enabled(self) -> bool:
        return bool(self.log)

    @property
    def names(self) -> list[str]:
        return [each.partition("=")[0] for each in self.members]

    @property
    def addresses(self) -> list[str]:
        return [each.partition("=")[2] for each in self.members]

    def check(self) -> None:
        given = (self.name, self.member, self.members, self.log)
        self.require(all(given) or not any(given), "name, member, members and log together, or none of them")
        self.require(len(set(self.names)) == len(self.names), "members with different names")
        self.require(not self.members or self.member in self.names, "member to be one of members")
        self.require(not self.snapshots or self.snapshots != self.log, "snapshots in another log than log")
        self.require(self.enabled or not self.snapshots, "log where there are snapshots")


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of the server. Each part is given its own section only."""

    server: ServerConfig = field(default_factory=ServerConfig)
    tls: TlsConfig = field(default_factory=TlsConfig)
    jwt: JwtConfig = field(default_factory=JwtConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    lua: LuaConfig = field(default_factory=LuaConfig)
    journal: JournalConfig = field(default_factory=JournalConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    log: LogConfig = field(default_factory=LogConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
