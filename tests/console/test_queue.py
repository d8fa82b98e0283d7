"""The page of a queue: keys with their shares, paging, settings, pause."""

import threading

import pytest
from playwright.sync_api import expect

from fila import OutgoingMessage
from tests.console.conftest import row, told

pytestmark = pytest.mark.timeout(90)


def fill(client, queue, counts, weights=None):
    client.create_queue(queue, fairness_header="tenant", weight_header="weight")
    weights = weights or {}
    client.enqueue_many(
        queue,
        [
            OutgoingMessage(b"x", {"tenant": key, "weight": str(weights.get(key, 1))})
            for key, count in counts.items()
            for _ in range(count)
        ],
    )


def test_keys_have_the_figures_that_the_sdk_tells(page, client, queue):
    fill(client, queue, {"acme": 30, "globex": 1200, "initech": 5}, {"globex": 3})
    page.goto(f"/queue?name={queue}")
    for key in client.queue_stats(queue).keys:
        shown = told(row(page, key.fairness_key), "pending", "delivered", "entitlement")
        assert shown.pending == f"{key.pending:,}"
        assert shown.delivered == "0"
        assert shown.entitlement == f"{key.entitlement:.0%}"


def test_shares_are_shown_over_time_while_consumers_work(page, client, queue):
    """Of two keys with weights 1 and 3, each gets what it is entitled to: the cells are those of level 0."""
    fill(client, queue, {"light": 20_000, "heavy": 20_000}, {"heavy": 3})
    stop = threading.Event()

    def work():
        with client.consume_batches(queue, max_in_flight=200) as batches:
            for batch in batches:
                client.ack_many(batch)
                if stop.wait(0.05):
                    return

    worker = threading.Thread(target=work)
    worker.start()
    try:
        page.goto(f"/queue?name={queue}")
        expect(row(page, "heavy").locator(".strip path.h0")).to_be_attached()
        expect(row(page, "light").locator(".strip path.h0")).to_be_attached()
        share = row(page, "heavy").locator("td").nth(2)
        expect(share).to_have_text("75%")
    finally:
        stop.set()
        worker.join()


def test_thousands_of_keys_are_paged_sorted_and_searched(page, client, queue):
    fill(client, queue, {f"key-{number:04d}": 1 + (number == 2345) for number in range(3000)})
    page.goto(f"/queue?name={queue}")
    expect(page.locator("#share")).to_contain_text("3,000 keys")
    assert page.locator("table.keys tbody tr").count() == 25
    assert page.locator("table.keys tbody th").first.inner_text() == "key-2345"
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".pager")).to_contain_text("2 of 120")
    page.get_by_label("Order").select_option("name")
    expect(page.locator("table.keys tbody th").first).to_have_text("key-0000")
    page.get_by_label("Keys that begin with").fill("key-19")
    page.get_by_label("Keys that begin with").press("Enter")
    expect(page.locator("table.keys tbody th").first).to_have_text("key-1900")
    expect(page.locator(".pager")).to_contain_text("1 of 4")


def test_pause_and_resume_stop_and_start_delivery(page, client, queue):
    client.create_queue(queue)
    page.goto(f"/queue?name={queue}")
    page.get_by_role("button", name="Pause delivery").click()
    expect(page.locator(".notice")).to_contain_text("is paused")
    assert client.queue_stats(queue).summary.paused
    assert page.locator(".shell").filter(has_text=f"fila queue resume {queue}").is_visible()
    page.get_by_role("button", name="Resume delivery").click()
    expect(page.locator(".notice")).to_contain_text("delivers again")
    assert not client.queue_stats(queue).summary.paused


def test_settings_are_changed_in_place_and_only_those_that_were_edited(page, client, queue):
    client.create_queue(queue, fairness_header="tenant", max_attempts=3)
    before = client.queue_stats(queue).config
    page.goto(f"/queue/settings?name={queue}")
    page.get_by_label("Attempts").fill("7")
    page.get_by_label("Throttle headers").fill("provider, region")
    client.update_queue(queue, retry_delay_ms=1234)
    page.get_by_label("Retry delay, ms").fill("1234")
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".notice")).to_contain_text("--max-attempts 7")
    after = client.queue_stats(queue).config
    assert (after.max_attempts, after.throttle_headers, after.retry_delay_ms) == (7, ("provider", "region"), 1234)
    assert (after.fairness_header, after.quantum) == (before.fairness_header, before.quantum)


def test_a_setting_out_of_range_is_refused_in_the_brokers_words(page, client, queue):
    client.create_queue(queue)
    page.goto(f"/queue/settings?name={queue}")
    page.get_by_label("Jitter").fill("17")
    page.get_by_role("button", name="Save changes").click()
    expect(page.locator(".notice.error")).to_contain_text("retry_jitter")
    assert client.queue_stats(queue).config.retry_jitter == 0


def test_consumers_are_listed_with_their_credit(page, client, queue):
    client.create_queue(queue)
    client.enqueue_many(queue, [b"x"] * 3)
    with client.consume(queue, max_in_flight=8) as consumer:
        next(consumer)
        page.goto(f"/queue?name={queue}")
        [known] = client.queue_stats(queue).consumers
        cells = page.locator("section[aria-labelledby=consumers] tbody tr").inner_text().split()
        assert cells == [str(known.number), "3", "8", "5"]


@pytest.mark.allows("404")
def test_a_queue_that_does_not_exist_is_said_not_to(page):
    answer = page.goto("/queue?name=nowhere")
    assert answer.status == 404
    expect(page.locator("main")).to_contain_text("nowhere")
