"""Settings of queues as the SDK takes them, on a real broker."""

import asyncio

import pytest

import fila
from fila import AsyncClient, Client, InvalidArgumentError, QueueAlreadyExistsError
from fila.testing import ServerProcess

PLACE = """local tenant = "tenant"
function on_enqueue(message)
  return { fairness_key = message.headers[tenant] }
end"""
RETRY = """local tenant = 3
function on_failure(message)
  if message.attempts >= tenant then return { action = "dlq" } end
  return { action = "retry", delay_ms = 7 }
end"""


@pytest.fixture(scope="module")
def server():
    with ServerProcess() as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    with Client(server.addr, timeout=30) as client:
        yield client


def test_hooks_of_two_files_decide_together_and_keep_their_local_names_apart(client):
    client.create_queue("two", on_enqueue=PLACE, on_failure=RETRY)
    [trial] = client.try_hook("two", headers={"tenant": "acme"}, attempts=2)
    assert trial.on_enqueue.fairness_key == "acme"
    assert (trial.on_failure.dead_letter, trial.on_failure.delay_ms) == (False, 7)
    [trial] = client.try_hook("two", headers={"tenant": "acme"}, attempts=3)
    assert trial.on_failure.dead_letter


@pytest.mark.parametrize(
    "wrong,where",
    [
        ({"on_enqueue": PLACE.replace("return", "return return")}, "on_enqueue:3"),
        ({"on_enqueue": PLACE.replace("return", "return return"), "on_failure": RETRY}, "on_enqueue:3"),
        ({"on_enqueue": PLACE, "on_failure": RETRY.replace("then", "than", 1)}, "on_failure:3"),
        ({"on_enqueue": PLACE, "on_failure": RETRY + '\nerror("at once")'}, "on_failure:6"),
        ({"on_failure": "function on_failure("}, "on_failure:1"),
    ],
)
def test_a_hook_that_cannot_be_used_is_named_with_the_line_of_its_file(client, wrong, where):
    with pytest.raises(InvalidArgumentError, match=where):
        client.create_queue("wrong", **wrong)


def test_one_of_two_hooks_is_not_changed_alone(client):
    """They are one script: the other would be gone."""
    client.create_queue("both", on_enqueue=PLACE, on_failure=RETRY)
    with pytest.raises(InvalidArgumentError, match="one script"):
        client.update_queue("both", on_failure=RETRY)
    client.update_queue("both", on_enqueue=PLACE, on_failure=RETRY.replace("delay_ms = 7", "delay_ms = 8"))
    [trial] = client.try_hook("both", headers={"tenant": "acme"})
    assert (trial.on_enqueue.fairness_key, trial.on_failure.delay_ms) == ("acme", 8)


def test_a_queue_is_ensured_any_number_of_times_and_stays_as_it_is(client):
    assert client.ensure_queue("once", quantum=3)
    assert not client.ensure_queue("once", quantum=4)
    assert client.queue_stats("once").config.quantum == 3
    with pytest.raises(QueueAlreadyExistsError):
        client.create_queue("once")


def test_a_queue_is_ensured_by_programs_that_await(server):
    async def ensured():
        async with AsyncClient(server.addr, timeout=30) as client:
            return [await client.ensure_queue("awaited") for _ in range(2)]

    assert asyncio.run(ensured()) == [True, False]


def test_a_limit_may_be_written_as_rate_and_burst(client):
    client.set_config("throttle.provider:aws", "10.0,100.0")
    assert client.get_config("throttle.provider:aws") == "10.0,100.0"
    client.create_queue("limited", throttle_headers=["provider"])
    client.enqueue("limited", {"provider": "aws"})
    [throttle] = client.queue_stats("limited").throttles
    assert (throttle.limit, throttle.tokens) == ("rate=10,burst=100", 100)


def test_the_package_says_what_it_has():
    assert fila.__version__.count(".") == 2
    assert {"Client", "AsyncClient", "FilaError", "__version__"} <= set(dir(fila))
    assert all(getattr(fila, name) is not None for name in dir(fila))


def test_a_value_of_another_type_is_named_and_never_a_bare_type_error(client):
    for call, name in (
        (lambda: client.set_config("key", 10), "value = 10"),
        (lambda: client.get_config(7), "key = 7"),
        (lambda: client.create_queue(7), "name = 7"),
        (lambda: client.queue_stats("once", -1), "max_keys = -1"),
        (lambda: client.explain("once", 7), "message_id = 7"),
        (lambda: client.purge(7), "queue = 7"),
        (lambda: list(client.read_queue("once", part=-1)), "part = -1"),
        (
            lambda: list(client.read_queue("once", max_mesages=2)),
            r"unknown option max_mesages: did you mean max_messages\?",
        ),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^{name}"):
            call()
