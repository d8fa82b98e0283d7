"""A fair share of the event loop: what is more than a turn waits, in turn with others, and nothing of it is lost."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from fila.wire import frames
from fila.wire.time_slice import RoundRobin
from tests.support.wire import Server, data, greeted, message, open_stream


def test_a_connection_does_a_turn_and_goes_on_where_it_stopped():
    server = greeted()
    server.connection.reader.max_work_units = 10
    server.hear(b"".join(frames.window_update(0, 1) for _ in range(25)))
    assert server.connection.reader.has_backlog
    turns = 1
    while server.connection.reader.has_backlog:
        server.connection.reader.work_units = 0
        server.hear(b"")
        turns += 1
    assert turns == 3
    assert server.connection.sender.window == frames.DEFAULT_WINDOW + 25


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 20), st.integers(1, 50))
def test_nothing_is_lost_however_short_the_turns_are(payloads, most_units, piece):
    server = Server()
    said = frames.PREFACE + frames.settings({}) + open_stream(1)
    said += b"".join(data(1, message(payload)) for payload in payloads)
    server.connection.reader.max_work_units = most_units
    for at in range(0, len(said), piece):
        server.hear(said[at : at + piece])
        while server.connection.reader.has_backlog:
            server.connection.reader.work_units = 0
            server.hear(b"")
        server.connection.reader.work_units = 0
    assert list(server.accepted[0].messages) == payloads
    assert server.verdict is None


def test_connections_beyond_their_slice_take_turns_and_others_come_in_between():
    async def run():
        slices, order = RoundRobin(asyncio.get_running_loop()), []
        left = {"a": 3, "b": 2}

        def run(name):
            def go_on():
                order.append(name)
                left[name] -= 1
                return left[name] > 0

            return go_on

        slices.add(run("a"))
        slices.add(run("b"))
        while any(left.values()):
            await asyncio.sleep(0)
            order.append("-")
        return "".join(order)

    assert asyncio.run(run()).replace("-", "") == "ababa"
    assert "-" in asyncio.run(run()).strip("-")
