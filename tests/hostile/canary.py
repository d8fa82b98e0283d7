"""The process of a canary (`support.Canary`): python -m tests.hostile.canary ADDR QUEUE INTERVAL_MS.

Says "ready" when it has made its queue, and "called" after each round. When its input ends, it prints what it saw as
JSON and ends.
"""

import json
import sys
import threading
import time
from contextlib import suppress

from fila import Client, FilaError, QueueAlreadyExistsError

MOST_ERRORS = 5


def main(addr: str, queue: str, interval_ms: int) -> None:
    ended = threading.Event()
    took: list[float] = []
    errors: list[str] = []
    failed = 0
    with Client(addr, timeout=30) as client:
        with suppress(QueueAlreadyExistsError):
            client.create_queue(queue)
        with client.consume(queue, max_in_flight=1) as messages:
            _exchange(client, queue, messages)  # connections are made
            print("ready", flush=True)
            threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
            while not ended.wait(interval_ms / 1000):
                began = time.perf_counter()
                try:
                    _exchange(client, queue, messages)
                except FilaError as error:
                    failed += 1
                    if len(errors) < MOST_ERRORS:
                        errors.append(f"{type(error).__name__}: {error}")
                took.append((time.perf_counter() - began) * 1000)
                print("called", flush=True)
    took.sort()
    print(
        json.dumps(
            {
                "calls": len(took),
                "failed": failed,
                "errors": errors,
                "p50_ms": _quantile(took, 0.5),
                "p99_ms": _quantile(took, 0.99),
                "worst_ms": _quantile(took, 1.0),
            }
        )
    )


def _exchange(client, queue, messages):
    client.enqueue(queue, None, b"canary")
    next(messages).ack()


def _quantile(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
