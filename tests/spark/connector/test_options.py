"""Options of the connector, without Spark."""

import pickle

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import CaseInsensitiveDict

from fila.spark.connector import options
from fila.spark.connector.claims import ClaimReader, ClaimSlice
from fila.spark.connector.options import OptionError
from fila.spark.connector.rows import QUEUE_COLUMNS, queue_schema


def stream(**given):
    return options.stream_read(CaseInsensitiveDict({"queue": "q", "group": "g"} | given), QUEUE_COLUMNS)


def test_names_know_no_case_and_times_have_units():
    read = stream(MAXMESSAGESPERTRIGGER="7", Lease="2m", pollwait="0ms", checkpointLocation="/x")
    assert (read.max_messages, read.lease_ms, read.poll_ms, read.fail_on_data_loss) == (7, 120_000, 0, True)


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
        {"journal": "true"},
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


def test_what_goes_to_executors_can_be_pickled():
    reader, part = pickle.loads(pickle.dumps((ClaimReader(stream()), ClaimSlice(3, 0, 10))))
    assert part == ClaimSlice(3, 0, 10)
    assert reader._options == stream()
