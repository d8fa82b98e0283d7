"""The order of jobs, against a model that sorts."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.jobs import PriorityDelayQueue, QueueSettings, RedisQueue
from fila.testing import RedisProcess
from tests.helpers.clock import ManualClock

LABELS = {"high": 0, "normal": 5, "low": 10}

steps = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue"), st.sampled_from(sorted(LABELS)), st.sampled_from([0, 0, 1, 5, 60])),
        st.tuples(st.just("advance"), st.sampled_from([0, 1, 5, 60]), st.none()),
        st.tuples(st.just("take"), st.sampled_from(["ack", "retry", "defer", "leave"]), st.sampled_from([0, 1, 5])),
    ),
    max_size=60,
)

LEASE = 30.0


class Model:
    """Jobs as rows of a list: what the contract says, with no thought for speed."""

    def __init__(self):
        self.rows, self.claims, self.count = [], [], 0

    def enqueue(self, label, ready_at):
        self.count += 1
        self.rows.append({"n": self.count, "priority": LABELS[label], "ready_at": ready_at, "attempt": 1})

    def take(self, now):
        for claim in [claim for claim in self.claims if claim["end"] <= now]:
            self.claims.remove(claim)
            self.rows.append({**claim["row"], "attempt": claim["row"]["attempt"] + 1})
        ready = [row for row in self.rows if row["ready_at"] <= now]
        if not ready:
            return None
        row = min(ready, key=lambda row: (row["priority"], row["n"]))
        self.rows.remove(row)
        return row

    def settle(self, row, how, now, delay):
        if how == "leave":
            self.claims.append({"row": row, "end": now + LEASE})
        elif how != "ack":
            self.rows.append({**row, "ready_at": now + delay, "attempt": row["attempt"] + (how == "retry")})


def check(queue, clock, script):
    model = Model()
    for name, what, number in script:
        if name == "enqueue":
            queue.enqueue(model.count + 1, priority=what, delay_seconds=number)
            model.enqueue(what, clock() + number)
        elif name == "advance":
            clock.advance(what)
        else:
            expected, item = model.take(clock()), queue.dequeue(0)
            assert (item and (item.job, item.attempt)) == (expected and (expected["n"], expected["attempt"]))
            if item:
                model.settle(expected, what, clock(), number)
                if what == "ack":
                    queue.ack(item)
                elif what != "leave":
                    getattr(queue, what)(item, number)


@given(steps)
def test_the_memory_queue_hands_out_what_a_sorted_list_would(script):
    clock = ManualClock()
    check(PriorityDelayQueue(QueueSettings(lease_seconds=LEASE), clock=clock), clock, script)


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory):
    with RedisProcess(tmp_path_factory.mktemp("redis")) as process:
        yield process.url


@pytest.fixture(scope="module")
def redis_queue(redis_url):
    clock, name = ManualClock(), uuid.uuid4().hex
    made = RedisQueue(
        QueueSettings(
            lease_seconds=LEASE,
            use_redis=True,
            redis_url=redis_url,
            redis_ready_key=name,
            redis_scheduled_key=name + ":later",
        ),
        clock=clock,
    )
    yield made, clock
    made.close()


@given(steps)
@settings(max_examples=50)
def test_the_redis_queue_hands_out_what_a_sorted_list_would(redis_queue, script):
    queue, clock = redis_queue
    queue.purge()
    check(queue, clock, script)
