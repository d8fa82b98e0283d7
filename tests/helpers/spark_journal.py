"""A journal written by hand, for tests of fairness on Spark."""

import pyarrow as pa
import pyarrow.parquet as pq

from fila.pipelines.fairness import history

S = 1_000_000_000
SCHEMA = pa.schema([(name, pa.int64() if kind == "bigint" else pa.string()) for name, kind in history.COLUMNS.items()])


class Story:
    """A journal as it might have been written."""

    def __init__(self):
        self.rows = []

    def tell(self, at_s, kind, message="", key="", queue="q", **more):
        row = {name: 0 if kind_of == "bigint" else "" for name, kind_of in history.COLUMNS.items()}
        row |= {"seq": len(self.rows) + 1, "at_ns": int(at_s * S), "kind": kind, "queue": queue, "message_id": message}
        row |= {"fairness_key": key, "weight": 1, "cost": 1, "enqueued_at_ns": 1} | more
        self.rows.append(row)

    def frame(self, spark):
        return spark.createDataFrame(pa.Table.from_pylist(self.rows, SCHEMA)).persist()

    def write(self, path):
        pq.write_table(pa.Table.from_pylist(self.rows, SCHEMA), path)
        return str(path)
