"""A DAG for Airflow 2.9 or newer: one run a day, then maintenance once a week.

`fila pipeline daily` may be repeated, so retries and backfills are safe. Exit code 3 says that the run is written and
that a check of its data failed: a repetition answers the same, until the data or the limits are others.
"""

from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.bash import BashOperator

LAKE = "s3a://analytics/fila"
DAILY = (
    "fila pipeline daily --date {{ ds }} --reports 's3a://inbox/reports/{date}/' --metrics 's3a://inbox/metrics/{date}/' "
    f"--out {LAKE} --max-refused 2% --max-age-hours 36 --json"
)
with DAG(
    "fila_reconciliation",
    schedule="30 1 * * *",
    start_date=datetime(2026, 1, 1),  # noqa: DTZ001 # of Airflow's own time zone, UTC by default
    catchup=True,
    max_active_runs=1,  # days build on each other
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
):
    daily = BashOperator(task_id="daily", bash_command=DAILY)
    gate = BashOperator(
        task_id="gate",
        bash_command=f"fila pipeline checks --out {LAKE} --runs 1 --failed",
        trigger_rule="one_failed",  # prints what failed, where the alert looks for it
        retries=0,
    )
    maintain = BashOperator(
        task_id="maintain",
        bash_command=f"[ $(date -d {{{{ ds }}}} +%u) -ne 7 ] || fila pipeline maintain --out {LAKE}",
    )
    daily >> [maintain, gate]
