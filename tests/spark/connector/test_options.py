"""Options of the connector, without Spark."""

import pickle

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import IntegerType, MapType, StringType, StructField, StructType

from fila import TLS
from fila.spark import options
from fila.spark.errors import OptionError
from fila.spark.rows import QUEUE_COLUMNS, queue_schema
from fila.spark.source import FilaDataSource
from fila.spark.stream_reader import ClaimSlice, QueueStreamReader


def stream(**given):
    return options.stream_read(CaseInsensitiveDict({"queue": "q", "group": "g"} | given), QUEUE_COLUMNS)


def test_names_know_no_case_and_times_have_units():
    read = stream(MAXMESSAGESPERTRIGGER="7", Lease="2m", pollwait="0ms", checkpointLocation="/x")
    assert (read.trigger.most, read.lease_ms, read.poll_ms, read.fail_on_data_loss) == (7, 120_000, 0, True)


@pytest.mark.parametrize(
    "given",
    [
        {"lease": "30"},
        {"lease": "0s"},
        {"lease": "-1s"},
        {"lease": "9999h"},
        {"maxMessagesPerTrigger": "0"},
        {"maxMessagesPerTrigger": "١"},  # noqa: RUF001 - a digit, but none of ours
        {"partitions": "1e3"},
        {"failOnDataLoss": "perhaps"},
        {"columns": "payload,payload"},
        {"columns": ""},
        {"group": " "},
        {"minMessagesPerTrigger": "60000"},
        {"maxTriggerDelay": "0"},
        {"surprise": "1"},
        {"pollWait": "1s", "retryTimeout": "500ms"},
    ],
)
def test_what_makes_no_sense_is_refused(given):
    with pytest.raises(OptionError, match=next(iter(given))):
        stream(**given)


def test_columns_may_be_chosen_and_ordered():
    assert stream(columns=" payload , seq ").columns == ("payload", "seq")


def test_schemas_have_all_columns():
    assert queue_schema(QUEUE_COLUMNS).names == list(QUEUE_COLUMNS)


def test_tls():
    assert stream().broker.tls is None
    assert stream(tls="true").broker.tls == TLS()
    given = {"tlsCa": "a", "tlsCert": "c", "tlsKey": "k", "tlsServerName": "n"}
    assert stream(**given).broker.tls == TLS("a", "c", "k", "n")


def test_a_key_is_named_by_its_file_and_never_an_option(tmp_path):
    """Spark shows options in plans and in its pages."""
    assert stream(apiKeyFile="/run/key").broker.key_file == "/run/key"
    with pytest.raises(OptionError, match="unknown option apikey"):
        stream(apiKey="secret")


def test_what_goes_to_executors_can_be_pickled():
    reader, part = pickle.loads(pickle.dumps((QueueStreamReader(stream()), ClaimSlice(3, 0, 10))))
    assert part == ClaimSlice(3, 0, 10)
    assert reader._options == stream()


@pytest.mark.parametrize(
    "given, said",
    [
        ({}, "option 'queue' is needed"),
        ({"queue": "q", "tlsCert": "c"}, "option 'tlsCert' needs 'tlsKey'"),
        ({"queue": "q", "tlsKey": "k"}, "option 'tlsKey' needs 'tlsCert'"),
        ({"queue": "q", "tls": "false", "tlsCa": "a"}, "option 'tls' is false"),
        ({"queue": "q", "grup": "g"}, "unknown option grup"),
        ({"queue": "q", "partitions": "many"}, "expected a whole number from 1"),
        ({"queue": "q", "startSeq": "5", "endSeq": "4"}, "before 'startSeq'"),
        ({"queue": "q", "journal": "yes"}, "option journal = 'yes': expected true or false"),
        ({"journal": "true", "includeLeased": "true"}, "unknown option includeleased"),
    ],
)
def test_what_cannot_be_read_is_named_before_anything_runs(given, said):
    with pytest.raises(OptionError, match=said):
        source = FilaDataSource(CaseInsensitiveDict(given))
        source.reader(source.schema())


def test_a_stream_needs_a_group():
    source = FilaDataSource(CaseInsensitiveDict({"queue": "q"}))
    with pytest.raises(OptionError, match="option 'group' is needed"):
        source.streamReader(source.schema()).initialOffset()


TEXT, NUMBER = StringType(), IntegerType()


def schema_of(columns):
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    "columns, given, said",
    [
        ({"payload": TEXT}, {}, "option 'queue' is needed"),
        ({"body": TEXT}, {"queue": "q"}, "'body' is none of a message's"),
        ({"priority": NUMBER}, {"queue": "q"}, "need a column 'payload'"),
        ({"payload": NUMBER}, {"queue": "q"}, "'payload' is int, expected binary or string"),
        ({"payload": TEXT, "headers": MapType(TEXT, NUMBER)}, {"queue": "q"}, "expected map<string,string>"),
        ({"payload": TEXT}, {"queue": "q", "runId": "1"}, "'runId' needs 'producer'"),
        ({"payload": TEXT}, {"queue": "q", "mode": "dedup"}, "needs a column 'dedup_key'"),
        ({"payload": TEXT}, {"queue": "q", "mode": "best"}, 'expected one of "dedup", "txn"'),
        ({"payload": TEXT}, {"queue": "q", "group": "g"}, "unknown option group"),
    ],
)
def test_what_cannot_be_written_is_named_before_anything_runs(columns, given, said):
    source = FilaDataSource(CaseInsensitiveDict(given))
    with pytest.raises(OptionError, match=said):
        source.writer(schema_of(columns), False)


def test_a_queue_is_never_overwritten():
    with pytest.raises(OptionError, match="append"):
        FilaDataSource(CaseInsensitiveDict({"queue": "q"})).writer(schema_of({"payload": TEXT}), True)
