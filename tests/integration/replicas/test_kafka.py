"""What a log on Kafka refuses."""

import asyncio
import secrets
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from fila.replicas.address import BadAddress
from fila.replicas.log import Entry, LogUnavailable, Unfit
from fila.replicas.opening import open_log
from tests.support.certificates import Authority
from tests.support.engines import KAFKA_PASSWORD, KAFKA_USER, kafka_brokers

KEPT = {"retention.ms": "-1", "retention.bytes": "-1"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def node(tmp_path_factory, authority):
    pair, both = authority.server(), tmp_path_factory.mktemp("keystore") / "server.pem"
    both.write_text(Path(pair.key).read_text() + Path(pair.cert).read_text())
    with kafka_brokers(tmp_path_factory.mktemp("kafka"), 1, secure=str(both)) as [node]:
        yield node


def make(node, partitions=1, **config):
    name = f"topic_{secrets.token_hex(4)}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": node.addr})
    admin.create_topics([NewTopic(name, partitions, 1, config=KEPT | settings)])[name].result(30)
    return name


@asynccontextmanager
async def opened(url):
    log = await open_log(url)
    try:
        yield log
    finally:
        await log.close()


async def test_a_single_broker_is_unfit(node):
    with pytest.raises(Unfit, match=r"eplication factor.*unsafe_one_copy=true"):
        await open_log(f"kafka://{node.addr}/single")


async def test_a_topic_with_one_copy_is_unfit(node):
    name = make(node)
    with pytest.raises(Unfit, match="it has 1 copies and not 3"):
        await open_log(f"kafka://{node.addr}/{name}")
    async with opened(f"kafka://{node.addr}/{name}?unsafe_one_copy=true") as log:
        assert await log.append(b"x", -1) == 0


@pytest.mark.parametrize(
    "settings, text",
    [
        ({"partitions": 2}, "it has 2 partitions and not 1"),
        ({"retention_ms": "1000000"}, "retention.ms is 1000000 and not -1"),
        ({"retention_bytes": "1000000"}, "retention.bytes is 1000000 and not -1"),
        ({"cleanup_policy": "compact"}, "cleanup.policy is compact and not delete"),
        ({"unclean_leader_election_enable": "true"}, "unclean.leader.election.enable is true and not false"),
    ],
)
async def test_a_topic_that_would_lose_entries_is_unfit(node, settings, text):
    with pytest.raises(Unfit, match=text):
        await open_log(f"kafka://{node.addr}/{make(node, **settings)}?unsafe_one_copy=true")


async def test_the_limit_of_the_topic_is_the_limit_of_an_entry(node):
    name = make(node, max_message_bytes="50000")
    async with opened(f"kafka://{node.addr}/{name}?unsafe_one_copy=true") as log:
        assert 49_000 < log.max_entry_bytes < 50_000
        assert await log.append(bytes(log.max_entry_bytes), -1) == 0


@pytest.mark.parametrize(
    "url, text",
    [
        ("kafka://fila@127.0.0.1:1/log", "needs the option sasl"),
        ("kafka://127.0.0.1:1/log?sasl=SCRAM-SHA-512", "needs the option sasl"),
        ("kafka://fila@127.0.0.1:1/log?sasl=GSSAPI", "sasl of the log is 'GSSAPI': it may be PLAIN, SCRAM"),
        ("kafka://fila@127.0.0.1:1/log?sasl=PLAIN", "shows the password: say tls=true"),
    ],
)
async def test_a_user_needs_a_mechanism_that_hides_the_password(url, text):
    with pytest.raises(BadAddress, match=text):
        await open_log(url)


async def test_a_user_over_tls(node, authority, monkeypatch):
    url = f"kafka://{KAFKA_USER}@{node.secure_addr}/secure?unsafe_one_copy=true&sasl=SCRAM-SHA-512&tls=true&tls_ca="
    monkeypatch.setenv("FILA_LOG_PASSWORD", KAFKA_PASSWORD)
    async with opened(url + authority.ca) as log:
        assert await log.append(b"x", -1) == 0
        async with aclosing(log.read(0)) as batches:
            assert await anext(batches) == [Entry(0, b"x")]


async def test_a_wrong_password_is_unfit_and_not_repeated(node, authority, monkeypatch, capfd):
    url = f"kafka://{KAFKA_USER}@{node.secure_addr}/secure?unsafe_one_copy=true&sasl=SCRAM-SHA-512&tls=true&tls_ca="
    monkeypatch.setenv("FILA_LOG_PASSWORD", "wrongpassword")
    with pytest.raises(Unfit, match="refuses the connection") as error:
        await open_log(url + authority.ca)
    assert "wrongpassword" not in str(error.value)
    assert capfd.readouterr() == ("", ""), "librdkafka writes to the terminal"


async def test_a_certificate_of_another_authority_is_not_believed(node, tmp_path, monkeypatch):
    monkeypatch.setenv("FILA_LOG_PASSWORD", KAFKA_PASSWORD)
    other = Authority(tmp_path, "other").ca
    options = f"unsafe_one_copy=true&append_timeout_ms=3000&sasl=SCRAM-SHA-512&tls=true&tls_ca={other}"
    with pytest.raises(LogUnavailable, match="certificate"):
        await open_log(f"kafka://{KAFKA_USER}@{node.secure_addr}/secure?{options}")


async def test_members_that_open_a_new_log_at_once_share_it(node):
    url = f"kafka://{node.addr}/together_{secrets.token_hex(4)}?unsafe_one_copy=true"
    logs = await asyncio.gather(*(open_log(url) for _ in range(3)))
    try:
        positions = await asyncio.gather(*(log.append(b"x", -1) for log in logs))
        assert sorted(positions) == [0, 1, 2]
    finally:
        await asyncio.gather(*(log.close() for log in logs))
