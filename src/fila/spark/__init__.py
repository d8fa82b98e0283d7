"""The Spark data source "fila": queues and the journal of a broker as tables and streams of any Spark program.

Needs the extra `fila[spark]` and Java 17 or newer. What is built on it for reconciliation and fairness is in
`fila.pipelines`; nothing here knows of that.

Rules of this package:
- What runs in executors (`read`, `write`) carries options only. Each process opens its own connection.
- Planning a batch read has no effect on the broker: Spark plans again for every action and every explain.
- Options are checked where the query is planned, before anything runs.
- This module imports nothing, so `fila.spark.java` can be imported without pyspark.
"""
