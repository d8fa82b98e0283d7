"""The comparison as a page for people: every figure with its spread, how it was measured, and where Fila loses."""

from collections.abc import Sequence

from benchmarks.peers.results import Cell, Comparison, Standing, standings
from benchmarks.peers.workloads import Figure, Workload
from benchmarks.report import digits

_METHOD = """\
- **Real servers.** Each server is a process on a loopback port with an empty temporary folder, started anew for every
  single measurement. It has its default settings, except for what the table above states and what a backlog of this
  size needs: RabbitMQ may use 60 % of the memory before it slows producers down, and its heartbeats are off, because a
  client that is busy with a batch does not answer them; NATS delivers more unacknowledged messages than its default of
  1,000. Producers and consumers are separate Python processes.
- **Confirmed means the same for all**: the message survives `kill -9` of the server. What a power loss takes differs,
  so compare `fsync first` with `fsync first`. {strict}
- **Each Python client is used in its fastest way** to move many messages: batches, pipelines, windows. Event loops
  are uvloop's.
- **Only the work is timed.** A client connects first, waits for a common starting signal, and closes after the clock
  has stopped. A consumer's time ends when the server has its last acknowledgement.
- **CPU seconds** are user and system time of all threads between the same two moments. For RabbitMQ, they are those of
  the Erlang machine.
- **Alternating order.** In every repeat, each workload goes through all peers, and the next repeat reverses the order,
  so that a slow minute does not hit one peer alone. The tables show the median and, in brackets, the smallest and
  largest.
"""

_LIMITS = """\
- There is one machine, and the clients share its cores with the server: a client that needs less CPU leaves more for
  its server. In another language the clients, and so the figures, would differ.
- Each broker is one node. RabbitMQ's quorum queues, NATS and Redis are built to be replicated, and Fila is not. These
  figures do not show what replication is worth.
- There is one queue, one producer, one consumer, loopback and no TLS. The figures do not show how many connections or
  queues a server can hold.
- The versions are those of the machine's distribution, or the newest where they are built from source. Others may be
  faster.
- beanstalkd's known Python clients cannot pipeline. Its figures are those of its protocol on a plain socket, which few
  users have.
- Redis and beanstalkd keep everything in memory, so memory bounds their backlog.
- Quiet tenants share one queue with the noisy one, because fair scheduling is for that case. With one queue for each
  tenant and a consumer that takes from them in turn, the other brokers would serve them as soon, for as many queues as
  they can have.
- Backlogs fit into the page cache: nothing is read from a disk.
"""


def render(comparison: Comparison, picture: str, command: str) -> str:
    """The whole page, in Markdown."""
    parts = [
        "# Fila compared with other brokers",
        f"Written by `{command}`; do not edit. The JSON file that the command names has every repeat.",
        *(
            ["**A quick run: it shows that the command works, and its figures mean nothing.**"]
            if comparison.quick
            else []
        ),
        f"![Fila compared with other brokers]({picture})",
        "## Which brokers and settings",
        _who(comparison),
        *(
            ["Not measured: " + "; ".join(f"{name}: {why}" for name, why in comparison.skipped.items()) + "."]
            * bool(comparison.skipped)
        ),
        "## How they are measured",
        _METHOD.rstrip().format(strict=_strict(comparison)),
        _where(comparison),
        "## Figures",
        *[_section(comparison, workload, size) for workload, size in comparison.settings()],
        "## Where Fila is behind, and where it is ahead",
        _verdict(standings(comparison), comparison),
        "## What these figures do not show",
        _LIMITS.rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


def _where(comparison: Comparison) -> str:
    machine = comparison.machine
    before, after = machine["load_average"][0], comparison.load_average_after[0]
    return (
        f"Measured on {machine['cores']} cores ({machine['cpu']}), {machine['memory_bytes'] / 1e9:.0f} GB, "
        f"{machine['system']}, Python {machine['python']}, commit `{machine['revision']}`, {comparison.began}, "
        f"{_repeats(comparison)}, {comparison.seconds / 60:.0f} minutes; load average {before:g} before and "
        f"{after:g} after."
    )


def _repeats(comparison: Comparison) -> str:
    """How often each was measured; a run that was stopped has fewer of what comes last."""
    counts = [len(cell.samples) for cell in comparison.cells if cell.samples] or [0]
    if min(counts) == max(counts):
        return f"{max(counts)} repeats"
    return f"{max(counts)} repeats, {min(counts)} of what comes last"


def _strict(comparison: Comparison) -> str:
    if "fila-fsync" in comparison.peers:
        return "Fila and Redis are therefore also measured in their strict setting."
    return (
        "Fila and Redis were not measured in their strict setting in this run, so RabbitMQ promises more than they do."
    )


def _who(comparison: Comparison) -> str:
    rows = [
        (facts["title"], facts["server"], facts["fsync"], facts["durability"], facts["client"], facts["client_version"])
        for facts in comparison.peers.values()
    ]
    return table(
        ("peer", "version", "fsync", "what a confirmation means", "client and its mode", "client version"), rows
    )


def _section(comparison: Comparison, workload: Workload, size: int) -> str:
    counts = {
        "one_by_one": f"{comparison.scale['one_by_one']:,} messages",
        "latency": f"{comparison.scale['latency_seconds']:g} s",
        "tenants": f"backlog of {comparison.scale['noisy']:,}",
        "restart": f"{comparison.scale['pending']:,} messages",
    }
    count = counts.get(workload.name, f"{comparison.scale['messages']:,} messages")
    heading = ("peer", "fsync", *(f"{figure.label}, {figure.unit}" for figure in workload.figures))
    cells = comparison.measured(workload, size)
    best = {figure.name: _best(cells, figure) for figure in workload.figures}
    rows = [
        (
            f"{comparison.peers[cell.peer]['title']} {comparison.peers[cell.peer]['server']}",
            comparison.peers[cell.peer]["fsync"],
            *(_value(cell, figure, bold=best[figure.name] == cell.peer) for figure in workload.figures),
        )
        for cell in cells
    ]
    failed = [
        f"{comparison.peers[cell.peer]['title']}: {cell.error}"
        for cell in comparison.cells
        if cell.error and (cell.workload, cell.size) == (workload.name, size)
    ]
    parts = [
        f"### {workload.title[:1].upper()}{workload.title[1:]}, {size:,} B",
        f"{count}; {workload.what}.",
        table(heading, rows),
    ]
    return "\n\n".join(parts + failed)


def _best(cells: Sequence[Cell], figure: Figure) -> str:
    pick = max if figure.better == "high" else min
    return pick(cells, key=lambda cell: cell.spread(figure.name).median).peer


def _value(cell: Cell, figure: Figure, *, bold: bool) -> str:
    spread = cell.spread(figure.name)
    median = f"**{digits(spread.median)}**" if bold else digits(spread.median)
    return f"{median} ({digits(spread.min)} - {digits(spread.max)})" if len(cell.samples) > 1 else median


def _verdict(found: Sequence[Standing], comparison: Comparison) -> str:
    """Each figure of ours against the best of the other brokers: the worst first."""
    if not found:
        return "Nothing to compare."
    rows = [
        (
            f"{each.workload.title}, {each.size:,} B",
            each.figure.label,
            f"{digits(each.ours)} {each.figure.unit}",
            f"{digits(each.best)} {each.figure.unit}, {comparison.peers[each.best_peer]['title']}",
            _words(each.lead),
        )
        for each in sorted(found, key=lambda each: each.lead)
    ]
    behind = sum(each.lead < 1 for each in found)
    told = (
        "Each row compares Fila in its default setting with the best of the other brokers, whatever that one "
        f"guarantees. Fila is behind in {behind} of {len(found)} rows."
    )
    return told + "\n\n" + table(("workload", "figure", "Fila", "best of the other brokers", "Fila is"), rows)


def _words(lead: float) -> str:
    return f"{digits(lead)} x better" if lead >= 1 else f"{digits(1 / lead) if lead else 'far more than 1'} x worse"


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(each.replace("|", "\\|") for each in line) + " |" for line in lines)
