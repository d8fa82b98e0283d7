"""Every database, so that one suite holds for all of them."""

import pytest
from sqlalchemy import text

from fila.reconcile.domain.settings import DEFAULTS
from fila.reconcile.store import Store, open_engine, upgrade
from tests.helpers.postgres import postgres


@pytest.fixture(scope="session")
def postgres_url():
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request, tmp_path):
    """A database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/reconcile.db"
    url = request.getfixturevalue("postgres_url")
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return url


@pytest.fixture
def url(empty_url):
    """A database that is ready for use."""
    engine = open_engine(empty_url)
    upgrade(engine)
    engine.dispose()
    return empty_url


@pytest.fixture
def store(url):
    opened = Store(open_engine(url), DEFAULTS, requeue_after_ms=60_000)
    yield opened
    opened.close()
