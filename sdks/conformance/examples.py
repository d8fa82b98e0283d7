"""The examples of each SDK against a real server: `python -m sdks.conformance.examples [language ...]`.

- An example is a small program that does the same in every language, so all of them print the same.
- What it prints is not believed alone: the journal of the server tells what happened to its messages.
- It leaves nothing behind: neither a queue nor a setting.
"""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass

from fila import Client
from fila.testing import ServerProcess
from sdks.conformance.__main__ import LANGUAGES, SDKS


@dataclass(frozen=True, slots=True)
class Example:
    """What an example prints, and what the journal tells of its queue: kinds with fairness keys, and how many."""

    queue: str
    printed: str
    journal: dict[str, int]


EXAMPLES = {
    "fair_scheduling": Example(
        "example-fairness",
        """\
enqueued 100 messages of bulk, then 2 of acme
delivered: bulk acme bulk acme bulk bulk
""",
        {"enqueued bulk": 100, "enqueued acme": 2, "acked bulk": 4, "acked acme": 2},
    ),
    "throttling": Example(
        "example-throttling",
        """\
provider slow: one message now, the next in 100 seconds
delivered: slow-1 fast-1 fast-2 fast-3
without the limit: slow-2 slow-3
""",
        {"enqueued default": 6, "acked default": 6},
    ),
    "dead_letters": Example(
        "example-letters",
        """\
attempt 1 fails
attempt 2 fails
dead letter: broken, 2 attempts, the last: cannot be read
back in the queue: 1
delivered: broken
""",
        {"enqueued default": 1, "nacked default": 1, "dead default": 1, "redriven default": 1, "acked default": 1},
    ),
}
CONFIG = '[log]\nlevel = "warning"\n[journal]\nenabled = true\n'
_KINDS = ("enqueued", "acked", "nacked", "expired", "dead", "redriven", "dropped")
_LONGEST_S = 120


def failure(sdk: str, name: str, server: ServerProcess, client: Client) -> str:
    """What is wrong with an example, empty if nothing is."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("FILA_")}
    try:
        ran = subprocess.run(  # noqa: S603  # of this repository
            [SDKS / sdk / "example", name],
            check=False,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            env=env | {"FILA_ADDR": server.addr},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{name}: {error}"
    if ran.returncode or ran.stdout != EXAMPLES[name].printed:
        return f"{name}: exit code {ran.returncode}, and it printed\n{ran.stdout}{ran.stderr}"
    return unseen(EXAMPLES[name], client) or left_behind(client)


def unseen(example: Example, client: Client) -> str:
    """How the journal differs from what an example says that it did, empty if it does not."""
    queues = (example.queue, f"{example.queue}.dlq")
    entries = [each for each in client.read_journal() if each.queue in queues and each.kind in _KINDS]
    found = Counter(f"{each.kind} {each.fairness_key}" for each in entries)
    return "" if found == example.journal else f"{example.queue}: the journal tells {dict(found)}"


def left_behind(client: Client) -> str:
    """Queues and settings that are there, empty if there are none."""
    queues, settings = [each.name for each in client.list_queues()], client.list_config()
    return f"left behind: queues {queues}, settings {settings}" if queues or settings else ""


def main(chosen: list[str]) -> int:
    """The exit code: 0 only if all of them work."""
    if unknown := set(chosen) - set(LANGUAGES):
        sys.stderr.write(f"no such SDK: {', '.join(sorted(unknown))}; there are {', '.join(LANGUAGES)}\n")
        return 2
    failed = 0
    for sdk in chosen or LANGUAGES:
        with ServerProcess(config=CONFIG) as server, Client(server.addr) as client:
            found = [each for name in EXAMPLES if (each := failure(sdk, name, server, client))]
        failed += len(found)
        sys.stdout.write("".join(f"{sdk}: {each}\n" for each in found))
        sys.stdout.write(f"{sdk}: examples: {len(EXAMPLES) - len(found)} of {len(EXAMPLES)} work\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
