"""Tokens of an identity provider on a real server: whose they are, their end, other keys, and all that is refused."""

import asyncio
import hashlib
import hmac
import json
import sys
import threading
import time
from contextlib import asynccontextmanager

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from structlog.testing import capture_logs

from fila.client.enums import name_of
from fila.server.tokens import key_source, verifier
from fila.settings import SettingsError
from fila.v1 import admin_pb2, auth_pb2, service_pb2
from fila.v1.auth_pb2_grpc import FilaAuthStub
from tests.support.provider import AUDIENCE, ISSUER, Signer, b64, jwks, jwks_server, rsa_key

from .conftest import eventually, kind_of, refusal
from .test_access import DENIED, METHODS, NOBODY, PRINCIPALS, ROLES, bearer, ended, mistakes, outcome

AWAY = grpc.StatusCode.UNAVAILABLE

ONE, TWO, RSA = Signer("one"), Signer("two"), Signer("rsa", "RS256")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("fila.auth.failed_logins.LONGEST_S", 0.01)


def settings_of(path, **more):
    given = {"issuer": ISSUER, "audience": AUDIENCE, "roles_claim": "groups", "leeway_ms": 0}
    roles = [f"{name}={role}" for name, (assigned, _) in PRINCIPALS.items() for role in assigned]
    return given | {"jwks_file": str(path), "roles": (*roles, "root=admin")} | more


@asynccontextmanager
async def trusting(serve, tmp_path, *signers, **more):
    """A server that trusts these signers, by a file. It has a queue "q" and the roles of the matrix."""
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(*(signers or (ONE, RSA))))
    async with serve(jwt=settings_of(path, **more)) as peer:
        root = bearer((signers or (ONE,))[0].token(sub="root", groups=["root"]))
        peer.auth, peer.root, peer.jwks = FilaAuthStub(peer.channel), root, path
        for name in ("q", "orders.new", "orders.old.eu", "mail"):
            await peer.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name), metadata=root)
        for name, grants in ROLES.items():
            await peer.auth.SetRole(auth_pb2.SetRoleRequest(name=name, grants=grants), metadata=root)
        yield peer


async def who(peer, token):
    return await peer.auth.WhoAmI(auth_pb2.WhoAmIRequest(), metadata=bearer(token))


async def test_a_token_says_who_one_is(serve, tmp_path):
    async with trusting(serve, tmp_path) as peer:
        for signer in (ONE, RSA):
            me = await who(peer, signer.token(groups=["out", "unheard-of"]))
            assert (me.principal, name_of(auth_pb2.CredentialKind, me.recognised_by), me.credential) == (
                "jwt:alice",
                "token",
                signer.kid,
            )
            assert list(me.roles) == ["producer"]
            assert me.expires_at.seconds > time.time()


async def test_a_token_of_nobody_in_particular_may_do_nothing(serve, tmp_path):
    async with trusting(serve, tmp_path) as peer:
        assert (await who(peer, ONE.token())).principal == "jwt:alice"
        enqueue = peer.hot.Enqueue(service_pb2.EnqueueRequest(queue="q"), metadata=bearer(ONE.token()))
        assert (await refusal(enqueue))[0] is DENIED


@pytest.mark.parametrize("principal", PRINCIPALS)
async def test_tokens_have_exactly_the_rights_of_their_roles(serve, tmp_path, principal):
    async with trusting(serve, tmp_path) as peer:
        assert await mistakes(peer.channel, ONE.token(sub=principal, groups=[principal]), principal) == []


async def test_the_store_may_give_a_token_more_roles_and_limits(serve, tmp_path):
    async with trusting(serve, tmp_path) as peer:
        token = ONE.token(groups=["eye"])
        change = auth_pb2.SetPrincipalRequest(name="jwt:alice", roles=["producer:q"], limits={"open_calls": 1})
        await peer.auth.SetPrincipal(change, metadata=peer.root)
        assert list((await who(peer, token)).roles) == ["producer:q", "viewer"]
        stream = peer.hot.EnqueueStream(metadata=bearer(token))
        await stream.write(service_pb2.EnqueueBatchRequest(messages=[service_pb2.EnqueueRequest(queue="q")]))
        assert not (await stream.read()).results[0].error.code
        assert (await refusal(who(peer, token)))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        stream.cancel()


async def test_with_a_provider_nobody_is_let_in_unknown_and_keys_work_too(serve, tmp_path):
    async with trusting(serve, tmp_path) as peer:
        for method in METHODS:
            assert await outcome(peer.channel, method, "mail", None) is NOBODY, method
        create = auth_pb2.CreateKeyRequest(principal="keeper", roles=["admin"])
        made = await peer.auth.CreateKey(create, metadata=peer.root)
        assert (await who(peer, made.token)).recognised_by == auth_pb2.CREDENTIAL_KIND_KEY


async def test_a_principal_with_keys_is_not_one_of_a_token(serve, tmp_path):
    async with trusting(serve, tmp_path) as peer:
        await peer.auth.CreateKey(auth_pb2.CreateKeyRequest(principal="alice", roles=["admin"]), metadata=peer.root)
        me = await who(peer, ONE.token(sub="alice"))
        assert (me.principal, list(me.roles)) == ("jwt:alice", [])


def hs256_with_the_public_key():
    """The classic: the public key, which everybody has, as the secret of an HMAC."""
    pem = rsa_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = b64({"alg": "HS256", "typ": "JWT", "kid": "rsa"})
    body = b64({"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": time.time(), "exp": time.time() + 60})
    return f"{head}.{body}.{b64(hmac.new(pem, f'{head}.{body}'.encode(), hashlib.sha256).digest())}"


def unsigned(header=None, payload=None, signature="x"):
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": time.time(), "exp": time.time() + 60}
    return f"{b64(header or {'alg': 'none', 'kid': 'one'})}.{b64(payload or claims)}.{signature}"


def signed(payload, signer=ONE, header=None):
    """Any bytes, with a signature that is right."""
    head = header or {"alg": signer.algorithm, "kid": signer.kid}
    text = f"{b64(head)}.{b64(payload)}"
    algorithm = jwt.PyJWS().get_algorithm_by_name(signer.algorithm)
    return f"{text}.{b64(algorithm.sign(text.encode(), signer.key))}"


def duplicate(extra):
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": time.time(), "exp": time.time() + 60}
    return (json.dumps(claims)[:-1] + "," + extra + "}").encode()


def attached():
    """A token that brings its own key along."""
    stranger = Signer("one")
    return stranger.token(headers={"jwk": stranger.jwk()})


WRONG = {
    "alg none": unsigned,
    "alg None": lambda: unsigned({"alg": "None", "kid": "one"}),
    "alg none without a kid": lambda: unsigned({"alg": "none"}),
    "no alg": lambda: unsigned({"kid": "one"}),
    "alg no text": lambda: unsigned({"alg": ["ES256"], "kid": "one"}),
    "no signature": lambda: unsigned({"alg": "ES256", "kid": "one"}, signature="AA"),
    "empty signature": lambda: ONE.token().rpartition(".")[0] + ".",
    "HS256 with the public key": hs256_with_the_public_key,
    "ES256 of a stranger": lambda: Signer("one").token(),
    "RS256 header with an EC key": lambda: signed({}, ONE, {"alg": "RS256", "kid": "one"}),
    "an algorithm that is not allowed": lambda: Signer("rsa", "RS512").token(),
    "kid of another key": lambda: Signer("rsa").token(),
    "no kid where there are several": lambda: signed(duplicate('"x":1'), ONE, {"alg": "HS256"}),
    "kid no text": lambda: signed({}, ONE, {"alg": "ES256", "kid": 7}),
    "expired": lambda: ONE.token(ttl=-1),
    "not yet valid": lambda: ONE.token(nbf=time.time() + 60),
    "issued in the future": lambda: ONE.token(iat=time.time() + 60),
    "too old": lambda: ONE.token(iat=time.time() - 2 * 86_400),
    "no iat": lambda: ONE.token(iat=None),
    "no exp": lambda: ONE.token(exp=None),
    "exp no number": lambda: signed({"iss": ISSUER, "aud": AUDIENCE, "sub": "a", "iat": 1, "exp": "9999999999"}),
    "exp true": lambda: signed({"iss": ISSUER, "aud": AUDIENCE, "sub": "a", "iat": 1, "exp": True}),
    "exp beyond all": lambda: ONE.token(exp=10**30),
    "exp infinite": lambda: signed(duplicate('"nbf":1e999')),
    "exp NaN": lambda: signed(duplicate('"nbf":NaN')),
    "a number without end": lambda: signed(duplicate('"nbf":' + "9" * 5000)),
    "wrong issuer": lambda: ONE.token(iss=ISSUER + "/"),
    "no issuer": lambda: ONE.token(iss=None),
    "issuer no text": lambda: signed({"iss": [ISSUER], "aud": AUDIENCE, "sub": "a", "iat": 1, "exp": 2**33}),
    "wrong audience": lambda: ONE.token(aud="others"),
    "wrong audiences": lambda: ONE.token(aud=["others", "fila2"]),
    "no audience": lambda: ONE.token(aud=None),
    "audience no text": lambda: ONE.token(aud=[7, AUDIENCE]),
    "no subject": lambda: ONE.token(sub=None),
    "subject empty": lambda: ONE.token(sub=""),
    "subject with a bar": lambda: ONE.token(sub="a|b"),
    "subject with a line break": lambda: ONE.token(sub="a\nb"),
    "subject in letters that look alike": lambda: ONE.token(sub="\u0430dmin"),
    "subject too long": lambda: ONE.token(sub="x" * 200),
    "groups no list": lambda: ONE.token(groups={"root": True}),
    "too many groups": lambda: ONE.token(groups=["g"] * 300),
    "crit": lambda: signed(duplicate('"x":1'), ONE, {"alg": "ES256", "kid": "one", "crit": ["x"], "x": 1}),
    "crit empty": lambda: signed(duplicate('"x":1'), ONE, {"alg": "ES256", "kid": "one", "crit": []}),
    "b64": lambda: signed(duplicate('"x":1'), ONE, {"alg": "ES256", "kid": "one", "b64": False}),
    "its own key": attached,
    "a claim twice": lambda: signed(duplicate('"sub":"root"')),
    "a claim twice deep inside": lambda: signed(duplicate('"x":{"a":1,"a":2}')),
    "no JSON": lambda: signed(b"claims"),
    "no object": lambda: signed(b"[]"),
    "no UTF-8": lambda: signed(b'{"sub":"\xff"}'),
    "a lone surrogate": lambda: signed(duplicate('"sub2":"\\ud800"').replace(b'"alice"', b'"\\ud800"')),
    "deep JSON": lambda: signed(b"[" * 5_000),
    "deep header": lambda: f"{b64(b'[' * 3000)}.{b64({})}.AAAA",
    "huge": lambda: ONE.token(pad="x" * 9_000),
    "truncated": lambda: ONE.token()[:-3],
    "one part": lambda: "eyJhbGciOiJub25lIn0",
    "two parts": lambda: ONE.token().rpartition(".")[0],
    "four parts": lambda: ONE.token() + ".x",
    "empty parts": lambda: "..",
    "padding": lambda: ONE.token() + "==",
    "spaces inside": lambda: ONE.token().replace(".", " ."),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_token_that_is_not_in_order_is_refused(serve, tmp_path, wrong):
    token = WRONG[wrong]()
    with capture_logs() as logs:
        async with trusting(serve, tmp_path) as peer:
            code, text = await refusal(who(peer, token))
            assert code is NOBODY
            assert token not in text
            assert (await who(peer, ONE.token())).principal == "jwt:alice"  # and the server goes on
    said = repr(logs)
    assert not any(part in said for part in token.split(".") if len(part) > 8)


async def test_other_headers_are_not_looked_at(serve, tmp_path):
    """`jku` and `x5u` name an address from which a careless server would fetch keys."""
    async with trusting(serve, tmp_path) as peer:
        with jwks_server(TWO) as elsewhere:
            token = ONE.token(headers={"jku": elsewhere.url, "x5u": elsewhere.url})
            assert (await who(peer, token)).principal == "jwt:alice"
            stranger = TWO.token(headers={"jku": elsewhere.url, "kid": "one"})
            assert (await refusal(who(peer, stranger)))[0] is NOBODY
            assert elsewhere.asked == 0


@pytest.mark.parametrize("other, known", [(RSA, True), (TWO, False)])
async def test_a_token_without_a_kid_is_checked_where_one_key_has_its_algorithm(serve, tmp_path, other, known):
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": time.time(), "exp": time.time() + 60}
    nameless = signed(claims, ONE, {"alg": ONE.algorithm})
    async with trusting(serve, tmp_path, ONE, other) as peer:
        if known:
            assert (await who(peer, nameless)).credential == "one"
        else:
            assert (await refusal(who(peer, nameless)))[0] is NOBODY


async def test_an_expired_token_loses_its_open_streams_within_a_second(serve, tmp_path):
    async with trusting(serve, tmp_path) as peer:
        token = ONE.token(ttl=1.2, groups=["boss"])
        lease = peer.hot.Lease(service_pb2.LeaseRequest(queue="q"), metadata=bearer(token))
        settle = peer.hot.Settle(metadata=bearer(token))
        await lease.initial_metadata()
        await settle.write(service_pb2.SettleRequest())
        await settle.read()
        spared = peer.hot.Lease(service_pb2.LeaseRequest(queue="q"), metadata=peer.root)
        await spared.initial_metadata()
        await asyncio.sleep(1.2)
        assert [await ended(stream) for stream in (lease, settle)] == [NOBODY] * 2
        assert await kind_of(lease) == "ERROR_KIND_KEY_ENDED"
        assert (await refusal(who(peer, token)))[1] == "the token has expired"
        assert not spared.done()
        spared.cancel()


async def test_the_age_of_a_token_ends_it_before_its_own_end(serve, tmp_path):
    async with trusting(serve, tmp_path, max_age_ms=1_000) as peer:
        token = ONE.token(ttl=3_600)
        await who(peer, token)
        await asyncio.sleep(1.1)
        assert (await refusal(who(peer, token)))[1] == "the token has expired"


async def test_leeway_is_for_both_ends(serve, tmp_path):
    async with trusting(serve, tmp_path, leeway_ms=60_000) as peer:
        for token in (ONE.token(ttl=-30), ONE.token(nbf=time.time() + 30, iat=time.time() + 30)):
            assert (await who(peer, token)).principal == "jwt:alice"
        assert (await refusal(who(peer, ONE.token(ttl=-61))))[0] is NOBODY


async def test_a_token_is_checked_once(serve, tmp_path, monkeypatch):
    checks = []
    check = verifier.Tokens._check
    monkeypatch.setattr(verifier.Tokens, "_check", lambda *args: checks.append(1) or check(*args))
    async with trusting(serve, tmp_path) as peer:
        token, before = ONE.token(), len(checks)
        for _ in range(20):
            await who(peer, token)
        assert len(checks) == before + 1


async def test_no_more_tokens_are_remembered_than_allowed(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(verifier, "MAX_KNOWN", 5)
    async with trusting(serve, tmp_path) as peer:
        for number in range(20):
            await who(peer, ONE.token(sub=f"user{number}"))
        assert len(peer.server._tokens._known) == 5


async def test_other_keys_in_the_file_are_taken_up_and_those_that_went_end_open_streams(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(key_source, "WATCH_S", 0.05)
    async with trusting(serve, tmp_path) as peer:
        lease = peer.hot.Lease(service_pb2.LeaseRequest(queue="q"), metadata=bearer(ONE.token(groups=["boss"])))
        await lease.initial_metadata()
        assert (await refusal(who(peer, TWO.token())))[0] is NOBODY
        peer.jwks.write_bytes(b"{broken")
        await asyncio.sleep(0.5)
        assert (await who(peer, ONE.token())).principal == "jwt:alice"  # the old keys stay
        peer.jwks.write_bytes(jwks(TWO))
        assert await ended(lease) is NOBODY
        assert (await who(peer, TWO.token())).credential == "two"
        assert (await refusal(who(peer, ONE.token())))[0] is NOBODY


async def test_a_start_with_keys_that_cannot_be_used_is_refused(serve, tmp_path):
    path = tmp_path / "jwks.json"
    weak = Signer("weak", "RS256", rsa_key(1024))
    symmetric = json.dumps({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "one", "alg": "HS256"}]})
    encryption = json.dumps({"keys": [ONE.jwk(use="enc")]})
    for text in ("", "{}", "[]", "{", jwks(weak).decode(), symmetric, encryption, '{"keys": [[], 7, {"kty": "EC"}]}'):
        path.write_text(text)
        with pytest.raises(SettingsError, match="jwks_file"):
            async with serve(jwt=settings_of(path)):
                pass
    with pytest.raises(SettingsError, match="jwks_file"):
        async with serve(jwt=settings_of(tmp_path / "nowhere")):
            pass


async def test_a_role_that_does_not_exist_is_told_at_the_start(serve, tmp_path):
    (tmp_path / "jwks.json").write_bytes(jwks(ONE))
    with capture_logs() as logs:
        async with serve(jwt=settings_of(tmp_path / "jwks.json", roles=("a=admin", "b=prodcuer:x.**"))):
            pass
    assert [entry["role"] for entry in logs if "does not exist" in entry["event"]] == ["prodcuer"]


async def test_without_the_package_the_start_says_what_to_install(serve, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("fila.server.tokens")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(SettingsError, match=r"pip install 'fila\[server,jwt\]'"):
        async with serve(jwt=settings_of(tmp_path / "jwks.json")):
            pass


@asynccontextmanager
async def by_address(serve, url, **more):
    async with serve(jwt=settings_of("", jwks_url=url, **more)) as peer:
        peer.auth = FilaAuthStub(peer.channel)
        yield peer


async def test_a_token_of_a_new_key_makes_the_server_look_for_it_and_the_call_waits(serve, monkeypatch):
    monkeypatch.setattr(key_source, "SOONEST_S", 0.3)
    with jwks_server(ONE) as provider:
        async with by_address(serve, provider.url) as peer:
            assert (await who(peer, ONE.token())).credential == "one"
            provider.document = jwks(ONE, TWO)
            assert (await who(peer, TWO.token())).credential == "two"


async def test_a_key_that_is_published_during_a_fetch_is_found(serve, monkeypatch):
    """That fetch may bring the keys of before: the call waits for another one."""
    monkeypatch.setattr(key_source, "SOONEST_S", 0.1)
    begun, released = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def late(handler):
        document, provider.answer = provider.document, None
        loop.call_soon_threadsafe(begun.set)
        released.wait(30)
        handler.send(document)

    with jwks_server(ONE) as provider:
        async with by_address(serve, provider.url) as peer:
            provider.answer = late
            unknown = asyncio.create_task(refusal(who(peer, Signer("unknown").token())))
            await begun.wait()
            provider.document = jwks(ONE, TWO)
            known = asyncio.create_task(who(peer, TWO.token()))
            await eventually(lambda: _true(len(peer.server._tokens._source._waiting) == 2))
            released.set()
            assert (await known).credential == "two"
            assert (await unknown)[0] is NOBODY


async def test_invented_keys_do_not_make_the_server_ask_more_often(serve, monkeypatch):
    monkeypatch.setattr(key_source, "SOONEST_S", 0.5)
    with jwks_server(ONE) as provider:
        async with by_address(serve, provider.url) as peer:
            began, loop = asyncio.get_running_loop().time(), asyncio.get_running_loop()
            inventions = [who(peer, Signer(f"made-up-{number}").token()) for number in range(30)]
            assert {(await refusal(call))[0] for call in inventions[:3]} == {NOBODY}
            told = await asyncio.gather(*inventions[3:], return_exceptions=True)
            assert {error.code() for error in told} == {NOBODY}
            assert provider.asked <= 2 + (loop.time() - began) / 0.5


async def test_while_the_provider_is_away_the_old_keys_stay(serve, monkeypatch):
    monkeypatch.setattr(key_source, "SOONEST_S", 0.1)
    with jwks_server(ONE) as provider:
        async with by_address(serve, provider.url, jwks_refresh_ms=1_000) as peer:
            provider.answer = lambda handler: handler.send_error(503)
            with capture_logs() as logs:
                await eventually(lambda: _true(peer.server._tokens._source.error))
            assert (await who(peer, ONE.token())).credential == "one"
            assert any("old ones stay in use" in entry["event"] for entry in logs)
            provider.answer, provider.document = None, jwks(TWO)
            assert (await who(peer, TWO.token())).credential == "two"


async def test_a_token_of_an_unknown_key_may_be_good_while_the_provider_does_not_answer(serve, monkeypatch):
    """So it is not refused for good: clients try again until the provider answers."""
    monkeypatch.setattr(key_source, "SOONEST_S", 0.1)
    with jwks_server(ONE) as provider:
        async with by_address(serve, provider.url) as peer:
            provider.answer = lambda handler: handler.send_error(503)
            for signer in (TWO, Signer("stranger")):
                code, text = await refusal(who(peer, signer.token()))
                assert code is AWAY
                assert "try again" in text
            assert (await refusal(who(peer, ONE.token(aud="others"))))[0] is NOBODY
            provider.answer, provider.document = None, jwks(ONE, TWO)
            assert (await who(peer, TWO.token())).credential == "two"
            assert (await refusal(who(peer, Signer("stranger").token())))[0] is NOBODY


async def test_a_token_of_an_unknown_key_may_be_good_while_the_file_cannot_be_used(serve, tmp_path):
    async with trusting(serve, tmp_path) as peer:
        peer.jwks.write_bytes(b"{broken")
        assert (await refusal(who(peer, TWO.token())))[0] is AWAY
        peer.jwks.write_bytes(jwks(TWO))
        assert (await who(peer, TWO.token())).credential == "two"


async def test_calls_of_unknown_keys_that_nobody_can_wait_for_are_to_try_again(serve, monkeypatch):
    monkeypatch.setattr(key_source, "MAX_WAITING", 0)
    with jwks_server(ONE) as provider:
        async with by_address(serve, provider.url) as peer:
            assert (await refusal(who(peer, TWO.token())))[0] is AWAY


async def _true(value):
    return bool(value)


async def test_a_provider_that_never_answered_makes_tokens_wait_not_fail(serve, monkeypatch):
    monkeypatch.setattr(key_source, "SOONEST_S", 0.1)
    with jwks_server(ONE) as provider:
        provider.answer = lambda handler: handler.send_error(500)
        async with by_address(serve, provider.url) as peer:
            code, text = await refusal(who(peer, ONE.token()))
            assert code is grpc.StatusCode.UNAVAILABLE
            assert "try again" in text
            provider.answer = None

            async def served():
                try:
                    return (await who(peer, ONE.token())).principal
                except grpc.aio.AioRpcError:
                    return False

            await eventually(served)


async def test_the_event_loop_never_waits_for_the_provider(serve, monkeypatch):
    """A provider that takes its time: calls with keys and known tokens go on."""
    monkeypatch.setattr(key_source, "SOONEST_S", 0.05)
    with jwks_server(ONE) as provider:
        async with by_address(serve, provider.url) as peer:
            known = ONE.token()
            await who(peer, known)
            hanging = asyncio.Event()
            loop = asyncio.get_running_loop()

            def slowly(handler):
                loop.call_soon_threadsafe(hanging.set)
                time.sleep(1)
                handler.send_error(500)

            provider.answer = slowly
            await asyncio.sleep(0.1)
            waits = asyncio.create_task(who(peer, TWO.token()))
            await hanging.wait()
            for _ in range(10):
                await who(peer, known)
            assert not waits.done()
            provider.answer = None
            assert (await refusal(waits))[0] is AWAY
