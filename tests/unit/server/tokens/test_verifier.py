"""Whatever is sent as authorization is recognised, or refused with one of three errors; nothing else happens."""

import json
import time

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.auth.claims import TokenPolicy
from fila.auth.registry import Registry
from fila.core.errors import ProviderAway, Unauthenticated, UnknownSigner
from fila.server.recognition import Recognition
from fila.server.tokens import verifier
from fila.server.tokens.key_set import KeySet, KeySetUnusable, read_key_set
from tests.support.provider import AUDIENCE, ISSUER, Signer, b64, jwks, rsa_key

ALLOWED = ("ES256", "RS256", "EdDSA")
SIGNERS = [Signer("one"), Signer("rsa", "RS256"), Signer("ed", "EdDSA")]


class Known:
    """A source of keys that stay."""

    def __init__(self, keys):
        self.keys = keys

    def look_after(self):
        pass

    renew = renewed = look_after


def tokens(keys=None, max_bytes=8192):
    known = read_key_set(jwks(*SIGNERS), ALLOWED) if keys is None else keys
    return verifier.Tokens(TokenPolicy(ISSUER, AUDIENCE), Known(known), max_bytes)


TOKENS = tokens()
RECOGNITION = Recognition(Registry(), time.time_ns, TOKENS)
GOOD = {signer.algorithm: signer.token(ttl=3_600) for signer in SIGNERS}


@pytest.mark.parametrize("algorithm", GOOD)
def test_each_algorithm_that_is_allowed(algorithm):
    caller = RECOGNITION.recognise([f"Bearer {GOOD[algorithm]}"], None)
    assert caller.principal == "jwt:alice"


parts = st.text("ABCabcxyz0189_-=", max_size=60)
headers = st.fixed_dictionaries(
    {},
    optional={
        "alg": st.sampled_from(["none", "HS256", "RS256", "ES256", "EdDSA", "", "es256"]) | st.none() | st.integers(),
        "kid": st.sampled_from(["one", "rsa", "ed", "x", "0"])
        | st.text(max_size=5)
        | st.lists(st.integers(), max_size=1),
        "crit": st.lists(st.text(max_size=3), max_size=2),
        "b64": st.booleans(),
        "typ": st.text(max_size=5),
        "jwk": st.just(SIGNERS[0].jwk()),
        "zip": st.just("DEF"),
    },
)
forged = st.builds(
    lambda header, payload, signature: f"{b64(header)}.{b64(payload)}.{b64(signature)}",
    headers,
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4) | st.binary(max_size=50),
    st.binary(max_size=300),
)
texts = st.text(max_size=300) | st.lists(parts, max_size=5).map(".".join) | forged
sent = st.lists(
    st.builds(
        lambda scheme, text: scheme + text, st.sampled_from(["Bearer ", "bearer ", "Basic ", "", "BEARER "]), texts
    )
    | st.binary(max_size=50),
    min_size=1,
    max_size=2,
)


@given(sent)
def test_anything_else_is_refused(authorization):
    with pytest.raises(Unauthenticated):
        RECOGNITION.recognise(authorization, None)


@given(st.sampled_from(sorted(GOOD)), st.data())
def test_a_token_with_one_changed_character_is_refused(algorithm, data):
    token = GOOD[algorithm]
    at = data.draw(st.integers(0, 100_000)) % len(token)
    other = data.draw(st.sampled_from("ABCDwxyz0189_-.=é\0 "))
    changed = token[:at] + other + token[at + 1 :]
    if changed != token:
        with pytest.raises(Unauthenticated):
            TOKENS.recognise(changed, time.time_ns())


@given(st.integers(0, 400))
def test_a_truncated_token_is_refused(length):
    token = GOOD["ES256"]
    if length < len(token):
        with pytest.raises(Unauthenticated):
            TOKENS.recognise(token[:length], time.time_ns())


def test_a_long_token_is_refused_unread(monkeypatch):
    monkeypatch.setattr(verifier, "read_object", None)
    with pytest.raises(Unauthenticated, match="longer than 8192 bytes"):
        TOKENS.recognise("e" * 9_000, time.time_ns())


def test_a_refused_token_is_not_remembered():
    fresh = tokens()
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            fresh.recognise(Signer("one").token(), time.time_ns())
    assert fresh._known == {}


def test_a_token_itself_is_not_kept():
    fresh, token = tokens(), SIGNERS[0].token()
    fresh.recognise(token, time.time_ns())
    kept = repr(fresh._known)
    assert token not in kept
    assert token.rpartition(".")[2] not in kept


def test_an_unknown_key_and_no_key_at_all_are_told_apart():
    with pytest.raises(UnknownSigner):
        TOKENS.recognise(Signer("new").token(), time.time_ns())
    with pytest.raises(ProviderAway):
        tokens(KeySet()).recognise(SIGNERS[0].token(), time.time_ns())


def test_a_token_is_checked_with_the_key_that_it_names_alone(monkeypatch):
    """Else a token would cost as many checks as the provider has keys."""
    checks, verify = [], jwt.PyJWS._verify_signature
    monkeypatch.setattr(jwt.PyJWS, "_verify_signature", lambda *args, **more: checks.append(1) or verify(*args, **more))
    with pytest.raises(Unauthenticated):
        TOKENS.recognise(Signer("one").token(), time.time_ns())
    assert len(checks) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"alg": "HS256"}, {"alg": "none"}, {"use": "enc"}, {"kty": "oct"}, {"crv": "P-384"}, {"x": "AAAA"}, {"x": None},
        {"d": "AAAA"}, {"kid": 7}, {"kid": "x" * 300}, {"kid": "a\n"}, {"crv": "secp256k1"},
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_used_is_left_out(changed):
    keys = [SIGNERS[0].jwk(**changed), SIGNERS[1].jwk()]
    found = read_key_set(json.dumps({"keys": keys}).encode(), ALLOWED)
    assert len(found) == 1
    assert found.find("rsa", "RS256") is not None


def test_weak_keys_are_left_out():
    with pytest.raises(KeySetUnusable):
        read_key_set(jwks(Signer("weak", "RS256", rsa_key(1024))), ALLOWED)


def test_a_key_checks_only_its_own_algorithm():
    found = read_key_set(jwks(SIGNERS[1]), ("RS256", "RS512", "ES256"))
    assert found.find("rsa", "RS256") is not None
    assert found.find("rsa", "RS512") is None
    assert found.find("rsa", "ES256") is None


@given(st.binary(max_size=200))
def test_any_document_is_a_key_set_or_refused(data):
    with pytest.raises(KeySetUnusable):
        read_key_set(data, ALLOWED)
