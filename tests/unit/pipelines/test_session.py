"""A session that no pipeline can use is refused before Spark starts, in plain words."""

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.errors import PipelineError
from fila.pipelines.files import Files
from fila.pipelines.session import open_session
from fila.spark.errors import SparkMissing

ADDRESS = "sc://host:15002/;token=secret"


@pytest.mark.parametrize(
    "master, environ",
    [
        (ADDRESS, {}),
        (None, {"SPARK_REMOTE": ADDRESS}),
        (None, {"SPARK_CONNECT_MODE_ENABLED": ""}),
        ("local[2]", {"SPARK_API_MODE": "connect"}),
    ],
)
def test_spark_connect_is_refused_without_telling_its_address(monkeypatch, master, environ):
    """The address of a server may have a token."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SparkMissing, match=r"asks for Spark Connect.*spark-submit") as refused:
        open_session("test", master)
    assert "secret" not in str(refused.value)


def test_a_session_without_a_driver_here_is_refused():
    """As one of Spark Connect is, which a program may have opened itself."""
    with pytest.raises(PipelineError, match="session of Spark Connect"):
        Files(object())
