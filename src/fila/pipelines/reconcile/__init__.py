"""Reconciliation of affiliate reports on Spark, by the rules of `fila.reconcile.domain`."""
