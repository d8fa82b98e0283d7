"""Who may do what, on a real server: every principal, every RPC, every queue, against an oracle written by hand."""

import asyncio
from contextlib import asynccontextmanager, suppress

import grpc
import pytest

from fila.auth.rights import Kind, Permission
from fila.server import access
from fila.server.access_table import RULES
from fila.v1 import admin_pb2, auth_pb2, service_pb2
from fila.v1.auth_pb2_grpc import FilaAuthStub
from tests.helpers.contract import METHODS
from tests.support.certificates import Authority, grpc_credentials

from .conftest import connect, kind_of, refusal, take

DENIED, NOBODY = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED
WAIT_S = 10

NAMES = ("orders.new", "orders.old.eu", "mail", "mail.dlq")
ALL = set(NAMES)
ORDERS = {"orders.new", "orders.old.eu"}
MAIL = {"mail", "mail.dlq"}

# The oracle: by principal, what it may do, and on which names. Nothing here is computed by what is tested.
EVERYTHING = {
    "enqueue": ALL, "consume": ALL, "browse": ALL, "manage": ALL, "audit": ALL, "journal": ALL,
    "browse-throttle": ALL, "browse-config": ALL, "configure-throttle": ALL, "configure-config": ALL, "admin": ALL,
}  # fmt: skip
PRINCIPALS = {
    "boss": (["admin"], EVERYTHING),
    "ops": (["operator"], {name: ALL for name in EVERYTHING if name not in {"enqueue", "consume", "admin"}}),
    "eye": (["viewer"], {"browse": ALL, "browse-throttle": ALL}),
    "out": (["producer"], {"enqueue": ALL}),
    "in": (["consumer"], {"consume": ALL}),
    "orders": (["producer:orders.**", "tuner"], {"enqueue": ORDERS, "configure-throttle": {"orders.new"}}),
    "mail": (["consumer:mail", "reader"], {"consume": MAIL, "browse": MAIL, "audit": MAIL}),
    "two": (["producer:mail", "consumer:orders.*"], {"enqueue": MAIL, "consume": {"orders.new"}}),
    "scoped": (["admin:orders.**"], {name: ORDERS for name in EVERYTHING if name not in {"admin", "journal"}}),
    "none": ([], {}),
}
ROLES = {"tuner": ["configure=throttle:orders.*"], "reader": ["browse=mail", "audit=mail"]}

# By method: which of the above it needs; all of them, if it stands in several rows. What the server is, WhoAmI and
# lists are open to every key; a commit touches nobody else's.
NEEDS = {
    "enqueue": "Enqueue EnqueueBatch EnqueueStream StageEnqueue",
    "consume": "Lease Consume Ack Nack ExtendLease Settle Claim DescribeClaim ReadClaim AckClaims ExtendClaims "
    "ClaimFloor DropGroup",
    "browse": "ReadQueue GetStats Explain Peek",
    "manage": "CreateQueue UpdateQueue DeleteQueue DryRunHook PauseQueue ResumeQueue Redrive Purge",
    "audit": "ReadJournal ReadAudit",
    "journal": "DescribeServer",
    "browse-config": "GetConfig",
    "configure-config": "SetConfig DeleteConfig",
    "admin": "CreateKey ListKeys RotateKey RevokeKey AddCertificateRule ListCertificateRules RemoveCertificateRule "
    "SetPrincipal DeletePrincipal ListPrincipals SetRole DeleteRole ListRoles",
}
OPEN = "Describe GetClusterMap WhoAmI ListQueues ListConfig CommitTransaction"
NEEDED = {
    method: {need for need, methods in NEEDS.items() if method in methods.split()}
    for method in " ".join([OPEN, *NEEDS.values()]).split()
}


def request_about(method, file, name):
    """A request that names a queue, or an entry of the configuration, wherever it can name one."""
    request = getattr(file, method.input_type.name)()
    for field in method.input_type.fields:
        if field.type == field.TYPE_STRING and (field.name == "key" or field.name.endswith("queue")):
            setattr(request, field.name, name)
    if method.name == "CreateQueue":
        request.name = name
    if method.name in {"EnqueueBatch", "EnqueueStream", "StageEnqueue"}:
        request.messages.add(payload=b"x")
    if method.name == "StageEnqueue":
        request.producer, request.transaction, request.part, request.sequence = "p", 1, "a", 1
    if method.name == "Settle":
        request.ClearField("acks")
        request.acks.add(queue=name, message_ids=["x"])
        request.nacks.add(queue=name, message_id="y")
        request.extends.add(queue=name, message_ids=["z"])
    return request


async def outcome(channel, name, about, token):
    """The status of a call, or that of all that is in its answer."""
    method, file = METHODS[name]
    request = request_about(method, file, about)
    path = f"/{method.containing_service.full_name}/{method.name}"
    metadata = [] if token is None else [("authorization", f"Bearer {token}")]
    response_type = getattr(file, method.output_type.name)
    arguments = {
        "request_serializer": lambda each: each.SerializeToString(),
        "response_deserializer": response_type.FromString,
    }
    try:
        async with asyncio.timeout(WAIT_S):
            if not (method.client_streaming or method.server_streaming):
                response = await channel.unary_unary(path, **arguments)(request, metadata=metadata)
            elif method.client_streaming:
                call = channel.stream_stream(path, **arguments)(iter([request]), metadata=metadata)
                response = await anext(aiter(call), None)
                call.cancel()
            else:
                call = channel.unary_stream(path, **arguments)(request, metadata=metadata)
                if method.name == "Lease":
                    await call.initial_metadata()
                    response = None
                    if call.done():
                        return await call.code()
                else:
                    response = await call.read()
                call.cancel()
    except grpc.aio.AioRpcError as error:
        return error.code()
    codes = {each.error.code for each in getattr(response, "results", ())}
    codes |= {each.error.code for each in getattr(response, "failures", ())}
    assert DENIED.value[0] not in codes or codes == {DENIED.value[0]}
    return DENIED if DENIED.value[0] in codes else grpc.StatusCode.OK


@asynccontextmanager
async def with_keys(serve, **options):
    """A server with all principals; their keys by name."""
    async with serve(**options) as peer:
        for name in ("orders.new", "orders.old.eu", "mail"):
            await peer.create(name)
        stub = FilaAuthStub(peer.channel)
        first = await stub.CreateKey(auth_pb2.CreateKeyRequest(principal="root", roles=["admin"]))
        root = [("authorization", f"Bearer {first.token}")]
        for name, grants in ROLES.items():
            await stub.SetRole(auth_pb2.SetRoleRequest(name=name, grants=grants), metadata=root)
        tokens = {}
        for name, (roles, _) in PRINCIPALS.items():
            request = auth_pb2.CreateKeyRequest(principal=name, roles=roles)
            tokens[name] = (await stub.CreateKey(request, metadata=root)).token
        peer.auth, peer.root, peer.tokens = stub, root, tokens
        yield peer


def bearer(token):
    return [("authorization", f"Bearer {token}")]


async def mistakes(channel, token, principal):
    """Calls that a principal may make and that are refused, or the other way round."""
    _, allowed = PRINCIPALS[principal]
    wrong = []
    for method in METHODS:
        for name in NAMES:
            abouts = {name: NEEDED[method]}
            if method in {"GetConfig", "SetConfig", "DeleteConfig"}:
                abouts[f"throttle.{name}"] = {need.replace("-config", "-throttle") for need in NEEDED[method]}
            for about, needs in abouts.items():
                told = await outcome(channel, method, about, token)
                expected = all(name in allowed.get(need, ()) for need in needs)
                if (told is not DENIED) is not expected or told is NOBODY:
                    wrong.append((method, about, told, expected))
    return wrong


@pytest.mark.parametrize("principal", PRINCIPALS)
async def test_everybody_may_do_exactly_what_the_oracle_says(serve, principal):
    async with with_keys(serve) as peer:
        assert await mistakes(peer.channel, peer.tokens[principal], principal) == []


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


def mutual(authority, client_auth="optional"):
    """A server that looks at client certificates, and a connection to it without one."""
    pair = authority.server()
    tls = {"cert": pair.cert, "key": pair.key, "client_ca": authority.ca, "client_auth": client_auth}
    return {"tls": tls, "credentials": grpc_credentials(authority)}


@pytest.mark.parametrize("principal", PRINCIPALS)
async def test_certificates_have_exactly_the_rights_of_their_principals(serve, authority, principal):
    async with with_keys(serve, **mutual(authority)) as peer:
        rule = {"principal": principal, "field": "CERTIFICATE_FIELD_CN", "pattern": f"{principal}-*"}
        await peer.auth.AddCertificateRule(auth_pb2.AddCertificateRuleRequest(**rule), metadata=peer.root)
        shown = grpc_credentials(authority, authority.client(f"{principal}-host"))
        async with connect(peer.server, shown) as channel:
            assert await mistakes(channel, None, principal) == []


@pytest.mark.parametrize("token", [None, "", "fila_root-aaaaaa_" + "0" * 64, "x" * 5_000])
async def test_without_a_valid_key_nothing_is_allowed(serve, token, monkeypatch):
    # Not at once: grpc.aio tells INTERNAL when a call ends while it writes.
    monkeypatch.setattr("fila.auth.failed_logins.LONGEST_S", 0.03)
    async with with_keys(serve) as peer:
        for method in METHODS:
            assert await outcome(peer.channel, method, "mail", token) is NOBODY, method


async def test_the_whole_journal_needs_the_permission_on_the_server(serve):
    async with with_keys(serve) as peer:
        told = {
            name: await outcome(peer.channel, "ReadJournal", "", token) is not DENIED
            for name, token in peer.tokens.items()
        }
    assert told == {name: bool(allowed.get("journal")) for name, (_, allowed) in PRINCIPALS.items()}


async def test_lists_show_what_one_may_see(serve):
    async with with_keys(serve) as peer:
        for entry in ("throttle.mail", "throttle.orders.new", "mail", "orders.new"):
            value = "rate=1" if entry.startswith("throttle") else "secret"
            await peer.admin.SetConfig(admin_pb2.SetConfigRequest(key=entry, value=value), metadata=peer.root)
        for name, (_, allowed) in PRINCIPALS.items():
            sent = bearer(peer.tokens[name])
            queues = await peer.admin.ListQueues(admin_pb2.ListQueuesRequest(), metadata=sent)
            assert {each.name for each in queues.queues} & ALL == allowed.get("browse", set()) - {"orders.new.dlq"}
            config = await peer.admin.ListConfig(admin_pb2.ListConfigRequest(), metadata=sent)
            expected = {f"throttle.{each}" for each in allowed.get("browse-throttle", ())}
            expected |= set(allowed.get("browse-config", ()))
            shown = {each.key for each in config.entries}
            assert shown == expected & {"throttle.mail", "throttle.orders.new", "mail", "orders.new"}
            assert config.total_count == len(shown)


async def test_a_batch_is_checked_message_by_message(serve):
    async with with_keys(serve) as peer:
        queues = ["mail", "orders.new", "mail", "nowhere", "orders.gone"]
        messages = [service_pb2.EnqueueRequest(queue=queue, payload=b"x") for queue in queues]
        request = service_pb2.EnqueueBatchRequest(messages=messages)
        response = await peer.hot.EnqueueBatch(request, metadata=bearer(peer.tokens["orders"]))
        # What one may not touch is denied, whether it exists or not.
        assert [each.error.code for each in response.results] == [7, 0, 7, 7, 5]
        staged = service_pb2.StageEnqueueRequest(
            messages=messages[:2], producer="p", transaction=1, part="a", sequence=1
        )
        code, text = await refusal(peer.hot.StageEnqueue(staged, metadata=bearer(peer.tokens["orders"])))
        assert code is DENIED
        assert text == '"orders" lacks the permission enqueue on queue "mail"'


async def test_a_settle_does_what_is_allowed_and_answers_the_rest(serve):
    async with with_keys(serve) as peer:
        ids = [
            await peer.hot.Enqueue(service_pb2.EnqueueRequest(queue=queue), metadata=peer.root)
            for queue in ("mail", "orders.new")
        ]
        stream = peer.hot.Lease(service_pb2.LeaseRequest(queue="mail"), metadata=bearer(peer.tokens["mail"]))
        await take(stream, 1)
        call = peer.hot.Settle(metadata=bearer(peer.tokens["mail"]))
        acks = [
            service_pb2.AckGroup(queue="mail", message_ids=[ids[0].message_id]),
            service_pb2.AckGroup(queue="orders.new", message_ids=[ids[1].message_id]),
        ]
        await call.write(service_pb2.SettleRequest(acks=acks))
        response = await call.read()
        assert [(each.queue, each.error.code) for each in response.failures] == [("orders.new", 7)]
        stream.cancel()
        call.cancel()


async def test_a_transaction_of_one_principal_is_out_of_reach_for_others(serve):
    async with with_keys(serve) as peer:
        out, boss = bearer(peer.tokens["out"]), bearer(peer.tokens["boss"])
        message = service_pb2.EnqueueRequest(queue="mail", payload=b"x")
        staged = service_pb2.StageEnqueueRequest(messages=[message], producer="p", transaction=5, part="a", sequence=1)
        await peer.hot.StageEnqueue(staged, metadata=out)
        commit = service_pb2.CommitTransactionRequest(producer="p", transaction=9)
        await peer.hot.CommitTransaction(commit, metadata=boss)
        part = service_pb2.StagedPart(part="a", messages=1)
        commit = service_pb2.CommitTransactionRequest(producer="p", transaction=5, parts=[part])
        assert not (await peer.hot.CommitTransaction(commit, metadata=out)).committed_before


async def ended(call):
    """The status of a stream that ends within a second, and what this machine may add."""
    async with asyncio.timeout(1.5):
        with suppress(grpc.aio.AioRpcError):
            while await call.read() is not grpc.aio.EOF:
                pass
        return await call.code()


async def open_streams(peer, name, queue="mail"):
    """One stream of each kind, begun."""
    sent = bearer(peer.tokens[name])
    lease = peer.hot.Lease(service_pb2.LeaseRequest(queue=queue), metadata=sent)
    consume = peer.hot.Consume(metadata=sent)
    await consume.write(service_pb2.ConsumeRequest(queue=queue))
    settle, enqueue = peer.hot.Settle(metadata=sent), peer.hot.EnqueueStream(metadata=sent)
    await lease.initial_metadata()
    await consume.initial_metadata()
    await settle.write(service_pb2.SettleRequest())
    await settle.read()
    await enqueue.write(service_pb2.EnqueueBatchRequest(messages=[service_pb2.EnqueueRequest(queue=queue)]))
    await enqueue.read()
    return lease, consume, settle, enqueue


async def test_a_call_may_need_rights_on_two_queues(serve, monkeypatch):
    """Both when it begins, and for as long as it lasts: a row of the table says so, and no handler."""
    path = "/fila.v1.FilaService/Lease"
    into_mail = Permission.ENQUEUE, lambda _: (Kind.QUEUE, "mail")
    monkeypatch.setitem(RULES, path, RULES[path]._replace(also=(into_mail,)))
    lease = service_pb2.LeaseRequest(queue="orders.new")
    async with with_keys(serve) as peer:
        for name in ("in", "out"):  # each has one of the two
            code, _ = await refusal(peer.hot.Lease(lease, metadata=bearer(peer.tokens[name])).read())
            assert code is DENIED
        stream = peer.hot.Lease(lease, metadata=bearer(peer.tokens["two"]))
        await stream.initial_metadata()
        fewer = auth_pb2.SetPrincipalRequest(name="two", roles=["consumer:orders.*"])
        await peer.auth.SetPrincipal(fewer, metadata=peer.root)
        assert await ended(stream) is DENIED


async def test_a_revoked_key_loses_its_open_streams_within_a_second(serve):
    async with with_keys(serve) as peer:
        streams = await open_streams(peer, "boss")
        others = await open_streams(peer, "in")
        keys = await peer.auth.ListKeys(auth_pb2.ListKeysRequest(principal="boss"), metadata=peer.root)
        await peer.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=keys.keys[0].id), metadata=peer.root)
        assert [await ended(stream) for stream in streams] == [NOBODY] * 4
        assert await kind_of(streams[0]) == "ERROR_KIND_KEY_ENDED"
        assert [stream.done() for stream in others] == [False] * 4
        assert (
            await refusal(peer.admin.ListQueues(admin_pb2.ListQueuesRequest(), metadata=bearer(peer.tokens["boss"])))
        )[0] is NOBODY


@pytest.mark.parametrize("method", ["Lease", "Consume"])
async def test_what_a_revoked_key_was_granted_and_not_sent_goes_back_at_once(serve, method):
    """Its consumer does not read, so most of it never leaves the server. What was sent stays leased."""
    async with with_keys(serve) as peer:
        mail = [service_pb2.EnqueueRequest(payload=bytes(500_000))] * 10
        for _ in range(4):
            batch = service_pb2.EnqueueBatchRequest(queue="mail", messages=mail)
            await peer.hot.EnqueueBatch(batch, metadata=peer.root)
        asked, sent = {"queue": "mail", "max_in_flight": 40}, bearer(peer.tokens["boss"])
        if method == "Lease":
            stream = peer.hot.Lease(service_pb2.LeaseRequest(**asked), metadata=sent)
        else:
            stream = peer.hot.Consume(metadata=sent)
            await stream.write(service_pb2.ConsumeRequest(**asked))

        async def figures():
            request = admin_pb2.GetStatsRequest(queue="mail")
            summary = (await peer.admin.GetStats(request, metadata=peer.root)).summary
            return summary.in_flight, summary.depth

        while await figures() != (40, 0):
            await asyncio.sleep(0.01)
        keys = await peer.auth.ListKeys(auth_pb2.ListKeysRequest(principal="boss"), metadata=peer.root)
        await peer.auth.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=keys.keys[0].id), metadata=peer.root)
        while (now := await figures())[1] == 0:
            await asyncio.sleep(0.01)
        assert 0 < now[0] < 40
        assert sum(now) == 40


async def test_an_expired_key_loses_its_open_streams_within_a_second(serve):
    async with with_keys(serve) as peer:
        request = auth_pb2.CreateKeyRequest(principal="boss", ttl_ms=700)
        peer.tokens["boss"] = (await peer.auth.CreateKey(request, metadata=peer.root)).token
        streams = await open_streams(peer, "boss")
        await asyncio.sleep(0.7)
        assert [await ended(stream) for stream in streams] == [NOBODY] * 4


async def test_a_rotated_key_is_valid_for_the_overlap(serve):
    async with with_keys(serve) as peer:
        [key] = (await peer.auth.ListKeys(auth_pb2.ListKeysRequest(principal="out"), metadata=peer.root)).keys
        rotate = auth_pb2.RotateKeyRequest(key_id=key.id, overlap_ms=600)
        made = await peer.auth.RotateKey(rotate, metadata=peer.root)
        request = service_pb2.EnqueueRequest(queue="mail")
        for token in (made.token, peer.tokens["out"]):
            await peer.hot.Enqueue(request, metadata=bearer(token))
        await asyncio.sleep(0.7)
        await peer.hot.Enqueue(request, metadata=bearer(made.token))
        assert (await refusal(peer.hot.Enqueue(request, metadata=bearer(peer.tokens["out"]))))[0] is NOBODY


async def test_changed_rights_apply_to_open_streams(serve):
    async with with_keys(serve) as peer:
        lease, consume, settle, enqueue = await open_streams(peer, "boss")
        change = auth_pb2.SetPrincipalRequest(name="boss", roles=["producer:orders.**"])
        await peer.auth.SetPrincipal(change, metadata=peer.root)
        assert [await ended(stream) for stream in (lease, consume)] == [DENIED, DENIED]
        batch = [service_pb2.EnqueueRequest(queue=queue) for queue in ("mail", "orders.new")]
        await enqueue.write(service_pb2.EnqueueBatchRequest(messages=batch))
        assert [each.error.code for each in (await enqueue.read()).results] == [7, 0]
        settle.cancel()
        enqueue.cancel()


async def limit(peer, **limits):
    change = auth_pb2.SetPrincipalRequest(name="out", roles=["producer"], limits=limits)
    await peer.auth.SetPrincipal(change, metadata=peer.root)


async def test_a_principal_sends_no_more_than_its_limit(serve):
    async with with_keys(serve) as peer:
        await limit(peer, messages_per_second=5)
        sent = bearer(peer.tokens["out"])
        batch = service_pb2.EnqueueBatchRequest(messages=[service_pb2.EnqueueRequest(queue="mail")] * 15)
        assert {each.error.code for each in (await peer.hot.EnqueueBatch(batch, metadata=sent)).results} == {0}
        refused = (await peer.hot.EnqueueBatch(batch, metadata=sent)).results
        assert {(each.error.code, each.error.message) for each in refused} == {
            (8, '"out" exceeds its limit messages_per_second=5')
        }
        one = service_pb2.EnqueueRequest(queue="mail")
        assert (await refusal(peer.hot.Enqueue(one, metadata=sent)))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        place = {"producer": "p", "transaction": 1, "part": "a", "sequence": 1}
        stage = service_pb2.StageEnqueueRequest(messages=[one], **place)
        assert (await refusal(peer.hot.StageEnqueue(stage, metadata=sent)))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        await peer.hot.Enqueue(one, metadata=peer.root)  # others do not notice
        await asyncio.sleep(2.1)  # what the first batch was more than a second brings is paid for
        await peer.hot.Enqueue(one, metadata=sent)


async def test_a_principal_sends_no_more_bytes_than_its_limit(serve):
    async with with_keys(serve) as peer:
        await limit(peer, bytes_per_second=1000)
        sent = bearer(peer.tokens["out"])
        stream = peer.hot.EnqueueStream(metadata=sent)
        codes = []
        for _ in range(2):
            message = service_pb2.EnqueueRequest(queue="mail", payload=bytes(5000))
            await stream.write(service_pb2.EnqueueBatchRequest(messages=[message]))
            codes += [each.error.code for each in (await stream.read()).results]
        assert codes == [0, 8]
        stream.cancel()


async def test_a_principal_has_no_more_open_calls_than_its_limit(serve):
    async with with_keys(serve) as peer:
        await limit(peer, open_calls=2)
        sent, one = bearer(peer.tokens["out"]), service_pb2.EnqueueBatchRequest()
        streams = [peer.hot.EnqueueStream(metadata=sent) for _ in range(2)]
        for stream in streams:
            await stream.write(one)
            await stream.read()
        enqueue = service_pb2.EnqueueRequest(queue="mail")
        code, text = await refusal(peer.hot.Enqueue(enqueue, metadata=sent))
        assert (code, text) == (grpc.StatusCode.RESOURCE_EXHAUSTED, '"out" exceeds its limit open_calls=2')
        streams[0].cancel()
        await asyncio.sleep(0.3)
        await peer.hot.Enqueue(enqueue, metadata=sent)
        streams[1].cancel()


@pytest.mark.parametrize("limits", [{"open_calls": 1 << 53}, {"open_calls": 0}])
async def test_limits_that_mean_nothing_are_refused(serve, limits):
    async with with_keys(serve) as peer:
        change = auth_pb2.SetPrincipalRequest(name="out", roles=["producer"], limits=limits)
        assert (await refusal(peer.auth.SetPrincipal(change, metadata=peer.root)))[
            0
        ] is grpc.StatusCode.INVALID_ARGUMENT


async def test_the_first_key_ends_the_streams_of_those_who_have_none(serve):
    async with serve() as peer:
        await peer.create("q")
        lease = peer.lease()
        await lease.initial_metadata()
        await FilaAuthStub(peer.channel).CreateKey(auth_pb2.CreateKeyRequest(principal="root", roles=["admin"]))
        assert await ended(lease) is NOBODY


async def test_keys_and_roles_last_over_a_restart(serve):
    async with with_keys(serve) as peer:
        tokens, root = peer.tokens, peer.root
        await peer.hot.Enqueue(service_pb2.EnqueueRequest(queue="mail"), metadata=bearer(tokens["out"]))
    async with serve() as peer:
        stub = FilaAuthStub(peer.channel)
        me = await stub.WhoAmI(auth_pb2.WhoAmIRequest(), metadata=bearer(tokens["orders"]))
        assert (me.principal, list(me.roles)) == ("orders", ["producer:orders.**", "tuner"])
        assert (await refusal(peer.create("x")))[0] is NOBODY
        [key] = (await stub.ListKeys(auth_pb2.ListKeysRequest(principal="out"), metadata=root)).keys
        assert key.HasField("last_used_at")


async def test_the_configuration_never_shows_or_touches_keys(serve):
    async with with_keys(serve) as peer:
        config = await peer.admin.ListConfig(admin_pb2.ListConfigRequest(), metadata=peer.root)
        assert list(config.entries) == []
        [key] = (await peer.auth.ListKeys(auth_pb2.ListKeysRequest(principal="out"), metadata=peer.root)).keys
        for change in (
            peer.admin.DeleteConfig(admin_pb2.DeleteConfigRequest(key=f"\0auth/key/{key.id}"), metadata=peer.root),
            peer.admin.SetConfig(admin_pb2.SetConfigRequest(key=f"\0auth/key/{key.id}", value="x"), metadata=peer.root),
        ):
            assert (await refusal(change))[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_failed_logins_of_one_address_are_slowed_down(serve):
    async with with_keys(serve) as peer:
        loop = asyncio.get_running_loop()
        waits = []
        for _ in range(5):
            began = loop.time()
            await refusal(peer.admin.ListQueues(admin_pb2.ListQueuesRequest(), metadata=bearer("fila_x_y")))
            waits.append(loop.time() - began)
        assert waits[-1] > 0.75
        began = loop.time()
        await peer.admin.ListQueues(admin_pb2.ListQueuesRequest(), metadata=peer.root)
        assert loop.time() - began < 0.5


@pytest.mark.parametrize(
    "metadata",
    [
        [("authorization", "Basic abc")],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Bearer \xa0")],
        [("authorization", "Bearer fila_root")],
        [("authorization-bin", b"\x00\xff")],
    ],
)
async def test_authorization_that_is_no_key_is_refused(serve, metadata):
    async with with_keys(serve) as peer:
        if any("\xa0" in str(value) for _, value in metadata):
            metadata = [("authorization", "Bearer ~!@#")]
        assert (await refusal(peer.admin.ListQueues(admin_pb2.ListQueuesRequest(), metadata=metadata)))[0] is NOBODY
        two = [*peer.root, *peer.root]
        assert (await refusal(peer.admin.ListQueues(admin_pb2.ListQueuesRequest(), metadata=two)))[0] is NOBODY


@pytest.mark.parametrize(
    "peer, here",
    [("127.0.0.1:1", True), ("127.8.9.1:1", True), ("::1:5", True), ("::ffff:127.0.0.1:5", True), ("10.0.0.1:1", False),
     ("::ffff:10.0.0.1:1", False), ("", False), ("fe80::1%eth0:1", False)],
)  # fmt: skip
def test_which_peers_are_on_this_machine(peer, here):
    assert access.is_loopback(peer) is here


async def test_before_the_first_key_others_cannot_change_rights(serve, monkeypatch):
    monkeypatch.setattr("fila.server.auth.is_loopback", lambda _: False)
    async with serve() as peer:
        stub = FilaAuthStub(peer.channel)
        code, text = await refusal(stub.CreateKey(auth_pb2.CreateKeyRequest(principal="root", roles=["admin"])))
        assert code is DENIED
        assert "own machine" in text


async def test_the_last_admin_key_stays(serve):
    async with serve() as peer:
        stub = FilaAuthStub(peer.channel)
        code, _ = await refusal(stub.CreateKey(auth_pb2.CreateKeyRequest(principal="x", roles=["producer"])))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        made = await stub.CreateKey(auth_pb2.CreateKeyRequest(principal="root", roles=["admin"]))
        revoke = stub.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=made.key.id), metadata=bearer(made.token))
        assert (await refusal(revoke))[0] is grpc.StatusCode.FAILED_PRECONDITION


async def test_the_first_rights_are_not_given_through_another_member(serve):
    """It may be on this machine, and whoever calls it on another one."""
    async with serve() as peer:
        request = auth_pb2.CreateKeyRequest(principal="root", roles=["admin"])
        with pytest.raises(grpc.aio.AioRpcError, match="ask it directly") as refused:
            await FilaAuthStub(peer.channel).CreateKey(request, metadata=[("fila-passed", "1")])
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        await FilaAuthStub(peer.channel).CreateKey(request)
