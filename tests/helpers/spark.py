"""Settings of a Spark session for tests."""

QUICK = {
    "spark.default.parallelism": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""Spark plans and compiles a query over a few rows for seconds, then runs it at once. So no code is made for a query,
no plan is thought over again, no column remembers the line that made it, and Java compiles quickly rather than well:
that takes half the time off."""

COMPILED = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
"""Code is made for each query, as in use: for tests of what columns come to."""
