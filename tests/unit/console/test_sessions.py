"""Sessions and links are bounded, and shared by those who have the same key."""

import asyncio

import pytest

from fila.client import Identity, PermissionDeniedError
from fila.console import sessions as module
from fila.console.limits import MAX_FAILED_SIGN_INS, MAX_LINKS, MAX_SESSIONS
from fila.console.links import Links
from fila.console.sessions import Refused, Sessions


@pytest.fixture
def answers(monkeypatch):
    """What the broker says to a key: whether it accepts it. No connection is made."""
    accepted = {"asked": 0, "all": True}

    class Auth:
        async def who_am_i(self):
            accepted["asked"] += 1
            if not accepted["all"]:
                raise PermissionDeniedError("no")
            return Identity("ada", "id", (), (), "key", "id", None, ())

    class Client:
        def __init__(self, *_, **__):
            self.auth = Auth()

        async def close(self):
            accepted["closed"] = accepted.get("closed", 0) + 1

    monkeypatch.setattr("fila.console.links.AsyncClient", Client)
    return accepted


def test_the_session_that_was_not_used_for_the_longest_time_ends_first(answers):
    async def scenario():
        sessions = Sessions(Links("x:1"))
        first, _ = await sessions.begin("key")
        second, _ = await sessions.begin("key")
        for session in sessions._by_cookie.values():
            session.used_at -= 10
        assert sessions.find(first) is not None
        for _ in range(MAX_SESSIONS - 1):
            await sessions.begin("key")
        assert sessions.find(first) is not None
        assert sessions.find(second) is None
        assert len(sessions._by_cookie) == MAX_SESSIONS
        assert "closed" not in answers, "one link serves all sessions of a key"

    asyncio.run(scenario())


def test_the_last_session_of_a_key_closes_its_link(answers):
    async def scenario():
        sessions = Sessions(Links("x:1"))
        cookies = [(await sessions.begin("key"))[0] for _ in range(2)]
        await sessions.end(cookies[0])
        assert "closed" not in answers
        await sessions.end(cookies[1])
        assert answers["closed"] == 1

    asyncio.run(scenario())


def test_no_more_than_so_many_keys_are_signed_in(answers):
    async def scenario():
        sessions = Sessions(Links("x:1"))
        for number in range(MAX_LINKS):
            await sessions.begin(f"key-{number}")
        with pytest.raises(Refused, match="limit"):
            await sessions.begin("one-more")
        await sessions.begin("key-0")

    asyncio.run(scenario())


def test_failed_sign_ins_are_bounded_and_the_broker_is_not_asked_beyond(answers):
    answers["all"] = False

    async def scenario():
        sessions = Sessions(Links("x:1"))
        for _ in range(MAX_FAILED_SIGN_INS + 5):
            with pytest.raises(Refused):
                await sessions.begin("wrong")
        assert answers["asked"] == MAX_FAILED_SIGN_INS
        for _ in range(3):
            with pytest.raises(Refused):
                await sessions.begin(None)
        assert answers["asked"] == MAX_FAILED_SIGN_INS + 1, "without a key the broker is asked once a minute"

    asyncio.run(scenario())


def test_a_session_that_nobody_uses_ends(answers, monkeypatch):
    async def scenario():
        sessions = Sessions(Links("x:1"))
        cookie, session = await sessions.begin("key")
        session.used_at -= module.SESSION_IDLE_S + 1
        assert sessions.find(cookie) is None

    asyncio.run(scenario())
