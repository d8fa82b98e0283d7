import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from fila.reconcile.store import StoreError, open_engine, upgrade
from fila.reconcile.store.tables import Base


def test_from_nothing_to_what_the_program_expects(empty_url):
    engine = open_engine(empty_url)
    assert upgrade(engine) == "0002"
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    engine.dispose()


def test_a_second_time_changes_nothing(url):
    engine = open_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("INSERT INTO affiliates VALUES ('ada', 7, 0, 0)"))
    upgrade(engine)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT trust_total_bp FROM affiliates")) == 7
    engine.dispose()


def test_many_who_start_at_once_do_not_get_in_each_others_way(empty_url):
    def start(_):
        engine = open_engine(empty_url)
        version = upgrade(engine)
        engine.dispose()
        return version

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(start, range(4))) == {"0002"}


def test_a_new_file_that_somebody_is_about_to_write_is_waited_for(tmp_path):
    """SQLite's own timeout does not hold while a file gets its write-ahead log: it says "locked" at once."""
    other = sqlite3.connect(tmp_path / "reconcile.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    engine = open_engine(f"sqlite:///{tmp_path}/reconcile.db")
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(upgrade, engine)
        with pytest.raises(TimeoutError):
            starting.result(timeout=0.2)
        other.execute("COMMIT")
        assert starting.result(timeout=60) == "0002"
    engine.dispose()
    other.close()


def test_a_commit_is_on_the_disk_when_it_returns(tmp_path):
    """With less than FULL (2), SQLite's write-ahead log may lose the last commits to a power cut."""
    engine = open_engine(f"sqlite:///{tmp_path}/reconcile.db")
    with engine.connect() as connection:
        assert connection.scalar(text("PRAGMA synchronous")) == 2
    engine.dispose()


def test_a_step_that_fails_leaves_no_half_of_it(empty_url):
    engine = open_engine(empty_url)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("CREATE TABLE snapshots (mine INTEGER)"))
    with pytest.raises(StoreError, match="snapshots"):
        upgrade(engine)
    assert inspect(engine).get_table_names() == ["snapshots"]
    engine.dispose()


def test_a_database_of_a_later_version_is_refused(url):
    engine = open_engine(url)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer than this program supports"):
        upgrade(engine)
    engine.dispose()


@pytest.mark.parametrize(
    "url, complaint",
    [
        ("nonsense", "not a database URL"),
        ("mysql://x/y", "not supported"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
    ],
)
def test_a_url_that_cannot_work_is_refused_in_words(url, complaint):
    with pytest.raises(StoreError, match=complaint):
        open_engine(url)


@pytest.mark.parametrize("url", ["fila:hunter2@127.0.0.1:1/none", "fila@127.0.0.1:1/none?password=hunter2"])
def test_an_error_never_shows_the_password(url):
    engine = open_engine(f"postgresql://{url}")
    with pytest.raises(StoreError) as failed:
        upgrade(engine)
    assert "hunter2" not in str(failed.value)
    assert "127.0.0.1" in str(failed.value)
