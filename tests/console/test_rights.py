"""Signing in: a session has the rights of its key, no more, and ends with it."""

import pytest
from playwright.sync_api import expect

from fila import Client
from tests.console.conftest import watch

pytestmark = [pytest.mark.timeout(90), pytest.mark.allows("403", "401")]


@pytest.fixture(scope="module")
def keys(broker):
    """The tokens of an admin, a viewer and one who sees the queues of a team only."""
    with Client(broker.addr) as first:
        admin = first.auth.create_key("root", ["admin"]).token
    with Client(broker.addr, api_key=admin) as client:
        client.create_queue("shop")
        client.create_queue("team.mail")
        client.enqueue("shop", payload=b"secret of the shop")
        roles = {"viewer": ["viewer"], "team": ["operator:team.**"]}
        return {"admin": admin} | {name: client.auth.create_key(name, each).token for name, each in roles.items()}


@pytest.fixture
def client(broker, keys):
    with Client(broker.addr, api_key=keys["admin"]) as client:
        yield client


def sign_in(page, key, path="/"):
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_a_broker_with_keys_shows_nothing_without_one(page, keys):
    answer = page.request.get("/queue?name=shop", max_redirects=0)
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in?next=%2Fqueue%3Fname%3Dshop")
    sign_in(page, "fila_nobody_" + "x" * 43)
    expect(page.get_by_role("alert")).to_contain_text("does not accept this key")
    sign_in(page, keys["admin"], "/queue?name=shop")
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")


def test_the_browser_never_holds_the_key(page, keys):
    sign_in(page, keys["admin"])
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    [cookie] = [each for each in page.context.cookies() if each["name"].startswith("fila_console_")]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    secret = keys["admin"].rpartition("_")[2]
    for path in ("/", "/settings", "/queue?name=shop"):
        page.goto(path)
        assert secret not in page.content()
    assert secret not in str(page.context.cookies())


def test_a_viewer_sees_everything_and_can_change_nothing(page, keys, client):
    sign_in(page, keys["viewer"], "/queue?name=shop")
    expect(page.get_by_role("heading", level=1)).to_have_text("shop")
    for path in ("/queue?name=shop", "/queue/settings?name=shop", "/hook?name=shop", "/dead-letters/queue?name=shop"):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_have_text("shop")
        for name in ("Pause", "Save", "Send", "Remove", "Try"):
            assert page.locator("main").get_by_role("button", name=name).count() == 0, (path, name)
    token = page.locator("input[name=csrf]").first.get_attribute("value")
    for path, fields in ACTIONS.items():
        answer = page.request.post(
            path, form={"csrf": token, "back": "/", "name": "shop", **fields}, headers={"origin": page_origin(page)}
        )
        assert "not allow" in answer.text(), path
    stats = client.queue_stats("shop")
    assert (stats.summary.paused, stats.config.max_attempts, stats.config.script) == (False, 0, "")
    assert client.list_config() == {}


ACTIONS = {
    "/queue/pause": {},
    "/queue/settings": {"max_attempts": "9"},
    "/hook": {"script": "function on_failure(m) end", "act": "save"},
    "/throttles/set": {"key": "k", "rate": "1"},
    "/settings/set": {"key": "a.b", "value": "c"},
    "/dead-letters/redrive": {"name": "shop.dlq"},
    "/dead-letters/purge": {"name": "shop.dlq", "sure": "0"},
}


def page_origin(page):
    return page.evaluate("location.origin")


def test_a_scoped_key_sees_its_queues_alone(page, keys):
    sign_in(page, keys["team"])
    expect(page.locator("tbody")).to_contain_text("team.mail")
    assert "shop" not in page.content()
    answer = page.goto("/messages?name=shop")
    assert answer.status == 403
    assert "secret of the shop" not in page.content()


def test_signing_out_ends_the_session(page, keys):
    sign_in(page, keys["viewer"])
    kept = page.context.cookies()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.context.add_cookies(kept)
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_revoked_key_ends_its_sessions(page, keys, client, browser, console):
    made = client.auth.create_key("leaver", ["viewer"])
    sign_in(page, made.token)
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    client.auth.revoke_key(made.info.id)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_two_people_have_two_sessions(page, keys, browser, console):
    sign_in(page, keys["admin"])
    context = browser.new_context(base_url=console.url)
    other = context.new_page()
    other.wrong = []
    watch(other)
    sign_in(other, keys["viewer"], "/settings")
    expect(other.locator("section[aria-labelledby=you]")).to_contain_text("viewer")
    page.goto("/settings")
    expect(page.locator("section[aria-labelledby=you]")).to_contain_text("root")
    context.close()
