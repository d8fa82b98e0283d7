"""The API over a real store and a real queue."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from fila.jobs.errors import QueueUnavailable
from fila.jobs.memory import PriorityDelayQueue
from fila.jobs.settings import QueueSettings
from fila.reconcile.api import ApiSettings
from fila.reconcile.api.flood import FloodGuard
from fila.reconcile.config import Config
from fila.reconcile.domain.settings import HOUR_MS
from fila.settings import SettingsError
from tests.helpers.reconcile import NOW, OVERCLAIMED, attempt, missing
from tests.helpers.reconcile_api import REPORT


class TestSubmitting:
    def test_a_report_is_kept_and_queued(self, bench):
        api = bench()
        answer = api.post(headers={"X-Correlation-ID": "trace-7"})
        assert answer.status_code == 202
        assert answer.headers["X-Correlation-ID"] == "trace-7"
        report_id = answer.json()["report_id"]
        item = api.queue.dequeue(0)
        assert item.job == {"affiliate_report_id": report_id, "attempt": 1}
        assert (item.priority_label, item.key, item.correlation_id) == ("normal", "ada", "trace-7")
        assert item.headers == {"platform": "clipshare"}
        shown = api.http.get(f"/v1/reports/{report_id}").json()
        assert (shown["status"], shown["done"], shown["attempts"]) == ("PENDING", False, [])

    def test_an_impossible_claim_goes_ahead_of_the_others(self, bench):
        api = bench()
        api.post()
        answer = api.post(clicks=20_000, post_id="p-2").json()
        assert (answer["priority"], answer["suspicion"], answer["signals"]) == ("high", 60, ["more_clicks_than_views"])
        assert api.queue.dequeue(0).job["affiliate_report_id"] == answer["report_id"]

    @pytest.mark.parametrize("in_header", [True, False])
    def test_the_same_report_again_is_taken_once(self, bench, in_header):
        api = bench()
        given = {"headers": {"Idempotency-Key": "k"}} if in_header else {"idempotency_key": "k"}
        first, again = api.post(**given), api.post(**given)
        assert (first.json()["repeated"], again.json()["repeated"]) == (False, True)
        assert first.json()["report_id"] == again.json()["report_id"]
        assert api.queue.snapshot()["depth"] == 1

    def test_a_key_for_a_different_report_is_a_conflict(self, bench):
        api = bench()
        api.post(idempotency_key="k")
        answer = api.post(idempotency_key="k", views=1)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "key_reused")

    @pytest.mark.parametrize(
        "first, again, status",
        [
            (None, None, 202),
            ("2023-11-14T22:00:00Z", "2023-11-14T23:00:00+01:00", 202),
            ("2023-11-14T22:13:50Z", "2023-11-14T22:13:50Z", 202),
            ("2023-11-14T22:00:00Z", "2023-11-14T21:00:00Z", 409),
            (None, "2023-11-14T22:00:00Z", 409),
            ("2023-11-14T22:00:00Z", None, 409),
        ],
    )
    def test_another_time_is_another_report_if_the_affiliate_said_it(self, bench, first, again, status):
        """What we filled in, or took for now, is no difference."""
        api = bench()
        api.post(idempotency_key="k", reported_at=first)
        api.now_ms += 10_000
        answer = api.post(idempotency_key="k", reported_at=again)
        assert answer.status_code == status
        assert status == 409 or answer.json()["repeated"]

    def test_a_post_of_somebody_else_is_a_conflict(self, bench):
        api = bench()
        api.post()
        answer = api.batch([REPORT | {"post_id": "new"}, REPORT | {"affiliate_id": "bob"}])
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "post_taken")
        assert answer.json()["error"]["index"] == 1
        assert api.queue.snapshot()["depth"] == 1

    def test_many_at_once_are_answered_in_order(self, bench):
        api = bench()
        answer = api.batch([REPORT | {"post_id": f"p-{n}", "idempotency_key": f"k-{n % 3}-{n}"} for n in range(50)])
        ids = [each["report_id"] for each in answer.json()["reports"]]
        assert answer.status_code == 202
        assert [api.queue.dequeue(0).job["affiliate_report_id"] for _ in ids] == ids
        again = api.batch([REPORT | {"post_id": f"p-{n}", "idempotency_key": f"k-{n % 3}-{n}"} for n in range(50)])
        assert [each["report_id"] for each in again.json()["reports"]] == ids
        assert api.queue.snapshot()["depth"] == 0

    @pytest.mark.parametrize(
        "changes",
        [
            {"views": -1},
            {"views": 10**12 + 1},
            {"views": 1.0},
            {"views": "1"},
            {"views": True},
            {"views": None},
            {"affiliate_id": ""},
            {"affiliate_id": "a" * 129},
            {"affiliate_id": "a\x00"},
            {"post_id": ".."},
            {"post_id": "a/b"},
            {"platform": "nowhere"},
            {"likes": 1},
            {"idempotency_key": ""},
            {"idempotency_key": "k" * 129},
            {"reported_at": "2023-11-14T22:13:20"},
            {"reported_at": "tomorrow"},
        ],
    )
    def test_what_no_report_may_have_is_refused(self, bench, changes):
        api = bench()
        answer = api.post(**changes)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")
        assert api.queue.snapshot()["depth"] == 0

    @pytest.mark.parametrize(
        "offset, status",
        [
            (timedelta(), 202),
            (timedelta(minutes=5), 202),
            (timedelta(minutes=5, seconds=1), 422),
            (timedelta(days=-7), 202),
            (timedelta(days=-7, seconds=-1), 422),
        ],
    )
    def test_a_claim_has_a_believable_time(self, bench, offset, status):
        api = bench()
        moment = datetime.fromtimestamp(NOW / 1000, UTC) + offset
        answer = api.post(reported_at=moment.isoformat())
        assert answer.status_code == status
        if status == 202:
            held = api.store.attempts.open_report(answer.json()["report_id"])
            assert held.report.reported_at_ms <= NOW, "the future would be an allowance for overclaiming"

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 10_000])
    def test_a_body_that_is_no_report_is_refused(self, bench, body):
        api = bench()
        answer = api.http.post("/v1/reports", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in {400, 422}

    def test_an_empty_batch_is_refused(self, bench):
        assert bench().batch([]).status_code == 422

    def test_an_error_does_not_repeat_what_was_sent(self, bench):
        answer = bench().post(affiliate_id="secret " * 50)
        assert "secret" not in answer.text
        assert "affiliate_id" in answer.text

    def test_one_key_sent_by_many_at_once_is_one_report(self, bench):
        api = bench()
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: api.post(idempotency_key="k").json(), range(24)))
        assert len({answer["report_id"] for answer in answers}) == 1
        assert api.queue.snapshot()["depth"] == 1


class TestLimits:
    def test_a_flooding_affiliate_is_told_when_to_come_back_and_others_are_not_held_up(self, bench):
        api = bench(affiliate_burst=5, affiliate_per_minute=6)
        answers = [api.post(post_id=f"p-{n}") for n in range(6)]
        assert [answer.status_code for answer in answers] == [202] * 5 + [429]
        assert answers[-1].json()["error"]["code"] == "flooding"
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 10
        assert api.post(affiliate_id="bob", post_id="p-9").status_code == 202

    def test_a_refused_batch_takes_nothing_from_anybody(self, bench):
        api = bench(affiliate_burst=3, affiliate_per_minute=1)
        mixed = [REPORT | {"post_id": f"p-{n}"} for n in range(2)] + [REPORT | {"affiliate_id": "bob", "post_id": "b"}]
        assert api.batch(mixed).status_code == 202
        assert api.batch(mixed).status_code == 429
        assert [api.post(affiliate_id="bob", post_id=f"b-{n}").status_code for n in range(3)] == [202, 202, 429]

    def test_a_batch_that_could_never_pass_is_refused_for_good(self, bench):
        answer = bench(affiliate_burst=3).batch([REPORT | {"post_id": f"p-{n}"} for n in range(4)])
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "too_many")

    def test_a_queue_past_its_mark_holds_everybody_up(self, bench):
        api = bench(queue_mark=3)
        for number in range(3):
            api.queue.enqueue({"n": number})
        answer = api.post()
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "backlog")
        assert int(answer.headers["Retry-After"]) >= 1
        assert api.store.views.outcomes() == {}

    def test_a_batch_has_a_largest_size(self, bench):
        answer = bench(max_batch=2).batch([REPORT | {"affiliate_id": f"a-{n}", "post_id": f"p-{n}"} for n in range(3)])
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "too_many")

    @pytest.mark.parametrize("announced", [True, False])
    def test_a_body_has_a_largest_size(self, bench, announced):
        api = bench(max_body_bytes=1_000)
        body = json.dumps(REPORT | {"x": "y" * 2_000}).encode()
        content = body if announced else (body[n : n + 100] for n in range(0, len(body), 100))
        answer = api.http.post("/v1/reports", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")

    def test_what_a_full_queue_does_not_take_is_due_at_once(self, bench):
        api = bench(queue=PriorityDelayQueue(QueueSettings(max_in_memory=2)))
        answer = api.batch([REPORT | {"post_id": f"p-{n}"} for n in range(5)])
        assert answer.status_code == 202, "what the store has taken is taken"
        ids = [each["report_id"] for each in answer.json()["reports"]]
        assert {due.report_id for due in api.store.due_reports.take(NOW, 10, missed=False)} == set(ids[2:])

    def test_a_job_that_was_queued_and_done_before_the_queue_failed_to_say_so_is_left_alone(self, bench):
        class Forgetful(PriorityDelayQueue):
            def enqueue(self, job, *args, **kwargs):
                held = api.store.attempts.open_report(job["affiliate_report_id"])
                api.store.attempts.record(missing(held.report, retry_at_ms=NOW + HOUR_MS))
                raise QueueUnavailable("no answer")

        api = bench(queue=Forgetful())
        assert api.post().status_code == 202
        assert api.store.due_reports.take(NOW + HOUR_MS - 1, 10, missed=True) == []
        assert [due.attempt for due in api.store.due_reports.take(NOW + HOUR_MS, 10, missed=True)] == [2]

    def test_a_queue_that_is_not_there_is_said_so(self, bench):
        class Away(PriorityDelayQueue):
            def snapshot(self):
                raise QueueUnavailable("no broker answers")

        answer = bench(queue=Away()).post()
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")

    def test_limits_that_make_no_sense_are_refused(self):
        with pytest.raises(SettingsError, match="max_batch"):
            ApiSettings(max_batch=0)
        with pytest.raises(SettingsError, match=r"unknown key api\.maxbatch"):
            Config.from_mapping({"api": {"maxbatch": 1}})


class TestFloodGuard:
    def test_a_bucket_refills_with_time_and_never_overflows(self):
        guard = FloodGuard(per_minute=60, burst=2)
        assert guard.take({"ada": 2}, 0.0) is None
        assert guard.take({"ada": 1}, 0.5) == ("ada", 0.5)
        assert guard.take({"ada": 1}, 1.0) is None
        assert guard.take({"ada": 3}, 1_000.0) == ("ada", 1.0)
        assert guard.take({"ada": 2}, 1_000.0) is None

    def test_a_clock_that_goes_back_gives_nothing(self):
        guard = FloodGuard(per_minute=60, burst=1)
        guard.take({"ada": 1}, 100.0)
        assert guard.take({"ada": 1}, 50.0) is not None


class TestLooking:
    def test_alerts_and_trust_follow_from_attempts(self, bench):
        api = bench()
        report_id = api.post(views=1_000, clicks=100, conversions=10).json()["report_id"]
        held = api.store.attempts.open_report(report_id)
        api.store.attempts.record(attempt(held.report, observed=OVERCLAIMED))
        shown = api.http.get(f"/v1/reports/{report_id}").json()
        assert (shown["status"], shown["done"], shown["confidence"]) == ("AFFILIATE_OVERCLAIMED", True, 1.0)
        assert shown["attempts"][0]["difference_percent"] == 150.0
        [alert] = api.http.get("/v1/alerts", params={"kind": "fraud", "affiliate_id": "ada"}).json()["alerts"]
        assert (alert["severity"], alert["report_id"]) == ("critical", report_id)
        assert api.http.get("/v1/affiliates/ada").json()["trust"] == 0.4
        status = api.http.get("/v1/status").json()
        assert (status["open"], status["done"], status["alerts"]) == (0, 1, {"fraud/critical": 1})
        assert status["queue"]["backend"] == "memory"

    def test_lists_come_in_pages(self, bench):
        api = bench()
        api.batch([REPORT | {"affiliate_id": f"a-{n}", "post_id": f"p-{n}"} for n in range(5)])
        seen, after = [], None
        while True:
            page = api.http.get("/v1/affiliates", params={"limit": 2} | ({"after": after} if after else {})).json()
            seen += [each["affiliate_id"] for each in page["affiliates"]]
            after = page["next_after"]
            if after is None:
                break
        assert seen == [f"a-{n}" for n in range(5)]
        assert api.http.get("/v1/alerts").json() == {"alerts": [], "next_before": None}

    @pytest.mark.parametrize(
        "path, status",
        [
            ("/v1/reports/" + "0" * 32, 404),
            ("/v1/reports/x", 422),
            ("/v1/affiliates/nobody", 404),
            ("/v1/affiliates?limit=0", 422),
            ("/v1/alerts?limit=1001", 422),
            ("/v1/alerts?before=0", 422),
            ("/v1/alerts?kind=gossip", 422),
            ("/nowhere", 404),
        ],
    )
    def test_what_is_not_there_is_said_in_one_form(self, bench, path, status):
        answer = bench().http.get(path)
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"code", "message"}

    def test_health_needs_the_store(self, bench, tmp_path):
        api = bench()
        assert api.http.get("/healthz").status_code == 200
        with api.store._database.writing() as session:
            session.connection().exec_driver_sql("DROP TABLE alerts")
            session.connection().exec_driver_sql("ALTER TABLE affiliates RENAME TO gone")
        assert api.http.get("/healthz").status_code == 503


def test_the_openapi_page_has_examples_and_every_refusal(bench):
    schema = bench().http.get("/openapi.json").json()
    intake = schema["paths"]["/v1/reports"]["post"]
    assert {"202", "409", "413", "422", "429", "503"} <= set(intake["responses"])
    assert schema["components"]["schemas"]["ReportIn"]["examples"][0]["affiliate_id"] == "ada"
    assert schema["components"]["schemas"]["ErrorOut"]["examples"]
    batch = schema["paths"]["/v1/reports/batch"]["post"]["requestBody"]["content"]["application/json"]
    assert batch["example"]["reports"]
