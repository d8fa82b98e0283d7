"""What the format "fila" is where something that it needs is missing.

Spark imports every module named `pyspark_*` when it looks for any format, and one that cannot be imported would break
them all. So this stands in, and says what is missing to whoever asks for "fila".
"""

from pyspark.sql.datasource import DataSource

from fila.spark.errors import SparkMissing


class MissingSource(DataSource):
    """Refuses every use."""

    def __init__(self, options: dict[str, str]) -> None:  # noqa: ARG002 - Spark's signature
        try:
            from fila.spark import source  # noqa: F401
        except ImportError as error:
            raise SparkMissing(
                f'the format "fila" needs PySpark 4.2 or newer and pyarrow for the Python that Spark runs: {error}. '
                "pip install 'fila[spark]'"
            ) from error

    @classmethod
    def name(cls) -> str:
        return "fila"
