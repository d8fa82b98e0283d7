"""Throttles, dead letters, hooks, jobs, pipelines, settings: each action has its effect, which the SDK confirms."""

import json

import pytest
from playwright.sync_api import expect

from tests.console.conftest import row
from tests.e2e.support import Inbox, eventually, take

pytestmark = pytest.mark.timeout(90)


def test_a_limit_is_set_compared_and_removed(page, client, queue):
    client.create_queue(queue, fairness_header="tenant", throttle_headers=["provider"])
    client.set_config("throttle.provider:limited", "rate=2,burst=1")
    for number in range(60):
        client.enqueue(queue, {"tenant": f"t{number % 3}", "provider": "limited"})
    with Inbox(client, queue):
        page.goto("/throttles?key=provider:limited")
        card = page.locator("section[aria-label='provider:limited']")
        expect(card).to_contain_text("at 4/s")
        expect(card.locator(".gauge")).to_be_visible()
        expect(card.locator(".state.held")).to_contain_text("held")
        card.get_by_label("Rate, a second").fill("500")
        card.get_by_role("button", name="Set the limit").click()
        expect(page.locator(".notice")).to_contain_text("fila throttle set provider:limited --rate 500 --burst 1")
    assert client.get_config("throttle.provider:limited") == "rate=500,burst=1"
    page.locator("section[aria-label='provider:limited']").get_by_role("button", name="Remove it").click()
    expect(page.locator(".notice")).to_contain_text("no longer limited")
    assert client.get_config("throttle.provider:limited") is None


def bury(client, queue, errors):
    client.create_queue(queue, fairness_header="tenant")
    for key, error in errors:
        client.enqueue(queue, {"tenant": key}, json.dumps([key, error]).encode())
    with Inbox(client, queue, on_message=lambda message: message.reject(json.loads(message.payload)[1])) as inbox:
        inbox.wait(len(errors))


def test_dead_letters_are_grouped_counted_and_sent_back(page, client, queue):
    errors = [("acme", f"timeout after {number} ms") for number in range(8)] + [("globex", "no such user")] * 3
    bury(client, queue, errors)
    dlq = f"{queue}.dlq"
    page.goto(f"/dead-letters/queue?name={queue}")
    groups = page.locator("section[aria-labelledby=errors] tbody tr")
    assert [text.split("\t")[:2] for text in groups.all_inner_texts()] == [
        ["timeout after # ms", "8"],
        ["no such user", "3"],
    ]
    page.get_by_role("link", name="timeout after # ms").click()
    expect(page.get_by_label("Error contains")).to_have_value("timeout after")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator(".notice")).to_contain_text("8 messages")
    assert client.queue_stats(dlq).summary.depth == 11, "a dry run moves nothing"
    page.get_by_role("button", name=f"Send these back to {queue}").click()
    expect(page.locator("[data-field=done]")).to_have_text("8")
    same = page.locator(".shell").filter(has_text=f"fila dlq redrive {dlq} --error 'timeout after'")
    expect(same.first).to_be_visible()
    assert (client.queue_stats(dlq).summary.depth, client.queue_stats(queue).summary.depth) == (3, 8)
    assert {json.loads(message.payload)[0] for message in take(client, queue, 8)} == {"acme"}


def test_a_redrive_with_a_rate_shows_progress_and_can_be_stopped(page, client, queue):
    bury(client, queue, [("acme", "broken")] * 40)
    page.goto(f"/dead-letters/queue?name={queue}")
    page.get_by_label("At most, a second").fill("5")
    page.get_by_role("button", name="Send all back").click()
    done = page.locator("[data-field=done]")
    eventually(lambda: int(done.inner_text()) >= 2, "progress is shown")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".state.bad")).to_have_text("stopped")
    left = client.queue_stats(f"{queue}.dlq").summary.depth
    assert 0 < left < 40


def test_a_purge_asks_first_and_removes_what_was_confirmed(page, client, queue):
    bury(client, queue, [("acme", "broken")] * 4 + [("globex", "other")])
    page.goto(f"/dead-letters/queue?name={queue}&key=acme")
    page.get_by_role("button", name="Remove these").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Remove 4 messages for good?")
    assert client.queue_stats(f"{queue}.dlq").summary.depth == 5
    page.get_by_role("button", name="Remove them").click()
    expect(page.locator("[data-field=done]")).to_have_text("4")
    [left] = client.peek(f"{queue}.dlq").messages
    assert left.fairness_key == "globex"


OLD = 'function on_enqueue(msg) return { fairness_key = msg.headers.tenant or "none" } end'
NEW = 'function on_enqueue(msg) return { fairness_key = msg.headers.tenant or "none", weight = 5 } end'


def test_a_script_is_tried_on_waiting_messages_before_it_is_saved(page, client, queue):
    client.create_queue(queue, script=OLD)
    ids = [client.enqueue(queue, {"tenant": "acme"}) for _ in range(3)]
    page.goto(f"/hook?name={queue}")
    expect(page.locator("pre.view .k").first).to_have_text("function")
    page.get_by_label("Lua source").fill(NEW)
    page.get_by_role("button", name="Try on").click()
    expect(page.locator("#trial")).to_contain_text("Tried on 3 waiting messages: 3 decisions differ")
    expect(page.locator("section[aria-labelledby=trial]")).to_contain_text(ids[0])
    assert page.locator("td.was").first.inner_text() == "1"
    assert page.locator("td.now").first.inner_text() == "5"
    assert client.queue_stats(queue).config.script == OLD, "trying saves nothing"
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".notice")).to_contain_text("Saved")
    assert client.queue_stats(queue).config.script == NEW


@pytest.mark.allows("400")
def test_a_script_that_cannot_be_used_is_refused_and_stays_in_the_form(page, client, queue):
    client.create_queue(queue, script=OLD)
    page.goto(f"/hook?name={queue}")
    page.get_by_label("Lua source").fill("function on_enqueue( oops")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".notice.error")).to_contain_text("script")
    expect(page.get_by_label("Lua source")).to_have_value("function on_enqueue( oops")
    assert client.queue_stats(queue).config.script == OLD


def test_jobs_are_shown_by_task_with_what_runs_and_what_failed(page, client, queue):
    client.create_queue(queue, fairness_header="fila-job-key")
    for task in ("shop.mail", "shop.mail", "shop.bill"):
        client.enqueue(queue, {"fila-job-key": "acme"}, json.dumps({"task": task, "args": []}).encode())
    client.enqueue(queue, payload=json.dumps({"task": "shop.later"}).encode(), delay_ms=600_000)
    with client.consume(queue, max_in_flight=1) as consumer:
        next(consumer)
        page.goto("/jobs")
        card = page.locator(f"section[aria-label='{queue}']")
        expect(card).to_be_visible()
        expect(card.locator("dt").filter(has_text="Running").locator("xpath=..").locator("b")).to_have_text("1")
        tiles = dict(zip(card.locator("dt").all_inner_texts(), card.locator("dd b").all_inner_texts(), strict=True))
        assert (tiles["Waiting"], tiles["Scheduled"]) == ("2", "1")
        expect(row(page, "shop.bill")).to_be_visible()
        expect(card.get_by_role("link", name="shop.mail")).to_be_visible()


@pytest.mark.allows("sandbox", "img-src data:")
def test_a_report_is_opened_inside_and_cannot_run_anything(page, reports):
    (reports / "report.html").write_text(
        "<h1>Reconciled</h1><script>top.location='/stolen'</script><img src=x onerror=\"top.pwned=1\">"
    )
    page.goto("/pipelines")
    page.get_by_role("link", name="report.html").click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Reconciled")).to_be_visible()
    assert page.evaluate("window.pwned") is None
    assert "/pipelines" in page.url
    answer = page.request.get("/pipelines/report", params={"name": "../../../etc/passwd"})
    assert answer.status == 404


def test_the_audit_tells_who_changed_what_as_the_sdk_does(page, client, queue):
    client.create_queue(queue)
    client.update_queue(queue, max_attempts=4)
    page.goto(f"/audit?resource=queue:{queue}")
    shown = page.locator("section[aria-labelledby=entries] tbody tr")
    known = list(client.read_audit(resource=f"queue:{queue}"))
    assert [entry.action for entry in known] == ["CreateQueue", "UpdateQueue"]
    expect(shown).to_have_count(2)
    expect(shown.first).to_contain_text("UpdateQueue")
    expect(shown.first).to_contain_text("max_attempts")
    expect(shown.first.locator(".now")).to_have_text("4")


def test_entries_of_the_configuration_are_set_and_removed(page, client):
    page.goto("/settings")
    page.get_by_label("New entry").fill("pricing.tier")
    page.get_by_label("Value", exact=True).fill("gold")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.locator(".notice")).to_contain_text("fila config set pricing.tier gold")
    assert client.get_config("pricing.tier") == "gold"
    page.get_by_label("Value of pricing.tier").fill("silver")
    row(page, "pricing.tier").get_by_role("button", name="Save").click()
    expect(page.locator(".notice")).to_contain_text("silver")
    assert client.get_config("pricing.tier") == "silver"
    page.get_by_role("button", name="Remove pricing.tier").click()
    expect(page.locator(".notice")).to_contain_text("Removed")
    assert client.get_config("pricing.tier") is None
