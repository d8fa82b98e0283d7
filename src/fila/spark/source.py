"""The format "fila". Spark finds it by itself, see `pyspark_fila`."""

from dataclasses import replace

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from fila.spark import options as given
from fila.spark.batch_readers import JournalReader, QueueReader
from fila.spark.errors import OptionError
from fila.spark.journal_stream import JournalStreamReader
from fila.spark.rows import JOURNAL_COLUMNS, QUEUE_COLUMNS, check_schema, journal_schema, queue_schema
from fila.spark.sink import BatchWriter, StreamWriter, check_rows
from fila.spark.stream_reader import QueueStreamReader, RefusingReader


class FilaDataSource(DataSource):
    """Queues and the journal of a Fila broker.

        spark.readStream.format("fila").option("queue", "orders").option("group", "billing").load()
        spark.readStream.format("fila").option("journal", "true").load()
        spark.read.format("fila").option("queue", "orders").load()
        spark.read.format("fila").option("journal", "true").load()
        df.write.format("fila").mode("append").option("queue", "invoices").save()
        df.writeStream.format("fila").option("queue", "invoices").option("checkpointLocation", ...).start()

    docs/spark-connector.md has all options with their defaults, and the columns.
    """

    @classmethod
    def name(cls) -> str:
        return "fila"

    def schema(self) -> StructType:
        """Without a schema of the user's: all columns, or those that the option `columns` names."""
        if given.is_journal(self.options):
            return journal_schema(given.columns(self.options, JOURNAL_COLUMNS))
        return queue_schema(given.columns(self.options, QUEUE_COLUMNS))

    def reader(self, schema: StructType) -> DataSourceReader:
        if given.is_journal(self.options):
            columns = check_schema(schema, journal_schema(JOURNAL_COLUMNS))
            return JournalReader(replace(given.journal_read(self.options, JOURNAL_COLUMNS), columns=columns))
        columns = check_schema(schema, queue_schema(QUEUE_COLUMNS))
        return QueueReader(replace(given.queue_read(self.options, QUEUE_COLUMNS), columns=columns))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        try:
            if given.is_journal(self.options):
                columns = check_schema(schema, journal_schema(JOURNAL_COLUMNS))
                journal = given.journal_stream_read(self.options, JOURNAL_COLUMNS)
                return JournalStreamReader(replace(journal, columns=columns))
            columns = check_schema(schema, queue_schema(QUEUE_COLUMNS))
            return QueueStreamReader(replace(given.stream_read(self.options, QUEUE_COLUMNS), columns=columns))
        except OptionError as error:
            return RefusingReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchWriter(self._write(schema, overwrite, stream=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return StreamWriter(self._write(schema, overwrite, stream=True))

    def _write(self, schema: StructType, overwrite: bool, *, stream: bool) -> given.Write:
        if overwrite:
            raise OptionError('a queue can only be added to: use mode("append"), outputMode("append")')
        options = given.write(self.options, stream=stream)
        check_rows(schema, options)
        return options
