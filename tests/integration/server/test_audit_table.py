"""Every RPC of the contract, called for real: whatever changes more than messages leaves an entry in the audit.

`CALLS` has a request for every method, in an order in which each can succeed. A method without one fails the test, and
so does one that changes queues, settings or rights without an entry, or that the table of rights says changes nothing.
"""

import asyncio

import grpc
import pytest

from fila.server.access_table import RULES
from fila.storage.base import Family
from fila.v1 import admin_pb2, auth_pb2, service_pb2
from fila.v1.auth_pb2_grpc import FilaAuthStub
from tests.helpers.contract import METHODS, path_of

MESSAGE = service_pb2.EnqueueRequest(queue="q", payload=b"x")
STAGED = {"messages": [MESSAGE], "producer": "p", "transaction": 1, "part": "a", "sequence": 1}
PARTS = [service_pb2.StagedPart(part="a", messages=1)]
CLAIM = {"queue": "r", "group": "g"}

CALLS = {
    "Describe": {},
    "GetClusterMap": {},
    "WhoAmI": {},
    "CreateQueue": {"name": "new", "config": admin_pb2.QueueConfig(max_attempts=1)},
    "UpdateQueue": {"queue": "new", "config": admin_pb2.QueueConfig(quantum=9)},
    "PauseQueue": {"queue": "new"},
    "ResumeQueue": {"queue": "new"},
    "DeleteQueue": {"queue": "new"},
    "ListQueues": {},
    "GetStats": {"queue": "q"},
    "SetConfig": {"key": "throttle.x", "value": "rate=5"},
    "GetConfig": {"key": "throttle.x"},
    "ListConfig": {},
    "DeleteConfig": {"key": "throttle.x"},
    "Enqueue": {"queue": "q", "payload": b"x"},
    "EnqueueBatch": {"queue": "q", "messages": [MESSAGE]},
    "EnqueueStream": {"queue": "q", "messages": [MESSAGE]},
    "StageEnqueue": STAGED,
    "CommitTransaction": {"producer": "p", "transaction": 1, "parts": PARTS},
    "Explain": {"queue": "q"},
    "Peek": {"queue": "q"},
    "ReadQueue": {"queue": "q"},
    "DryRunHook": {"queue": "q", "script": "function on_enqueue(m) return {} end"},
    "Lease": {"queue": "q", "max_in_flight": 1},
    "Consume": {"queue": "q", "max_in_flight": 1},
    "Ack": {"queue": "q", "message_id": "x"},
    "Nack": {"queue": "q", "message_id": "x"},
    "ExtendLease": {"queue": "q", "message_id": "x"},
    "Settle": {"acks": [service_pb2.AckGroup(queue="q", message_ids=["x"])]},
    "Claim": CLAIM | {"max_messages": 10},
    "DescribeClaim": CLAIM | {"number": 1},
    "ReadClaim": CLAIM | {"number": 1},
    "ClaimFloor": CLAIM,
    "ExtendClaims": CLAIM,
    "AckClaims": CLAIM | {"upto": 1},
    "DropGroup": CLAIM,
    "Redrive": {"dlq_queue": "q.dlq"},
    "Purge": {"queue": "q", "any_queue": True},
    "ReadJournal": {},
    "ReadAudit": {},
    "DescribeServer": {},
    "SetRole": {"name": "tuner", "grants": ["configure=throttle:*"]},
    "ListRoles": {},
    "SetPrincipal": {"name": "shop", "roles": ["tuner"]},
    "ListPrincipals": {},
    "CreateKey": {"principal": "shop"},
    "ListKeys": {},
    "RotateKey": {"key_id": "KEY"},
    "RevokeKey": {"key_id": "KEY"},
    "AddCertificateRule": {"field": "CERTIFICATE_FIELD_CN", "pattern": "shop", "principal": "shop"},
    "ListCertificateRules": {},
    "RemoveCertificateRule": {"id": "RULE"},
    "DeletePrincipal": {"name": "shop"},
    "DeleteRole": {"name": "tuner"},
}
MAY_FAIL = {"Ack", "Nack", "ExtendLease"}
"""Of a message that nobody holds"""


async def call(peer, name, fields, token):
    """Make one call, as the first request of a stream where it is one. Returns its answer."""
    method, file = METHODS[name]
    request = getattr(file, method.input_type.name)(**fields)
    metadata = [("authorization", f"Bearer {token}")]
    arguments = {
        "request_serializer": lambda each: each.SerializeToString(),
        "response_deserializer": getattr(file, method.output_type.name).FromString,
    }
    async with asyncio.timeout(10):
        if not (method.client_streaming or method.server_streaming):
            return await peer.channel.unary_unary(path_of(name), **arguments)(request, metadata=metadata)
        if method.client_streaming:
            stream = peer.channel.stream_stream(path_of(name), **arguments)(metadata=metadata)
            await stream.write(request)
        else:
            stream = peer.channel.unary_stream(path_of(name), **arguments)(request, metadata=metadata)
        response = await stream.read()
        stream.cancel()
        return response


def kept(peer, *families):
    store = peer.server._broker.store
    return {family: dict(store.scan(family)) for family in families}


EVERYTHING = [family for family in Family if family not in {Family.DEFAULT, Family.JOURNAL, Family.AUDIT}]
SETTINGS = [Family.QUEUES, Family.STATE]


async def prepared(peer):
    """A server with two queues, a dead letter and a first key. Returns the key."""
    await peer.create("q", max_attempts=1)
    await peer.create("r")
    for queue in ("q", "r"):
        await peer.send_many(3, b"x", queue)
    stub = FilaAuthStub(peer.channel)
    return (await stub.CreateKey(auth_pb2.CreateKeyRequest(principal="root", roles=["admin"]))).token


def test_every_rpc_has_a_request_here():
    assert set(CALLS) == set(METHODS) == {path.rpartition("/")[2] for path in RULES}


async def attempt(peer, name, fields, token):
    try:
        return await call(peer, name, fields, token)
    except grpc.aio.AioRpcError:
        if name not in MAY_FAIL:
            raise
        return None


async def test_whatever_changes_leaves_an_entry_and_nothing_else_does(serve):
    wrong = []
    async with serve() as peer:
        token, made = await prepared(peer), {}
        audit, store = peer.server._broker.state.audit, peer.server._broker.store
        for name, fields in CALLS.items():
            families = SETTINGS if "FilaService" in path_of(name) else EVERYTHING
            before, first = kept(peer, *families), audit.next_entry
            given = {field: made.get(str(value), value) for field, value in fields.items()}
            answer = await attempt(peer, name, given, token)
            if name == "CreateKey":
                made["KEY"] = answer.key.id
            elif name == "AddCertificateRule":
                made["RULE"] = answer.rule.id
            entries = [record for _, record in audit.read(store, first, audit.next_entry)]
            declared = RULES[path_of(name)].changes is not None
            if declared != bool(entries) or (kept(peer, *families) != before and not declared):
                wrong.append((name, entries))
            for record in entries:
                assert (record.action, record.principal, record.outcome) == (name, "root", "ok")
                assert record.key_id.startswith("root-")
                assert record.peer.startswith("127.0.0.1:")
    assert wrong == []


CHANGING = [name for name in CALLS if RULES[path_of(name)].changes is not None]


async def test_a_refused_change_leaves_an_entry_and_a_refused_look_does_not(serve):
    async with serve() as peer:
        token = await prepared(peer)
        stub = FilaAuthStub(peer.channel)
        metadata = [("authorization", f"Bearer {token}")]
        nobody = (await stub.CreateKey(auth_pb2.CreateKeyRequest(principal="nobody"), metadata=metadata)).token
        audit, store = peer.server._broker.state.audit, peer.server._broker.store
        before, first = kept(peer, *EVERYTHING), audit.next_entry
        for name in ("Peek", "ReadAudit", "ListKeys"):
            with pytest.raises(grpc.aio.AioRpcError):
                await call(peer, name, CALLS[name], nobody)
        assert audit.next_entry == first
        for name in CHANGING:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(peer, name, CALLS[name], nobody)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        entries = [record for _, record in audit.read(store, first, audit.next_entry)]
        assert [record.action for record in entries] == CHANGING
        assert {(record.principal, record.outcome) for record in entries} == {("nobody", "PERMISSION_DENIED")}
        assert all(record.key_id.startswith("nobody-") for record in entries)
        assert kept(peer, *EVERYTHING) == before
        named = {record.action: (record.kind, record.resource) for record in entries}
        assert named["Purge"] == ("queue", "q")
        assert named["SetConfig"] == ("throttle", "x")
        assert named["SetPrincipal"] == ("principal", "shop")


async def test_no_two_rpcs_have_the_same_name():
    """An action of the audit is the name of an RPC, without its service."""
    assert len(METHODS) == len(RULES)
