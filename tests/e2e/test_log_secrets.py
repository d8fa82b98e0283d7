"""What users send is never in the log, at any level; what operators do is, by name."""

import hashlib
import json

import grpc
import pytest

from fila import Client, FilaError
from fila.testing import ServerProcess
from fila.v1 import service_pb2, service_pb2_grpc

SECRETS = (
    "payload-secret",
    "header-secret",
    "config-secret",
    "throttle-secret",
    "metadata-secret",
    "script-secret",
    "error-secret",
)


def use_everything(server, client):
    """Calls that carry a secret wherever users can put one, also such that fail."""
    client.set_config("app.key", "config-secret")
    client.set_config("app.key", "config-secret again")
    client.delete_config("app.key")
    with pytest.raises(FilaError):
        client.set_config("throttle.aws", "throttle-secret")
    client.create_queue("q", max_attempts=2, script='function on_enqueue(m) error("script-secret") end')
    client.update_queue("q", visibility_timeout_ms=60_000)
    for _ in range(5):
        client.enqueue("q", {"name": "header-secret"}, b"payload-secret")
    with pytest.raises(FilaError):
        client.enqueue("nowhere", {"name": "header-secret"}, b"payload-secret")
    for number, message in enumerate(client.consume("q")):
        message.nack("error-secret")
        if number == 3:
            break
    with grpc.insecure_channel(server.addr) as channel:
        request = service_pb2.EnqueueRequest(queue="q", payload=b"payload-secret")
        metadata = [("authorization", "metadata-secret"), ("x-key-bin", b"metadata-secret")]
        service_pb2_grpc.FilaServiceStub(channel).Enqueue(request, metadata=metadata, timeout=30)
        with pytest.raises(grpc.RpcError):
            channel.unary_unary("/fila.v1.FilaService/metadata-secret")(
                b"payload-secret", metadata=metadata, timeout=30
            )
        with pytest.raises(grpc.RpcError):
            channel.unary_unary("/fila.v1.FilaService/Enqueue")(b"payload-secret", metadata=metadata, timeout=30)
    client.delete_queue("q", force=True)


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_nothing_that_users_send_is_logged_at_any_level(tmp_path, level):
    config = f'[log]\nlevel = "{level}"\n[server]\nslow_turn_ms = 1\n'
    with ServerProcess(tmp_path, config=config) as server:
        with Client(server.addr, timeout=30) as client:
            use_everything(server, client)
        server.stop()
        assert [secret for secret in SECRETS if secret in server.log] == []
        lines = [json.loads(line) for line in server.log.splitlines()]
        assert {line["logger"].partition(".")[0] for line in lines if line["level"] in {"debug", "info"}} <= {"fila"}


def test_changes_of_queues_and_settings_are_logged_by_name(tmp_path):
    with ServerProcess(tmp_path) as server:
        with Client(server.addr, timeout=30) as client:
            use_everything(server, client)
        server.stop()
        lines = [json.loads(line) for line in server.log.splitlines()]
        told = {(line["action"], line["resource"]): line for line in lines if line["event"] == "audit"}
        script = 'function on_enqueue(m) error("script-secret") end'
        digest = f"sha256:{hashlib.sha256(script.encode()).hexdigest()}, {len(script)} bytes"
        created = told["CreateQueue", "queue:q"]["changes"]
        assert (created["max_attempts"], created["script"]) == ([None, "2"], [None, digest])
        assert told["UpdateQueue", "queue:q"]["changes"] == {"visibility_timeout_ms": ["30000", "60000"]}
        assert told["DeleteQueue", "queue:q"]["count"] == 6
        before, after = told["SetConfig", "config:app.key"]["changes"]["value"]
        assert before != after
        assert (before.endswith(", 13 bytes"), after.endswith(", 19 bytes")) == (True, True)
        assert told["DeleteConfig", "config:app.key"]["changes"] == {"value": [after, None]}
        assert told["SetConfig", "throttle:aws"]["outcome"] == "INVALID_ARGUMENT"
        assert all(line["peer"].startswith("127.0.0.1") for line in told.values())
