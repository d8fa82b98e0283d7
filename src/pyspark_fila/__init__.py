"""Where Spark finds the format "fila" by itself: it looks for `DefaultSource` in modules named `pyspark_*`."""

from fila.spark.session import require_pyspark

require_pyspark()
try:
    from fila.spark.source import FilaDataSource as DefaultSource
except ImportError:
    from fila.spark.missing import MissingSource as DefaultSource  # type: ignore[assignment]

__all__ = ["DefaultSource"]
