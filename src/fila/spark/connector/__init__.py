"""Queues and the journal as tables of Spark: what `read`, `readStream`, `write` and `writeStream` of "fila" do.

Rules of this package:
- What runs in executors (`read`, `write`) holds nothing but options: connections are made there, one for each process.
- Planning a batch read has no effect on the broker: Spark plans anew for every action and every explain.
- Options are checked where the query is planned, before anything runs.
"""
