"""Pipelines on Spark, through PySpark. Needs the extra `fila[spark]` and Java 17 or newer.

Rules of this package:
- Logic is `DataFrame -> DataFrame` in native columns: no row passes through Python on its way.
- Nothing here assumes one machine: files are listed, written and renamed through Hadoop's file systems.
- Nothing outside of it imports pyspark. This module imports nothing, so asking for `fila.spark.java` costs nothing.
"""
