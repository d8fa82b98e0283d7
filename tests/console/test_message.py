"""Keys and messages: why they wait, what happened, headers and payload."""

import json

import pytest
from playwright.sync_api import expect

from tests.e2e.support import take

pytestmark = pytest.mark.timeout(90)


def test_the_timeline_has_the_reasons_of_explain_with_their_settings(page, client, queue):
    client.create_queue(queue, fairness_header="tenant", throttle_headers=["provider"])
    client.set_config("throttle.provider:slow", "rate=0.001,burst=1")
    ids = [client.enqueue(queue, {"tenant": "acme", "provider": "slow"}) for _ in range(3)]
    about = client.explain(queue, ids[2])
    page.goto(f"/message?queue={queue}&id={ids[2]}")
    blocks = page.locator(".timeline li.blocks")
    assert [each.replace("_", " ") for each in (reason.code for reason in about.reasons)] == [
        text.split("\n")[0].split("  ")[0].strip() for text in blocks.locator("b").all_inner_texts()
    ]
    for reason in about.reasons:
        if reason.setting:
            expect(blocks.locator(".setting", has_text=reason.setting).first).to_be_visible()
    page.goto(f"/key?queue={queue}&key=acme")
    expect(page.locator(".timeline")).to_contain_text("no consumer")
    expect(page.get_by_role("link", name=ids[0]).first).to_be_visible()


@pytest.mark.allows("404")
def test_history_comes_from_the_journal(page, client, queue):
    client.create_queue(queue)
    message_id = client.enqueue(queue, payload=b"once")
    with client.consume(queue) as consumer:
        next(consumer).nack("no luck")
    take(client, queue, 1)
    page.goto(f"/message?queue={queue}&id={message_id}")
    expect(page.locator("main")).to_contain_text("There is no such message in the queue")
    page.get_by_role("link", name="Read the journal").click()
    kinds = page.locator("section[aria-labelledby=history] .timeline b")
    expect(kinds.last).to_have_text("acked")
    assert kinds.all_inner_texts()[:4] == ["enqueued", "leased", "nacked", "leased"]


def test_the_payload_can_be_seen_as_json_text_and_hex(page, client, queue):
    client.create_queue(queue)
    payload = json.dumps({"order": 7, "note": "<b>bold</b>"}).encode()
    message_id = client.enqueue(queue, {"region": "eu"}, payload)
    page.goto(f"/message?queue={queue}&id={message_id}")
    view = page.locator("pre.view")
    expect(view).to_have_text('{\n  "order": 7,\n  "note": "<b>bold</b>"\n}')
    page.get_by_role("link", name="Text", exact=True).click()
    expect(view).to_have_text(payload.decode())
    page.get_by_role("link", name="Hex", exact=True).click()
    expect(view).to_contain_text("000000  7b 22 6f 72 64 65 72 22")
    expect(page.locator("section[aria-labelledby=headers]")).to_contain_text("region")


def test_messages_are_found_by_key_header_and_state(page, client, queue):
    client.create_queue(queue, fairness_header="tenant")
    wanted = client.enqueue(queue, {"tenant": "acme", "region": "eu"}, b"one")
    client.enqueue(queue, {"tenant": "acme", "region": "us"}, b"two")
    client.enqueue(queue, {"tenant": "globex", "region": "eu"}, b"three", delay_ms=600_000)
    page.goto(f"/messages?name={queue}")
    rows = page.locator("section[aria-labelledby=messages] tbody tr")
    assert rows.count() == 3
    page.get_by_label("Fairness key").fill("acme")
    page.get_by_label("Header").fill("region=eu")
    page.get_by_role("button", name="Search").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(wanted)
    page.goto(f"/messages?name={queue}&state=delayed")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("three")
