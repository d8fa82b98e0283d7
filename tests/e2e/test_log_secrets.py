"""What users send is never in the server's log, at any level and by no library; what operators do is, by name.

Every RPC of the contract is called with generated requests, in which all that is no name is a secret: payloads,
headers, scripts, values of settings, error texts, metadata, keys. Most of these calls fail, in all sorts of ways.
"""

import base64
import hashlib
import json
import os
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from fila import TLS, Client, FilaError
from fila.testing import ServerProcess
from fila.v1 import admin_pb2, auth_pb2, service_pb2, service_pb2_grpc
from tests.e2e.support import eventually
from tests.support.certificates import Authority, grpc_credentials
from tests.support.secrets import MARK, lines_with, odd, secrets

METHODS = [
    method
    for module in (admin_pb2, auth_pb2, service_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]

NAMES = {"queue", "dlq_queue", "name", "key", "prefix", "principal", "roles", "grants", "key_id"}
NAMES |= {"fairness_header", "weight_header", "cost_header", "names"}  # settings of queues name headers
NAMES |= {"fairness_key", "group"}  # which messages were purged, and which readers dropped, is in the audit by name
NAMES |= {"id", "field", "pattern"}  # of certificate rules
"""Fields whose values are names, which the log may tell. All others hold secrets."""

HOOKS = {
    "raises": "function on_enqueue(m) error(m.headers.name) end function on_failure(m) error(m.headers.name) end",
    "spins": "function on_enqueue(m) while true do end end function on_failure(m) while true do end end",
    "strays": "function on_enqueue(m) return {fairness_key = m.headers, weight = m.headers.name} end",
    "plain": "",
}
names = st.sampled_from([*HOOKS, "plain.dlq", "nowhere", "throttle.x", "viewer", "enqueue=plain", ""])
texts = st.tuples(odd, secrets, odd).map("".join)
numbers = st.sampled_from([0, 1, 2, 1000, 2**31 - 1])

CALL_S = 0.3
"""A stream does not end by itself."""


def values(field):
    """What a field may hold, as in JSON."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return texts.map(lambda text: base64.b64encode(text.encode()).decode())
        case FieldDescriptor.CPPTYPE_STRING:
            return names if field.name in NAMES else texts
        case FieldDescriptor.CPPTYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return st.sampled_from([0.0, 1.5, 1e300])
        case FieldDescriptor.CPPTYPE_ENUM:
            return st.sampled_from([value.number for value in field.enum_type.values])
        case FieldDescriptor.CPPTYPE_MESSAGE:
            return contents(field.message_type)
        case _:
            return numbers


def content(field):
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return st.dictionaries(texts, values(field.message_type.fields_by_name["value"]), min_size=1, max_size=2)
    return st.lists(values(field), min_size=1, max_size=2) if field.is_repeated else values(field)


def contents(descriptor):
    """Requests as dictionaries: names always, everything else mostly."""
    always = {field.name: content(field) for field in descriptor.fields if field.name in NAMES}
    mostly = {field.name: content(field) for field in descriptor.fields if field.name not in NAMES}
    return st.fixed_dictionaries(always, optional=mostly).map(lambda made: one_of_each(descriptor, made))


def one_of_each(descriptor, made):
    chosen = {group.name: next((f.name for f in group.fields if f.name in made), "") for group in descriptor.oneofs}
    return {
        name: value
        for name, value in made.items()
        if (group := descriptor.fields_by_name[name].containing_oneof) is None or chosen[group.name] == name
    }


class Victim:
    """A server with TLS, keys, hooks that fail and a log of one level; and all that its log must not tell."""

    def __init__(self, folder, level, env):
        self.authority = Authority(folder)
        pair = self.authority.server()
        config = f"""[log]
level = "{level}"
[server]
slow_turn_ms = 1
[tls]
cert = "{pair.cert}"
key = "{pair.key}"
[telemetry]
otlp_endpoint = "http://127.0.0.1:1"
metrics_interval_ms = 1000
prometheus_listen = "127.0.0.1:0"
[journal]
enabled = true
"""
        self.process = ServerProcess(folder, config=config, env=env, credentials=grpc_credentials(self.authority))
        self.forbidden = {MARK}
        self.token = ""

    def set_up(self):
        self.process.start()
        with self.client() as client:
            for name, script in HOOKS.items():
                client.create_queue(name, fairness_header="name", max_attempts=2, script=script)
            self.learn(client.auth.create_key("root", ["admin"]).token)

    def client(self, **options):
        return Client(self.process.addr, tls=TLS(ca=self.authority.ca), timeout=30, **options)

    def learn(self, token):
        """A key of this server: its secret must not be told either."""
        self.token = self.token or token
        self.forbidden.add(token.rpartition("_")[2])

    def check(self):
        assert lines_with(self.forbidden, self.process.log) == []


@pytest.fixture(params=["debug", "info", "warning", "error", "debug of asyncio"])
def victim(tmp_path, request):
    level, _, more = request.param.partition(" ")
    env = {"PYTHONASYNCIODEBUG": "1", "PYTHONDEVMODE": "1"} if more else {}
    victim = Victim(tmp_path, level, env)
    try:
        victim.set_up()
        yield victim
    finally:
        victim.process.close()


def call(channel, method, request, metadata):
    """Call an RPC, and take the first response of a stream."""
    kind = "_".join("stream" if streams else "unary" for streams in (method.client_streaming, method.server_streaming))
    path = f"/{method.containing_service.full_name}/{method.name}"
    answer = getattr(channel, kind)(path)
    sent = request.SerializeToString()
    with suppress(grpc.RpcError):
        responses = answer(iter([sent]) if method.client_streaming else sent, metadata=metadata, timeout=CALL_S)
        return next(responses, b"") if method.server_streaming else responses
    return b""


def probe(victim, channel, method):
    """Call one RPC in several ways, with an admin's key."""
    request_type, response_type = map(GetMessageClass, (method.input_type, method.output_type))
    authorized = ("authorization", f"Bearer {victim.token}")

    @settings(max_examples=5)
    @given(made=contents(method.input_type), secret=secrets)
    def try_it(made, secret):
        metadata = [authorized, ("x-more", secret), ("x-more-bin", secret.encode())]
        answer = call(channel, method, ParseDict(made, request_type()), metadata)
        if method.name in {"CreateKey", "RotateKey"} and answer:
            victim.learn(response_type.FromString(answer).token)
        victim.check()

    try_it()


def fail_to_log_in(victim, channel):
    """Few of them: each is answered later than the one before."""
    wrong = [
        f"Bearer {MARK}guessed",
        f"Bearer fila_root-aaaaaa_{MARK}",
        f"{MARK} {MARK}",
        victim.token,
        f"Bearer {victim.token}0",
    ]
    method = next(each for each in METHODS if each.name == "Enqueue")
    for value in wrong:
        call(channel, method, service_pb2.EnqueueRequest(queue="plain"), [("authorization", value)])
    call(channel, method, service_pb2.EnqueueRequest(queue="plain"), [("authorization-bin", MARK.encode())])


def break_rules(victim, channel):
    """What is no request: of a method that does not exist, of bytes that mean nothing, of another protocol."""
    metadata = [("authorization", f"Bearer {victim.token}"), ("x-key", MARK)]
    for path in (f"/fila.v1.FilaService/{MARK}", f"/{MARK}", "/fila.v1.FilaService/Enqueue"):
        with suppress(grpc.RpcError):
            channel.unary_unary(path)(f"\x0a{MARK}".encode(), metadata=metadata, timeout=CALL_S)
    for junk in (f"GET /{MARK} HTTP/1.1\r\nauthorization: {MARK}\r\n\r\n", f"\x16\x03\x01\x00\x20{MARK}", MARK):
        with socket.create_connection(("127.0.0.1", victim.process.port), timeout=5) as peer:
            peer.sendall(junk.encode())
            with suppress(OSError):
                peer.recv(100)
    context = ssl.create_default_context()  # does not know the CA
    address = ("127.0.0.1", victim.process.port)
    with socket.create_connection(address, timeout=5) as peer, pytest.raises(ssl.SSLError):
        context.wrap_socket(peer, server_hostname=f"{MARK}.example")


def scrape(victim):
    lines = [json.loads(line) for line in victim.process.log.splitlines() if line.startswith("{")]
    ports = [line["port"] for line in lines if line["event"] == "serving metrics"]
    for port in ports:  # told from level info on
        context = ssl.create_default_context(cafile=victim.authority.ca)
        for path in (f"/metrics?token={MARK}", f"/{MARK}", "/metrics"):
            request = urllib.request.Request(f"https://localhost:{port}{path}", headers={"authorization": f"x {MARK}"})
            with suppress(urllib.error.HTTPError):
                urllib.request.urlopen(request, timeout=30, context=context).read()


def live(victim):
    """Messages that are delivered, fail and die, with hooks that fail too."""
    with victim.client(api_key=victim.token) as client:
        for name in HOOKS:
            with suppress(FilaError):
                client.resume_queue(name)
            for number in range(3):
                with suppress(FilaError):
                    client.enqueue(name, {"name": f"{MARK}{number}"}, MARK.encode(), dedup_key=f"{MARK}{number}")
        for _ in range(4):
            with suppress(FilaError), client.consume("raises", max_in_flight=1) as messages:
                next(messages).nack(MARK)


@pytest.mark.timeout(300)
def test_nothing_that_users_send_is_logged_at_any_level(victim, request):
    credentials = grpc_credentials(victim.authority)
    with grpc.secure_channel(f"localhost:{victim.process.port}", credentials) as channel:
        live(victim)
        fail_to_log_in(victim, channel)
        break_rules(victim, channel)
        scrape(victim)
        for method in METHODS:
            probe(victim, channel, method)
        victim.check()
    victim.process.stop()
    victim.check()
    if "error" not in request.node.name:  # it has been tried: the log tells of what went wrong
        for event in ("slow turn of the event loop", "login failed", "hook failed"):
            assert event in victim.process.log
    lines = [json.loads(line) for line in victim.process.log.splitlines() if line.startswith("{")]
    assert {line["logger"].partition(".")[0] for line in lines if line["level"] in {"debug", "info"}} <= {"fila"}


# A server with defects: errors of its own, of Python and of a library, all of which quote what was sent.
DEFECTIVE = """
import json, sys
from fila.server import message_codec
from fila.server.main import main

def failing(request):
    text = request.payload.decode()
    try:
        {}[text]
    except KeyError:
        json.loads("{" + text) if request.queue == "json" else int(text)

message_codec.read_message = failing
sys.exit(main())
"""


@pytest.mark.parametrize("form", ["json", "pretty"])
def test_a_defect_is_logged_without_the_value_that_it_stumbled_on(tmp_path, form):
    holder = ServerProcess(tmp_path)  # never started: it keeps a port free for us
    command = [sys.executable, "-c", DEFECTIVE, "--listen", holder.addr, "--data-dir", str(tmp_path / "data")]
    log = tmp_path / "defective.log"
    with log.open("wb") as stream:
        environ = os.environ | {"FILA_LOG__FORMAT": form}
        defective = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, env=environ)
    try:
        eventually(lambda: "listening" in log.read_text(), "it listens")
        with grpc.insecure_channel(holder.addr) as channel:
            stub = service_pb2_grpc.FilaServiceStub(channel)
            for queue in ("json", "int"):
                with pytest.raises(grpc.RpcError, match="its log says why"):
                    stub.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=MARK.encode()), timeout=30)
    finally:
        defective.terminate()
        defective.wait(60)
        holder.close()
    assert lines_with({MARK}, log.read_text()) == []
    told = log.read_text()
    assert told.count("call failed") == 2
    assert told.count("KeyError: [text not shown]") == 2
    assert all(kind in told for kind in ("ValueError: [text", "json.decoder.JSONDecodeError: [text", "in failing"))


def test_changes_of_queues_and_settings_are_logged_by_name(tmp_path):
    """What may hold a secret, a script or a value of the configuration, is told by its digest."""
    script = 'function on_enqueue(m) error("script-secret") end'
    with ServerProcess(tmp_path) as server:
        with Client(server.addr, timeout=30) as client:
            client.set_config("app.key", "config-secret")
            client.set_config("app.key", "config-secret again")
            client.delete_config("app.key")
            with pytest.raises(FilaError):
                client.set_config("throttle.aws", "throttle-secret")
            client.create_queue("q", max_attempts=2, script=script)
            client.update_queue("q", visibility_timeout_ms=60_000)
            client.enqueue("q")
            client.delete_queue("q", force=True)
        server.stop()
        lines = [json.loads(line) for line in server.log.splitlines()]
        told = {(line["action"], line["resource"]): line for line in lines if line["event"] == "audit"}
        digest = f"sha256:{hashlib.sha256(script.encode()).hexdigest()}, {len(script)} bytes"
        created = told["CreateQueue", "queue:q"]["changes"]
        assert (created["max_attempts"], created["script"]) == ([None, "2"], [None, digest])
        assert told["UpdateQueue", "queue:q"]["changes"] == {"visibility_timeout_ms": ["30000", "60000"]}
        assert told["DeleteQueue", "queue:q"]["count"] == 1
        before, after = told["SetConfig", "config:app.key"]["changes"]["value"]
        assert before != after
        assert (before.endswith(", 13 bytes"), after.endswith(", 19 bytes")) == (True, True)
        assert told["DeleteConfig", "config:app.key"]["changes"] == {"value": [after, None]}
        assert told["SetConfig", "throttle:aws"]["outcome"] == "INVALID_ARGUMENT"
        assert all(line["peer"].startswith("127.0.0.1") for line in told.values())
        assert lines_with({"-secret"}, server.log) == []
