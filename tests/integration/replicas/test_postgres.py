"""What PostgreSQL does when it is not what it should be, and what a log on it makes of that."""

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress

import pytest

from fila.replicas.log import InDoubt, LogUnavailable, Unfit
from fila.replicas.opening import open_log
from tests.helpers.postgres import replicated_postgres, single_postgres
from tests.support.certificates import Authority

WAIT_S = 60


@pytest.fixture(scope="module")
def servers():
    with replicated_postgres() as pair:
        yield pair


@pytest.fixture
def primary(servers):
    primary, standby = servers
    standby.resume()
    primary.set(synchronous_standby_names="second")
    yield primary
    standby.resume()


def url(*servers, user="fila", **options):
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgres://{user}@{hosts}/postgres?" + "&".join(f"{name}={value}" for name, value in options.items())


@asynccontextmanager
async def opened(*servers, **options):
    log = await open_log(url(*servers, **options))
    try:
        yield log
    finally:
        await log.close()


async def read_one(log, start):
    async with aclosing(log.read(start)) as batches, asyncio.timeout(WAIT_S):
        return (await anext(batches))[0]


def set_and_wait(server, **settings):
    server.set(**settings)
    for name, value in settings.items():
        while server.sql(f"SHOW {name}") != value:
            pass


async def test_a_primary_without_a_synchronous_standby_is_unfit(primary):
    set_and_wait(primary, synchronous_standby_names="")
    with pytest.raises(Unfit, match="synchronous_standby_names is ''"):
        await open_log(url(primary, table="alone"))
    assert not primary.sql("SELECT to_regclass('alone')"), "a table was made although the server is refused"
    async with opened(primary, table="alone", unsafe_one_copy="true") as log:
        assert await log.append(b"may be lost", -1) == 0


async def test_a_server_that_does_not_sync_is_unfit(primary):
    set_and_wait(primary, fsync="off")
    try:
        with pytest.raises(Unfit, match="fsync is 'off'"):
            await open_log(url(primary))
    finally:
        set_and_wait(primary, fsync="on")


async def test_what_a_role_has_for_commits_does_not_count(primary):
    primary.sql("ALTER ROLE fila SET synchronous_commit = off")
    primary.sql("ALTER ROLE fila SET statement_timeout = 1")
    try:
        async with opened(primary, table="role") as log:
            assert await log.append(bytes(1 << 20), -1) == 0
    finally:
        primary.sql("ALTER ROLE fila RESET ALL")


async def test_a_standby_that_is_taken_away_stops_appends(primary):
    async with opened(primary, table="taken") as log:
        assert await log.append(b"safe", -1) == 0
        set_and_wait(primary, synchronous_standby_names="")
        with pytest.raises(LogUnavailable, match="synchronous_standby_names is ''"):
            await log.append(b"not safe", 0)
        with pytest.raises(LogUnavailable, match="synchronous standby"):
            await log.end()
        set_and_wait(primary, synchronous_standby_names="second")
        assert await log.append(b"safe again", 0) == 1


async def test_a_server_that_takes_no_writes_any_more_is_left(primary):
    of_it = "application_name = 'fila' AND query LIKE '%INSERT INTO \"readonly\"%'"
    async with opened(primary, table="readonly") as log:
        await log.append(b"before", -1)
        primary.set(default_transaction_read_only="on")
        after = 0
        try:
            with pytest.raises(LogUnavailable, match="read-only"):
                while True:  # until the server has heard of it
                    after = await log.append(b"accepted", after)
            async with asyncio.timeout(WAIT_S):
                while primary.sql(f"SELECT count(*) FROM pg_stat_activity WHERE {of_it}") != "0":
                    await asyncio.sleep(0.05)
            with pytest.raises(LogUnavailable, match="no PostgreSQL server takes writes"):
                await log.append(b"refused", after)
        finally:
            primary.set(default_transaction_read_only="off")
        async with asyncio.timeout(WAIT_S):
            while True:
                with suppress(LogUnavailable):
                    assert await log.append(b"after", after) == after + 1
                    break


async def test_a_commit_whose_wait_is_cancelled_is_in_doubt_and_is_read_when_the_standby_has_it(servers, primary):
    """The server answers such a commit as done."""
    _, standby = servers
    async with opened(primary, table="cancelled") as log:
        await log.append(b"before", -1)
        standby.pause()
        appending = asyncio.create_task(log.append(b"on the primary alone", 0))
        while not primary.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"):
            await asyncio.sleep(0.02)
        primary.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        with pytest.raises(InDoubt, match="warned"):
            await appending
        assert primary.sql('SELECT count(*) FROM "cancelled"') == "2", "the row is visible, or this shows nothing"
        reading = asyncio.create_task(read_one(log, 1))
        await asyncio.sleep(1)
        assert not reading.done()
        standby.resume()
        assert (await reading).body == b"on the primary alone"


async def test_an_append_that_waits_for_the_standby_is_in_doubt_and_is_not_cancelled(servers, primary):
    _, standby = servers
    async with opened(primary, table="late", append_timeout_ms=500) as log:
        await log.append(b"before", -1)
        standby.pause()
        with pytest.raises(InDoubt, match=r"0\.5 s"):
            await log.append(b"late", 0)
        standby.resume()
        assert (await read_one(log, 1)).body == b"late"
        assert await log.append(b"after", 1) == 2


async def test_server_processes_do_not_pile_up_while_the_standby_is_away(servers, primary):
    """Each dropped connection leaves one that waits for the standby, unless it waits for its turn before."""
    _, standby = servers
    async with opened(primary, table="pile", append_timeout_ms=300) as log:
        await log.append(b"before", -1)
        standby.pause()
        for _ in range(4):
            with pytest.raises(InDoubt):
                await log.append(b"late", 0)
        for _ in range(4):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await log.end()
        counting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fila' AND state = 'active'"
        async with asyncio.timeout(WAIT_S):
            while int(primary.sql(counting)) > 2:
                await asyncio.sleep(0.1)


async def test_a_wrong_role_is_told_at_once(primary):
    with pytest.raises(Unfit, match="nobody"):
        await open_log(url(primary).replace("fila@", "nobody@"))


async def test_a_host_that_refuses_the_user_is_passed_over(primary):
    with single_postgres() as other:
        primary.sql("CREATE ROLE guest LOGIN; GRANT CREATE ON SCHEMA public TO guest")
        async with opened(other, primary, user="guest", table="passed_over") as log:
            assert await log.append(b"x", -1) == 0


async def test_a_user_that_is_refused_later_is_waited_for(primary):
    primary.sql("CREATE ROLE late LOGIN; GRANT CREATE ON SCHEMA public TO late")
    async with opened(primary, user="late", table="refused_later") as log, asyncio.timeout(WAIT_S):
        assert await log.append(b"x", -1) == 0
        primary.sql("ALTER ROLE late NOLOGIN")
        primary.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'late'")
        refusal = ""
        while "not permitted to log in" not in refusal:
            with pytest.raises(LogUnavailable) as raised:
                await log.end()
            refusal = str(raised.value)
        primary.sql("ALTER ROLE late LOGIN")
        assert await log.end() == 1


@pytest.fixture(scope="module")
def guarded(servers, tmp_path_factory):
    """The authority that has signed the certificate of the primary, which knows the user "guarded"."""
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    servers[0].guard("guarded", "rightpassword", *authority.server())
    return authority


async def test_a_user_with_a_password_over_tls(primary, guarded, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("rightpassword\n")
    options = {"table": "guarded", "tls": "true", "tls_ca": guarded.ca, "password_file": secret}
    async with opened(primary, user="guarded", **options) as log:
        assert await log.append(b"x", -1) == 0
        assert (await read_one(log, 0)).body == b"x"


async def test_a_wrong_password_is_unfit_and_not_repeated(primary, guarded, monkeypatch):
    monkeypatch.setenv("FILA_LOG_PASSWORD", "wrongpassword")
    with pytest.raises(Unfit, match="password authentication failed") as error:
        await open_log(url(primary, user="guarded", tls="true", tls_ca=guarded.ca))
    assert "wrongpassword" not in str(error.value)


async def test_a_certificate_of_another_authority_is_not_believed(primary, guarded, tmp_path, monkeypatch):
    monkeypatch.setenv("FILA_LOG_PASSWORD", "rightpassword")
    with pytest.raises(LogUnavailable, match="certificate verify failed"):
        await open_log(url(primary, user="guarded", tls="true", tls_ca=Authority(tmp_path, "other").ca))
    await asyncio.sleep(0.1)  # a connection whose handshake failed is closed in one of the loop's next turns


async def test_failover_to_the_standby_loses_nothing_that_was_acknowledged():
    with replicated_postgres() as (first, second):
        async with opened(first, second, table="failover", append_timeout_ms=2000) as log:
            read = []

            async def follow():
                async for batch in log.read(0):
                    read.extend(batch)

            following = asyncio.create_task(follow())
            for number in range(50):
                await log.append(b"%d" % number, number - 1)
            first.stop()
            with pytest.raises((InDoubt, LogUnavailable)):
                await log.append(b"lost", 49)
            second.promote()
            with pytest.raises(LogUnavailable, match="synchronous_standby_names is ''"):
                await log.append(b"not safe", 49)
            with second.with_standby("third"):
                assert await log.append(b"50", 49) == 50
                assert await log.end() == 51
                async with asyncio.timeout(WAIT_S):
                    while len(read) < 51:
                        await asyncio.sleep(0.02)
            assert [int(entry.body) for entry in read] == list(range(51))
            await log.close()
            await following
