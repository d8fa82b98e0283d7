"""Whatever the data source does, it does over TLS with a client certificate and an API key, here and on executors."""

import pytest

pytest.importorskip("pyspark")

from fila import TLS, Client
from fila.testing import ServerProcess
from tests.support.certificates import Authority, grpc_credentials, tls_config

PATIENCE_S = 200


@pytest.fixture
def secured(tmp_path):
    """A broker that wants both, and the options to reach it."""
    authority = Authority(tmp_path)
    config = "[journal]\nenabled = true\n" + tls_config(authority.server(), authority.ca, "required")
    probe = grpc_credentials(authority, authority.client("probe"))
    with ServerProcess(config=config, credentials=probe) as server:
        pair = authority.client("billing")
        tls, addr = TLS(authority.ca, pair.cert, pair.key), f"localhost:{server.port}"
        with Client(addr, tls=tls, timeout=30) as client:
            secret = client.auth.create_key("billing", ["admin"]).token
        (tmp_path / "key").write_text(secret)
        given = {"addr": addr, "tlsCa": tls.ca, "tlsCert": pair.cert, "tlsKey": pair.key}
        with Client(addr, tls=tls, api_key=secret, timeout=30) as client:
            yield client, given | {"apiKeyFile": str(tmp_path / "key")}


def read(spark, options, **more):
    return spark.read.format("fila").options(**options, **more).load()


def test_queues_and_the_journal_are_written_read_and_followed(spark, secured, tmp_path):
    client, options = secured
    for name in ("orders", "invoices"):
        client.create_queue(name)
    rows = spark.range(40).selectExpr("CAST(id AS STRING) payload")
    rows.write.format("fila").mode("append").options(**options, queue="orders").save()
    assert read(spark, options, queue="orders").count() == 40
    assert read(spark, options, journal="true").where("kind = 'enqueued'").count() == 40

    for given, into in (({"queue": "orders", "group": "g"}, "invoices"), ({"journal": "true", "kind": "acked"}, None)):
        stream = spark.readStream.format("fila").options(**options, **given).load()
        writer = stream.select("payload").writeStream.format("fila").options(**options, queue=into) if into else None
        writer = writer or stream.writeStream.format("memory").queryName("acked_over_tls")
        writer = writer.option("checkpointLocation", str(tmp_path / f"checkpoint-{into}"))
        assert writer.trigger(availableNow=True).start().awaitTermination(PATIENCE_S)
    assert client.queue_stats("invoices").summary.depth == 40
    assert spark.table("acked_over_tls").count() == 40

    with pytest.raises(Exception, match="no rule knows the client certificate"):
        read(spark, {name: value for name, value in options.items() if name != "apiKeyFile"}, queue="orders").count()
