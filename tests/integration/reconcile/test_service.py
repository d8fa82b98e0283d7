"""What a process is made of, put together and taken apart."""

import gc
import time

import redis

from fila.reconcile.config import Config
from fila.reconcile.domain.models import Post, Reason
from fila.reconcile.service import Parts
from fila.testing import RedisProcess

LONG = 20.0


def test_what_is_closed_leaves_no_connection_behind(tmp_path):
    with RedisProcess(tmp_path) as server, redis.Redis.from_url(server.url) as own:
        tables = {"store": {"url": f"sqlite:///{tmp_path}/reconcile.db"}, "queue": {"url": server.url}}
        parts = Parts.open(Config.from_mapping(tables))
        assert parts.fetchers.fetch(Post("x", "p-1", "ada"), 0).failure is Reason.ABSENT
        assert own.exists("affiliate:breaker:x"), "the breaker was asked in Redis"
        gc.disable()  # a connection that nobody holds any more would be closed by chance
        try:
            parts.close()
            deadline = time.monotonic() + LONG
            while len(own.client_list()) > 1:
                assert time.monotonic() < deadline, own.client_list()
                time.sleep(0.01)
        finally:
            gc.enable()
