"""Hostile names, headers, keys, errors and payloads do no harm on any page; and every page works for everybody."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.e2e.support import Inbox

pytestmark = pytest.mark.timeout(90)

EVIL = "<script>window.pwned=1</script><img src=x onerror=window.pwned=2>"
BIDI = "\u202eevil\u2066"
ANSI = "\x1b[31mred\x1b[0m\x07"
TAGS = "\"'><svg onload=window.pwned=3>"


@pytest.fixture
def evil(client, request):
    """A queue whose every text is hostile; its messages wait, are delayed, and are dead."""
    name = f"{request.node.name[5:15]} {TAGS}"
    client.create_queue(name, fairness_header="tenant", throttle_headers=["t"], script=f"-- {EVIL}\n{SCRIPT}")
    client.set_config(f"x.{EVIL}", EVIL + ANSI)
    for key in (EVIL, BIDI, ANSI, TAGS):
        client.enqueue(name, {"tenant": key, "t": EVIL, EVIL[:50]: BIDI, "ansi": ANSI}, (EVIL + ANSI).encode())
    big = client.enqueue(name, {"tenant": "big"}, b"<script>window.pwned=4</script>" * 33_000)
    with Inbox(client, name, on_message=lambda message: message.reject(f"{EVIL} {BIDI} {ANSI}")) as inbox:
        inbox.wait(3)
    client.set_config(f"throttle.t:{EVIL}", "rate=0.001")
    for key in (EVIL, BIDI):
        client.enqueue(name, {"tenant": key, "n": ANSI}, EVIL.encode())
    yield name, big
    client.delete_config(f"throttle.t:{EVIL}")
    client.delete_queue(name, force=True)


SCRIPT = 'function on_failure(msg) error("<script>window.pwned=5</script>") end'


def test_no_page_runs_or_reorders_what_others_wrote(page, client, evil):
    name, big = evil
    [letter, *_] = client.peek(f"{name}.dlq").messages
    q = quote(name)
    paths = ["/", "/throttles", "/dead-letters", "/hooks", "/jobs", "/settings", "/pipelines", "/audit"]
    paths += [f"/queue?name={q}", f"/messages?name={q}", f"/queue/settings?name={q}", f"/hook?name={q}"]
    paths += [f"/dead-letters/queue?name={q}", f"/key?queue={q}&key={quote(EVIL)}", f"/key?queue={q}&key={quote(BIDI)}"]
    paths += [f"/message?queue={quote(name + '.dlq')}&id={letter.id}&history=1"]
    paths += [f"/message?queue={quote(name + '.dlq')}&id={letter.id}&view={view}" for view in ("text", "json", "hex")]
    paths += [f"/throttles?key={quote(EVIL)}", f"/?q={quote(EVIL)}"]
    for path in paths:
        answer = page.goto(path)
        assert answer.status == 200, path
        text = page.content()
        assert page.evaluate("window.pwned") is None, path
        assert not {"\u202e", "\u2066", "\x1b", "\x07"} & set(page.locator("main").inner_text()), path
        assert "<script>window.pwned" not in text, path
    page.goto(f"/dead-letters/queue?name={q}")
    expect(page.locator("section[aria-labelledby=newest]")).to_contain_text("\\u202eevil\\u2066")
    found = [one for one in (*client.peek(name).messages, *client.peek(f"{name}.dlq").messages) if one.id == big]
    page.goto(f"/message?queue={quote(found[0].queue or name)}&id={big}")
    assert len(page.content()) < 400_000, "a large payload is shown in part"


def test_a_page_with_hostile_names_refreshes_itself(page, client, evil):
    name, _ = evil
    page.goto(f"/queue?name={quote(name)}")
    client.enqueue(name, {"tenant": EVIL})
    expect(page.locator("tr").filter(has_text="window.pwned=1").locator("[data-field=pending]").first).to_be_visible()
    page.wait_for_timeout(2500)
    assert page.evaluate("window.pwned") is None


def test_every_page_reads_on_a_phone_and_for_a_screen_reader(page, client, queue):
    client.create_queue(queue, fairness_header="tenant", throttle_headers=["provider"])
    client.set_config("throttle.provider:a-provider-with-a-long-name", "rate=1000,burst=2000,max_in_flight=100000")
    client.enqueue(queue, {"provider": "a-provider-with-a-long-name"})
    with client.consume(queue, max_in_flight=1) as consumer:
        next(consumer)
    message_id = client.enqueue(queue, {"tenant": "acme-with-a-very-long-name-that-nobody-can-break" * 3}, b"x" * 500)
    paths = ["/", f"/queue?name={queue}", f"/queue/settings?name={queue}", f"/messages?name={queue}", "/settings"]
    paths += [f"/message?queue={queue}&id={message_id}", f"/key?queue={queue}", "/throttles", "/hooks", "/jobs"]
    paths += ["/pipelines", f"/hook?name={queue}", f"/dead-letters/queue?name={queue}", "/sign-in"]
    page.set_viewport_size({"width": 390, "height": 844})
    for path in paths:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert page.evaluate(UNREADABLE) == [], path
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


#: What a screen reader could not tell: fields without labels, pictures without words, repeated ids, missing landmarks.
UNREADABLE = """() => {
  const wrong = [];
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!field.labels.length && !field.getAttribute("aria-label")) wrong.push("no label: " + field.outerHTML);
  }
  for (const each of document.querySelectorAll("button, a")) {
    if (!each.textContent.trim() && !each.getAttribute("aria-label")) wrong.push("no text: " + each.outerHTML);
  }
  for (const svg of document.querySelectorAll("svg")) {
    if (!svg.getAttribute("aria-hidden") && !svg.getAttribute("aria-label")) wrong.push("no words: svg");
  }
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const id of ids) if (ids.filter((each) => each === id).length > 1) wrong.push("twice: " + id);
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
  if (!document.querySelector("main") || !document.querySelector("header")) wrong.push("no landmark");
  for (const cell of document.querySelectorAll("th")) if (!cell.scope) wrong.push("th without scope");
  return wrong;
}"""
