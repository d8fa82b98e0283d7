"""Pipelines on Spark: reconciliation of reports (`reconcile`) and fairness of a broker (`fairness`), with their pages.

They are applications on the data source `fila.spark`. Needs the extra `fila[spark]` and Java 17 or newer.

    reconcile/   reports against metrics, from files (`bulk`) or from a queue (`stream`)
    fairness/    shares, waits and the proof of conservation, from the journal
    pages/       the HTML page of each
    submit/      entry points for spark-submit
    lake/        the tables of a reconciliation, in Delta Lake, and the ledger of its runs
    session.py   the Spark session, with Delta Lake
    runs.py      the runs of fairness and what-if: a folder for each, and the table of those that count
    files.py     Hadoop's file systems

Rules of this package:
- Logic is `DataFrame -> DataFrame` in native columns: no row passes through Python on its way.
- Nothing here assumes one machine: files are listed and written through Hadoop's file systems.
- Programs outside import it where they run a pipeline, since it imports pyspark.
"""
