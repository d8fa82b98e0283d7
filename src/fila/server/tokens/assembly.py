"""Tokens from the settings: the policy, the source of keys, and the check put together."""

from collections import defaultdict
from functools import partial

from fila.auth.claims import TokenPolicy
from fila.auth.records import Assignment, check_name
from fila.config import JwtConfig
from fila.core.ids import NS_PER_MS
from fila.server.tokens.key_set import read_key_set
from fila.server.tokens.key_source import FileKeys, KeySource, UrlKeys
from fila.server.tokens.verifier import Tokens
from fila.settings import SettingsError


async def start(config: JwtConfig) -> Tokens:
    """With the provider's keys, if it answers. Raises SettingsError."""
    policy, source = make_policy(config), make_source(config)
    await source.start()
    return Tokens(policy, source, config.max_token_bytes)


def make_policy(config: JwtConfig) -> TokenPolicy:
    """Raises SettingsError."""
    roles: defaultdict[str, list[Assignment]] = defaultdict(list)
    try:
        for entry in config.roles:
            value, _, role = entry.rpartition("=")
            roles[value].append(Assignment.parse(role))
        check_name("jwt.principal_prefix with a name", config.principal_prefix + "x")
    except ValueError as error:
        raise SettingsError(f"jwt: {error}") from error
    return TokenPolicy(
        config.issuer,
        config.audience,
        config.principal_claim,
        config.principal_prefix,
        config.roles_claim,
        {value: tuple(assigned) for value, assigned in roles.items()},
        config.leeway_ms * NS_PER_MS,
        config.max_age_ms * NS_PER_MS,
    )


def make_source(config: JwtConfig) -> KeySource:
    read = partial(read_key_set, allowed=config.algorithms)
    if config.jwks_file:
        return FileKeys(config.jwks_file, read)
    return UrlKeys(config.jwks_url, read, config.jwks_refresh_ms / 1000)
