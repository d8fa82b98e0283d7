"""Takes the pictures of docs/console.md: a broker with made-up orders, the console, and a browser.

    make console-pictures        writes docs/console-{home,queue,message,letters}.png

Pictures are reduced to 256 colours, so that each stays below 300 KB.
"""

import json
import random
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from fila import Client, OutgoingMessage
from fila.testing import ServerProcess
from fila.testing.console import ConsoleProcess, open_browser

DOCS = Path(__file__).parents[1] / "docs"
HELD_S, WATCH_S = 65.0, 60.0
"""The heat map shows two minutes: first a throttle holds two tenants up, then its limit is raised."""
MAX_BYTES = 300_000
TENANTS = {"northwind": 1, "globex": 4, "initech": 2, "umbrella": 1, "hooli": 1, "vandelay": 2, "stark": 1, "wayne": 1}
SMALL = [f"tenant-{number:03d}" for number in range(40)]
ERRORS = ("card declined: insufficient funds", "timeout after 30 s calling acme-pay", "address not found")


def main() -> int:
    with ExitStack() as stack:
        server = stack.enter_context(ServerProcess(config="[journal]\nenabled = true\n"))
        console = stack.enter_context(ConsoleProcess(server.addr))
        client = stack.enter_context(Client(server.addr, timeout=60))
        browser = stack.enter_context(open_browser())
        stop = threading.Event()
        threads = [
            threading.Thread(target=work, args=(server.addr, stop), daemon=True)
            for work in (produce, consume, consume, mail)
        ]
        prepare(client)
        for thread in threads:
            thread.start()
        try:
            take(browser, console.url, client)
        finally:
            stop.set()
            for thread in threads:
                thread.join(timeout=5)  # one that waits for a message ends with the process
    return 0


def prepare(client: Client) -> None:
    client.create_queue("orders", fairness_header="tenant", weight_header="weight", throttle_headers=["provider"])
    client.create_queue("emails", fairness_header="tenant")
    client.create_queue("invoices", fairness_header="tenant")
    client.set_config("throttle.provider:acme-pay", "rate=0.5,burst=1")
    client.enqueue_many("invoices", [OutgoingMessage(b"{}", {"tenant": random.choice(SMALL)}) for _ in range(531)])
    client.enqueue_many("orders", [order(name) for name in TENANTS for _ in range(900)])


def order(tenant: str) -> OutgoingMessage:
    body = {"order": random.randrange(10**6), "tenant": tenant, "items": [{"sku": "A-17", "count": 2}], "total": 84.5}
    headers = {"tenant": tenant, "weight": str(TENANTS.get(tenant, 1)), "region": random.choice(("eu", "us"))}
    if tenant in {"vandelay", "stark"}:
        headers["provider"] = "acme-pay"
    return OutgoingMessage(json.dumps(body).encode(), headers)


def produce(addr: str, stop: threading.Event) -> None:
    with Client(addr, timeout=60) as client:
        while not stop.wait(0.5):
            names = random.choices(list(TENANTS), k=40) + random.choices(SMALL, k=15)
            client.enqueue_many("orders", [order(name) for name in names])
            client.enqueue_many("emails", [order(random.choice(SMALL)) for _ in range(8)])


def consume(addr: str, stop: threading.Event) -> None:
    with Client(addr, timeout=60) as client, client.consume("orders", max_in_flight=12) as orders:
        for message in orders:
            if random.random() < 0.02:
                message.reject(random.choice(ERRORS))
            else:
                message.ack()
            if stop.wait(0.02):
                return


def mail(addr: str, stop: threading.Event) -> None:
    with Client(addr, timeout=60) as client, client.consume("emails", max_in_flight=10) as emails:
        for message in emails:
            message.ack()
            if stop.wait(0.01):
                return


def take(browser: Browser, url: str, client: Client) -> None:
    light = browser.new_context(viewport={"width": 1280, "height": 860}, color_scheme="light")
    home, queue = light.new_page(), light.new_page()
    home.goto(url)
    queue.goto(f"{url}/queue?name=orders")
    time.sleep(HELD_S)
    client.set_config("throttle.provider:acme-pay", "rate=40,burst=40")
    time.sleep(WATCH_S)
    home.screenshot(path=DOCS / "console-home.png")
    queue.screenshot(path=DOCS / "console-queue.png")
    held = client.peek("orders", limit=1, newest=True, fairness_key="vandelay").messages[0]
    message = light.new_page()
    message.goto(f"{url}/message?queue=orders&id={held.id}&history=1")
    message.screenshot(path=DOCS / "console-message.png")
    dark = browser.new_context(viewport={"width": 1280, "height": 860}, color_scheme="dark").new_page()
    dark.goto(f"{url}/dead-letters/queue?name=orders.dlq")
    dark.screenshot(path=DOCS / "console-letters.png")
    for path in sorted(DOCS.glob("console-*.png")):
        Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)
        size = path.stat().st_size
        print(f"{path.relative_to(DOCS.parent)}: {size:,} bytes")
        assert size < MAX_BYTES, path


if __name__ == "__main__":
    sys.exit(main())
