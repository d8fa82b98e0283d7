"""Where Spark finds the format "fila" by itself: it looks for `DefaultSource` in modules named `pyspark_*`."""

from fila.spark.connector.datasource import FilaDataSource as DefaultSource

__all__ = ["DefaultSource"]
