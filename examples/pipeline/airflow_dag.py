"""A DAG for Airflow 3: one run a day, and maintenance on Sundays.

`fila pipeline daily` may be repeated, so retries and backfills are safe. Exit code 4 says that the run is written and
that a check of its data failed: a repetition answers the same, until the data or the limits are others.
"""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

LAKE = "s3a://analytics/fila"
INPUT = "--reports 's3a://inbox/reports/{date}/' --metrics 's3a://inbox/metrics/{date}/'"

with DAG(
    "fila_reconciliation",
    schedule="30 1 * * *",
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 # in Airflow's own time zone, UTC by default
    catchup=True,
    max_active_runs=1,  # days build on each other
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
):
    daily = BashOperator(
        task_id="daily",
        bash_command=f"fila pipeline daily --date {{{{ ds }}}} {INPUT} --out {LAKE} --max-refused 2% --max-age 36h",
    )
    failed_checks = BashOperator(
        task_id="failed_checks",
        bash_command=f"fila pipeline checks --out {LAKE} --runs 1 --failed",
        trigger_rule="one_failed",  # prints what failed where whoever is alerted looks for it
    )
    maintain = BashOperator(
        task_id="maintain",
        bash_command=f"[ $(date -d {{{{ ds }}}} +%u) -ne 7 ] || fila pipeline maintain --out {LAKE}",
    )
    daily >> [maintain, failed_checks]
