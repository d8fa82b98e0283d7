"""The server's configuration, parsed once into a small frozen tree. Each part is given its own section."""

from fila.config.loading import load
from fila.config.sections import (
    DAY_MS,
    GIB,
    KIB,
    MIB,
    AuditConfig,
    Config,
    JournalConfig,
    JwtConfig,
    LimitsConfig,
    LogConfig,
    LuaConfig,
    SchedulerConfig,
    ServerConfig,
    StorageConfig,
    TelemetryConfig,
    TlsConfig,
    is_jwks_url,
)

__all__ = [
    "DAY_MS",
    "GIB",
    "KIB",
    "MIB",
    "AuditConfig",
    "Config",
    "JournalConfig",
    "JwtConfig",
    "LimitsConfig",
    "LogConfig",
    "LuaConfig",
    "SchedulerConfig",
    "ServerConfig",
    "StorageConfig",
    "TelemetryConfig",
    "TlsConfig",
    "is_jwks_url",
    "load",
]
