"""A broker at work on a clock of its own, for replays of its journal."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from fila.broker.commands import AckGroup, Enqueue, Nack, Produced, SetConfig, Settle, UpdateQueue
from fila.pipelines.whatif.entries import Entry, Hold
from fila.storage.journal import Kind
from tests.helpers import journal
from tests.helpers.broker import MS, Driver, Recipient, incoming

SETTINGS = {
    "fairness_header": "tenant",
    "weight_header": "weight",
    "cost_header": "cost",
    "throttle_headers": ("provider",),
    "visibility_timeout_ms": 400,
    "quantum": 3,
    "max_attempts": 4,
}
TENANTS = {"ada": 1, "bob": 3, "cyd": 1, "dee": 7}
QUEUES = ("orders", "mail")


class Shop:
    """Producers, consumers and an operator, whose every step comes from one seed."""

    def __init__(self, seed: int, tick_ns: int = 1) -> None:
        """`tick_ns`: how long a tick takes. A real clock shows each of them another time."""
        self.random = Random(seed)
        self._tick_ns = tick_ns
        self.driver = Driver()
        for name in QUEUES:
            self.driver.create(name, **SETTINGS)
        self._steps: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = count()
        self._recipients: list[Recipient] = []
        self.delivered: list[tuple[str, int, int]] = []
        """Queue, message and time of each delivery"""

    def at(self, ms: float, step: Callable[[], None]) -> None:
        """Have something done so long from now."""
        heappush(self._steps, (self.driver.now + int(ms * MS), next(self._serial), step))

    def run(self, until_ms: int) -> None:
        driver, end = self.driver, self.driver.now + until_ms * MS
        while True:
            times = [step[0] for step in self._steps[:1]]
            wakeup = driver.engine.next_wakeup()
            at = min([*times, *([] if wakeup is None else [wakeup])], default=end)
            if at >= end:
                driver.now = end
                return
            driver.now = max(driver.now + self._tick_ns, at)
            while self._steps and self._steps[0][0] <= driver.now:
                heappop(self._steps)[2]()
            self._tick()

    def _tick(self) -> None:
        driver = self.driver
        driver.tick()
        while driver.engine.has_work(driver.now):
            self._collect()
            driver.now += self._tick_ns
            driver.tick()
        self._collect()

    def _collect(self) -> None:
        for recipient in self._recipients:
            for one in recipient.take():
                self.delivered.append((recipient.queue, one.seq, self.driver.now))
                self._work(recipient.queue, one)

    # What they do

    def join(self, queue: str, max_in_flight: int) -> Recipient:
        self._recipients.append(self.driver.join(queue, max_in_flight))
        return self._recipients[-1]

    def leave(self, recipient: Recipient) -> None:
        self.driver.leave(recipient)
        self._recipients.remove(recipient)

    def send(self, queue: str, count: int, *, delays: bool) -> None:
        """Mostly of one tenant; half of it limited by a provider, and some of it dear, urgent or later."""
        random, messages = self.random, []
        for _ in range(count):
            tenant = random.choices([*TENANTS], [8, 2, 1, 1])[0]
            headers = {"tenant": tenant, "weight": str(TENANTS[tenant])}
            if random.random() < 0.5:
                headers["provider"] = random.choice(["aws", "gcp"])
            if random.random() < 0.2:
                headers["cost"] = str(random.randint(0, 6))
            delay_ms = random.choice([0, 0, 0, 41, 73]) if delays else 0
            messages.append(incoming(queue, headers=headers, priority=random.choice([5, 5, 0, 9]), delay_ms=delay_ms))
        self.driver.submit(lambda reply: Enqueue(messages, reply, Produced("", 0, 0, 0)))

    def configure(self, key: str, value: str | None) -> None:
        self.driver.submit(lambda reply: SetConfig(key, value, reply))

    def update(self, queue: str, **settings: Any) -> None:
        self.driver.submit(lambda reply: UpdateQueue(queue, settings, reply))

    def _work(self, queue: str, one: Any) -> None:
        how, driver = self.random.random(), self.driver

        def end() -> None:
            if how < 0.85:
                driver.submit(lambda reply: Settle(reply, acks=[AckGroup(queue, [one.id], one.token)]))
            elif how < 0.97:
                delay_ms = 30 if how < 0.9 else 0
                driver.submit(lambda reply: Settle(reply, nacks=[Nack(queue, one.id, "", one.token, delay_ms)]))

        if how < 0.97:  # others are forgotten: their leases end
            self.at(self.random.uniform(1, 40), end)

    def entries(self) -> list[Entry]:
        """The journal."""
        return entries_of(self.driver)


def busy(seed: int, tick_ns: int = 1) -> Shop:
    """Two queues that share two limits, for two seconds: bursts, retries, deaths, consumers that come and go, changes
    of limits, weights of rounds and pauses.
    """
    shop = Shop(seed, tick_ns)
    random = shop.random
    shop.configure("throttle.provider:aws", "rate=211,burst=10")
    shop.configure("throttle.provider:gcp", "max_in_flight=3")
    for name in QUEUES:
        for _ in range(2):
            shop.join(name, random.randint(2, 12))
    for name in QUEUES:
        for _ in range(12):
            size = random.randint(1, 50)
            shop.at(random.uniform(0, 1200), lambda name=name, size=size: shop.send(name, size, delays=True))
    shop.at(300, lambda: shop.configure("throttle.provider:aws", "rate=53,burst=1"))
    shop.at(500, lambda: shop.update("orders", quantum=9))
    shop.at(600, lambda: shop.update("mail", paused=True))
    shop.at(650, lambda: shop.leave(shop._recipients[0]))
    shop.at(800, lambda: shop.update("mail", paused=False))
    shop.at(850, lambda: shop.join("orders", 5))
    shop.at(1000, lambda: shop.configure("throttle.provider:gcp", None))
    shop.run(2000)
    return shop


def entries_of(driver: Driver) -> list[Entry]:
    """The journal of a broker as an executor reads it from an export, without holds."""
    return [
        Entry(
            one.number,
            one.at,
            one.kind.name.lower(),
            one.queue,
            one.key,
            one.priority,
            one.weight,
            one.seq,
            one.attempt,
            one.cost,
            one.until,
            one.count,
            Kind(one.cause).name.lower() if one.cause else "",
            one.target,
            one.note or {},
        )
        for one in journal.read_all(driver.journal)
    ]


def with_holds(entries: list[Entry]) -> list[Entry]:
    """Each message that appears with what became of its deliveries."""
    holds: dict[int, list[Hold]] = {}
    leased: dict[int, Entry] = {}
    for entry in entries:
        if not entry.message:
            continue
        before = leased.pop(entry.message, None)
        if before is not None:
            hold = Hold(entry.at - before.at, entry.kind, max(0, entry.until - entry.at), entry.number)
            holds[entry.message].append(hold)
        if entry.kind == "leased":
            holds.setdefault(entry.message, [])
            leased[entry.message] = entry
    for message in leased:
        holds[message].append(Hold(-1, "", 0, 0))
    return [
        entry._replace(holds=tuple(holds.get(entry.message, ()))) if entry.kind == "enqueued" else entry
        for entry in entries
    ]
