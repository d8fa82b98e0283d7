"""Client certificates as identities, on a real server: which rule decides, what a key beside it means, and its end."""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import grpc
import pytest

from fila.client.enums import name_of, number_of
from fila.v1 import auth_pb2, service_pb2
from fila.v1.auth_pb2_grpc import FilaAuthStub
from fila.v1.service_pb2_grpc import FilaServiceStub
from tests.support.certificates import Authority, grpc_credentials

from .conftest import connect, kind_of, refusal
from .test_access import DENIED, NOBODY, bearer, ended, mutual

FAILED = grpc.StatusCode.FAILED_PRECONDITION


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("fila.auth.failed_logins.LONGEST_S", 0.03)


@asynccontextmanager
async def with_admin(serve, authority, client_auth="optional"):
    """A server with one admin key. Its connection shows the certificate of "root"."""
    options = mutual(authority, client_auth)
    options["credentials"] = grpc_credentials(authority, authority.client("root"))
    async with serve(**options) as peer:
        await peer.create()
        peer.auth = FilaAuthStub(peer.channel)
        made = await peer.auth.CreateKey(auth_pb2.CreateKeyRequest(principal="root", roles=["admin"]))
        peer.root = bearer(made.token)
        yield peer


FIELDS = {name: number_of(auth_pb2.CertificateField, name) for name in ("dn", "cn", "dns", "uri", "email")}


async def add(peer, principal, pattern, *, field="cn", roles=(), first=False):
    request = auth_pb2.AddCertificateRuleRequest(
        principal=principal, field=FIELDS.get(field, 99), pattern=pattern, roles=roles, first=first
    )
    return (await peer.auth.AddCertificateRule(request, metadata=peer.root)).rule


def as_client(peer, authority, name, **options):
    return connect(peer.server, grpc_credentials(authority, authority.client(name, **options)))


async def who(channel, metadata=()):
    return await FilaAuthStub(channel).WhoAmI(auth_pb2.WhoAmIRequest(), metadata=list(metadata))


async def test_a_certificate_is_who_the_first_rule_says(serve, authority):
    async with with_admin(serve, authority) as peer:
        late = await add(peer, "late", "*", roles=["viewer"])
        exact = await add(peer, "billing", "spiffe://acme/billing", field="uri", roles=["producer"], first=True)
        rules = await peer.auth.ListCertificateRules(auth_pb2.ListCertificateRulesRequest(), metadata=peer.root)
        assert [rule.id for rule in rules.rules] == [exact.id, late.id]
        async with as_client(peer, authority, "billing", uri="spiffe://acme/billing") as channel:
            me = await who(channel)
            assert (me.principal, name_of(auth_pb2.CredentialKind, me.recognised_by), me.credential, me.key_id) == (
                "billing",
                "certificate",
                exact.id,
                "",
            )
            assert list(me.roles) == ["producer"]
            assert list(me.certificate_names) == [
                "dn:CN=billing",
                "cn:billing",
                "dns:billing.example",
                "uri:spiffe://acme/billing",
            ]
            assert me.expires_at.seconds > 0
        async with as_client(peer, authority, "somebody") as channel:
            assert (await who(channel)).principal == "late"


async def test_a_key_beside_a_certificate_decides_alone(serve, authority):
    async with with_admin(serve, authority) as peer:
        await add(peer, "eve", "eve", roles=["viewer"])
        async with as_client(peer, authority, "eve") as channel:
            assert (await who(channel)).principal == "eve"
            me = await who(channel, peer.root)
            assert (me.principal, name_of(auth_pb2.CredentialKind, me.recognised_by)) == ("root", "key")
            for wrong in (bearer("fila_x_y"), [("authorization", "Basic x")], [("authorization", "")]):
                assert (await refusal(who(channel, wrong)))[0] is NOBODY


@pytest.mark.parametrize("client_auth", ["optional", "required"])
async def test_once_keys_exist_a_certificate_without_a_rule_is_nobody(serve, authority, client_auth):
    async with with_admin(serve, authority, client_auth) as peer:
        code, text = await refusal(who(peer.channel))
        assert code is NOBODY
        assert "(dn 'CN=root', cn 'root', dns 'root.example')" in text
        assert "fila auth certificate add" in text


async def test_without_keys_whoever_has_a_required_certificate_may_do_everything(serve, authority):
    options = mutual(authority, "required")
    options["credentials"] = grpc_credentials(authority, authority.client("anybody"))
    async with serve(**options) as peer:
        await peer.create()
        me = await who(peer.channel)
        assert (me.principal, name_of(auth_pb2.CredentialKind, me.recognised_by)) == ("", "")
        assert "cn:anybody" in me.certificate_names
        code, text = await refusal(add_without_key(peer))
        assert code is FAILED
        assert "admin key" in text


async def add_without_key(peer):
    request = auth_pb2.AddCertificateRuleRequest(principal="x", field=FIELDS["cn"], pattern="x")
    return await FilaAuthStub(peer.channel).AddCertificateRule(request)


async def begin(channel):
    """A stream that has begun."""
    call = FilaServiceStub(channel).Lease(service_pb2.LeaseRequest(queue="q"))
    await call.initial_metadata()
    return call


async def test_a_removed_rule_ends_open_calls_within_a_second(serve, authority):
    async with with_admin(serve, authority) as peer:
        rule = await add(peer, "in", "worker-*", roles=["consumer"])
        await add(peer, "other", "other", roles=["consumer"])
        async with (
            as_client(peer, authority, "worker-1") as channel,
            as_client(peer, authority, "other") as others,
        ):
            stream, spared = await begin(channel), await begin(others)
            remove = auth_pb2.RemoveCertificateRuleRequest(id=rule.id)
            await peer.auth.RemoveCertificateRule(remove, metadata=peer.root)
            assert await ended(stream) is NOBODY
            assert await kind_of(stream) == "ERROR_KIND_KEY_ENDED"
            assert (await refusal(who(channel)))[0] is NOBODY
            assert not spared.done()
            spared.cancel()


async def test_another_rule_that_comes_first_ends_open_calls(serve, authority):
    async with with_admin(serve, authority) as peer:
        await add(peer, "in", "worker-*", roles=["consumer"])
        async with as_client(peer, authority, "worker-1") as channel:
            stream = await begin(channel)
            await add(peer, "nobody", "worker-1", first=True)
            assert await ended(stream) is NOBODY
            assert (await who(channel)).principal == "nobody"
            assert await ended(await begin(channel)) is DENIED


async def test_a_deleted_principal_takes_its_rules_along(serve, authority):
    async with with_admin(serve, authority) as peer:
        await add(peer, "in", "worker-*", roles=["consumer"])
        async with as_client(peer, authority, "worker-1") as channel:
            stream = await begin(channel)
            gone = await peer.auth.DeletePrincipal(auth_pb2.DeletePrincipalRequest(name="in"), metadata=peer.root)
            assert (gone.keys_revoked, gone.certificate_rules_removed) == (0, 1)
            assert await ended(stream) is NOBODY


async def test_an_expired_certificate_loses_its_open_calls(serve, authority):
    async with with_admin(serve, authority) as peer:
        await add(peer, "in", "short", roles=["consumer"])
        async with as_client(peer, authority, "short", ends=timedelta(seconds=3)) as channel:
            stream = await begin(channel)
            await asyncio.sleep(3)
            assert await ended(stream) is NOBODY
            assert (await refusal(who(channel)))[0] in {NOBODY, grpc.StatusCode.UNAVAILABLE}


async def test_before_a_certificate_expires_the_client_is_told_to_connect_anew(serve, authority, monkeypatch):
    """GOAWAY: grpc.aio connects again for the next call, and the open call goes on."""
    monkeypatch.setattr("fila.wire.server_protocol.RENEW_S", 58.0)
    async with with_admin(serve, authority) as peer:
        await add(peer, "in", "minute", roles=["consumer"])
        before = len(peer.server._server._protocols)
        async with as_client(peer, authority, "minute", ends=timedelta(seconds=61)) as channel:
            stream = await begin(channel)
            await asyncio.sleep(3)
            assert (await who(channel)).principal == "in"
            assert len(peer.server._server._protocols) == before + 2
            assert not stream.done()
            stream.cancel()


async def test_rules_last_over_a_restart(serve, authority):
    async with with_admin(serve, authority) as peer:
        rule = await add(peer, "in", "worker-*", roles=["consumer"])
    async with serve(**mutual(authority)) as peer, as_client(peer, authority, "worker-9") as channel:
        assert (await who(channel)).credential == rule.id


@pytest.mark.parametrize(
    "field, pattern", [("ip", "x"), ("cn", ""), ("uri", "a/**/b"), ("cn", "x" * 600), ("cn", "\n")]
)
async def test_rules_that_make_no_sense_are_refused(serve, authority, field, pattern):
    async with with_admin(serve, authority) as peer:
        code, text = await refusal(add(peer, "in", pattern, field=field))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "\n" not in text


async def test_a_certificate_that_is_not_verified_is_no_name(serve, authority, tmp_path):
    """client_auth = "none": nobody asks for a certificate, and rules match nothing."""
    pair = authority.server()
    tls = {"cert": pair.cert, "key": pair.key}
    async with serve(tls=tls, credentials=grpc_credentials(authority, authority.client("worker"))) as peer:
        stub = FilaAuthStub(peer.channel)
        made = await stub.CreateKey(auth_pb2.CreateKeyRequest(principal="root", roles=["admin"]))
        peer.auth, peer.root = stub, bearer(made.token)
        await add(peer, "in", "*", roles=["consumer"])
        code, text = await refusal(who(peer.channel))
        assert code is NOBODY
        assert "needs an API key" in text
