"""Entry points for spark-submit: `spark-submit .../fila/pipelines/submit/reconcile.py --reports ...`.

`python -m fila.pipelines.submit.reconcile` runs the same. Arguments and output are those of `fila pipeline`. Under
spark-submit its master and settings count.
"""
