"""Home: true figures, what to mend, and a page that stays current without moving."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.conftest import row
from tests.e2e.support import Inbox, eventually

pytestmark = pytest.mark.timeout(90)


def test_each_queue_has_the_figures_that_the_sdk_tells(page, client, queue):
    client.create_queue(queue, fairness_header="tenant")
    client.enqueue_many(queue, [b"x"] * 12)
    client.enqueue(queue, delay_ms=600_000)
    with Inbox(client, queue, max_in_flight=5) as inbox:
        inbox.wait(5)
        page.goto(f"/?q={queue}")
        stats = client.queue_stats(queue).summary
        assert (stats.depth, stats.in_flight, stats.consumers) == (8, 5, 1)
        expect(row(page, queue).locator("[data-field=depth]")).to_have_text("8")
        assert row(page, queue).inner_text().split("\t")[5:8] == ["5", "1", "1"]


def test_the_headline_is_the_queue_that_suffers_most_and_its_button_explains_it(page, client, queue):
    client.create_queue(queue)
    client.enqueue_many(queue, [b"x"] * 4731)
    page.goto("/")
    headline = page.get_by_role("heading", level=1)
    expect(headline).to_have_text(re.compile(rf"^{queue}: nobody consumes, 4,731 wait"))
    problem = page.locator(".problems li").filter(has_text=queue)
    problem.get_by_role("link", name="Explain").click()
    expect(page.locator(".timeline")).to_contain_text("no consumer")
    client.delete_queue(queue)


def test_a_paused_queue_is_mended_by_its_button(page, client, queue):
    client.create_queue(queue)
    client.enqueue(queue)
    client.pause_queue(queue)
    page.goto("/")
    page.locator(".problems li").filter(has_text=queue).get_by_role("button", name="Resume").click()
    expect(page.locator(".notice")).to_contain_text("delivers again")
    assert not client.queue_stats(queue).summary.paused


def test_a_page_stays_current_and_leaves_focus_text_and_place_alone(page, client, queue):
    client.create_queue(queue)
    page.goto(f"/?q={queue}")
    search = page.get_by_role("searchbox")
    search.fill("half a word")
    page.set_viewport_size({"width": 1280, "height": 300})
    page.evaluate("scrollTo(0, 200)")
    node = row(page, queue).element_handle()
    client.enqueue_many(queue, [b"x"] * 3)
    expect(row(page, queue).locator("[data-field=depth]")).to_have_text("3")
    assert node.is_visible(), "the row is still the same node"
    assert page.evaluate("[document.activeElement.id, scrollY]") == ["q", 200]
    assert search.input_value() == "half a word"


def test_both_themes_are_there_and_the_choice_is_kept(page):
    def background():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    page.emulate_media(color_scheme="light")
    page.goto("/")
    light = background()
    page.emulate_media(color_scheme="dark")
    dark = background()
    page.get_by_label("Theme").select_option("light")
    assert light != dark
    assert background() == light
    page.reload()
    assert background() == light


@pytest.mark.allows("503", "Failed to load resource", "ERR_")
def test_a_broker_that_is_killed_is_shown_as_such_and_picked_up_when_it_comes_back(page, client, broker, queue):
    client.create_queue(queue)
    client.enqueue_many(queue, [b"x"] * 7)
    page.goto(f"/?q={queue}")
    expect(row(page, queue).locator("[data-field=depth]")).to_have_text("7")
    broker.kill()
    expect(page.locator("#away")).to_contain_text("The broker does not answer")
    assert row(page, queue).is_visible(), "what was known stays on the page"
    fresh = page.context.new_page()
    fresh.goto("/")
    expect(fresh.get_by_role("heading", level=1)).to_have_text("The broker does not answer")
    broker.start()
    expect(page.locator("#away")).to_be_hidden()
    eventually(client.list_queues, "the broker is back")
    client.enqueue(queue)
    expect(row(page, queue).locator("[data-field=depth]")).to_have_text("8")
    expect(fresh.get_by_role("heading", name="Queues")).to_be_visible()
