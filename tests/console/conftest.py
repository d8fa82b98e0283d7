"""The console in a real Chromium, on a real broker. Each module has its own; a test has its own page and queues.

Playwright keeps an event loop running in its thread, so nothing here lives longer than its module: other tests of the
same worker use `asyncio.run`.
"""

import os
import re
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from fila import Client
from fila.testing import ServerProcess
from fila.testing.console import BrowserMissing, ConsoleProcess, open_browser

PATIENCE_MS = 20_000
"""How long a page may take to show something: a busy machine is slow."""
expect.set_options(timeout=PATIENCE_MS)
JOURNAL = "[journal]\nenabled = true\n"


@pytest.fixture(scope="module")
def browser():
    try:
        with open_browser() as found:
            yield found
    except BrowserMissing as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("broker"), config=JOURNAL) as server:
        yield server


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def console(broker, reports, tmp_path_factory):
    with ConsoleProcess(broker.addr, tmp_path_factory.mktemp("console"), args=("--reports", str(reports))) as process:
        yield process
        assert "Traceback" not in process.log, process.log


@pytest.fixture
def client(broker):
    with Client(broker.addr, timeout=30) as client:
        yield client


@pytest.fixture
def queue(request):
    """A queue name that no other test uses."""
    return re.sub(r"\W", "-", request.node.name.removeprefix("test_"))[:40]


@pytest.fixture
def page(browser, console, request):
    """A page that fails the test when anything goes wrong in it: an error, a breach of the policy, a dialog."""
    context = browser.new_context(base_url=console.url, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.wrong = []
    watch(page)
    yield page
    context.close()
    allowed = getattr(request.node.get_closest_marker("allows"), "args", ())
    assert [text for text in page.wrong if not any(each in text for each in allowed)] == []


def watch(page):
    def note(message):
        if message.type in {"error", "warning"}:
            page.wrong.append(message.text)

    def dialog(found):
        page.wrong.append(f"dialog: {found.message}")
        found.dismiss()

    page.on("console", note)
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("dialog", dialog)


def row(page, name):
    """The row of a table whose head is this text."""
    return page.locator("tbody tr").filter(has=page.get_by_role("rowheader", name=name, exact=True))


def told(row, *fields):
    """The numbers in the marked cells of a row."""
    return SimpleNamespace(**{field: row.locator(f"[data-field={field}]").inner_text() for field in fields})
