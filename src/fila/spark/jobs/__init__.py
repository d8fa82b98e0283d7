"""Pipelines as programs: `spark-submit .../fila/spark/jobs/reconcile.py`, `python -m fila.spark.jobs.reconcile`.

Arguments and output are those of `fila pipeline`; master and settings are those of `spark-submit` where it is used.
"""
