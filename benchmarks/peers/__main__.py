"""Measures Fila beside Redis Streams, RabbitMQ, NATS JetStream and beanstalkd, each a real server on loopback.

    python -m benchmarks.peers [--quick] [--repeat N] [--only WORKLOADS] [--peers PEERS]
    python -m benchmarks.peers --render benchmarks/results/peers-....json

Progress goes to the terminal, every figure to a JSON file, and a full run writes the page docs/benchmarks-peers.md with
its picture; a quick or a partial one writes them beside the JSON file. Ctrl-C ends a run with what it has measured.
Peers that are not installed are skipped with a line that says so. Exit code 1 if something that was tried failed.
"""

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine
from benchmarks.__main__ import RESULTS, positive, some_of
from benchmarks.harness import end_on_sigterm
from benchmarks.peers.page import render
from benchmarks.peers.peers import PEERS, Peer
from benchmarks.peers.plot import draw
from benchmarks.peers.results import Cell, Comparison
from benchmarks.peers.workloads import FULL, QUICK, WORKLOADS, Scale, Workload
from benchmarks.report import Display, digits

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "benchmarks-peers"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what was asked for."""
    options = _parser().parse_args(arguments)
    end_on_sigterm()
    if options.render:
        comparison = Comparison.from_json(json.loads(options.render.read_text()))
        _publish(comparison, options.page or DOCS)
        return 0
    scale = QUICK if options.quick else FULL
    if options.pending:
        scale = replace(scale, pending=options.pending)
    if options.messages:
        scale = replace(scale, messages=options.messages)
    repeat = options.repeat or (1 if options.quick else 3)
    comparison = _compare(options.peers, options.only, scale, repeat, quick=options.quick)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"peers-{comparison.began.replace(':', '')}.json"
    path.write_text(json.dumps(comparison.as_json(), indent=1) + "\n")
    print(f"every figure: {path}")
    measured = all(cell.samples or cell.error for cell in comparison.cells)
    whole = measured and not options.quick and options.only == WORKLOADS and options.peers == PEERS
    _publish(comparison, options.page or (DOCS if whole else options.output))
    return 1 if any(cell.error for cell in comparison.cells) else 0


def _compare(
    peers: Sequence[Peer], workloads: Sequence[Workload], scale: Scale, repeat: int, *, quick: bool
) -> Comparison:
    display = Display()
    skipped = {peer.name: why for peer in peers if (why := peer.missing())}
    for name, why in skipped.items():
        display.line(f"{name}: SKIPPED: {why}")
    present = [peer for peer in peers if peer.name not in skipped]
    facts = machine.facts()
    began, start = datetime.now(UTC), time.monotonic()
    settings = [(workload, size) for workload in workloads for size in workload.sizes]
    samples: dict[tuple[str, str, int], list[dict[str, float]]] = {}
    errors: dict[tuple[str, str, int], str] = {}
    with display.following(repeat * len(settings) * len(present)), suppress(KeyboardInterrupt):
        for index in range(repeat):
            for workload, size in settings:
                # A machine that gets slower or faster during a run must not favour one end of the list.
                for peer in present[:: 1 if index % 2 == 0 else -1]:
                    key = (peer.name, workload.name, size)
                    display.step(f"{index + 1}/{repeat} {workload.name} {size} B: {peer.name}")
                    try:
                        sample = dict(workload.sample(peer, scale, size))
                    except Exception as failure:  # noqa: BLE001 - the others are still worth measuring
                        errors[key] = f"{type(failure).__name__}: {str(failure).strip().splitlines()[-1]}"
                        display.done(f"{peer.name} {workload.name} {size} B: FAILED: {errors[key]}")
                        continue
                    samples.setdefault(key, []).append(sample | {"load_average": machine.load_average()[0]})
                    display.done(f"{peer.name} {workload.name} {size} B: {_shown(workload, sample)}")
    return Comparison(
        began=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=time.monotonic() - start,
        quick=quick,
        repeat=repeat,
        scale=asdict(scale),
        machine=facts,
        load_average_after=machine.load_average(),
        peers={peer.name: _facts(peer) for peer in present},
        skipped=skipped,
        cells=[
            Cell(peer.name, workload.name, size, samples.get(key, []), errors.get(key, ""))
            for peer in present
            for workload, size in settings
            for key in [(peer.name, workload.name, size)]
        ],
    )


def _facts(peer: Peer) -> dict[str, str]:
    versions = peer.versions()
    return {
        "title": peer.title,
        "server": versions["server"],
        "client_version": versions["client"] or "none",
        "fsync": peer.fsync,
        "durability": peer.durability,
        "client": peer.client,
    }


def _shown(workload: Workload, sample: dict[str, float]) -> str:
    return ", ".join(f"{figure.label} {digits(sample[figure.name])} {figure.unit}" for figure in workload.figures)


def _publish(comparison: Comparison, folder: Path) -> None:
    picture = folder / f"{PAGE}.png"
    draw(comparison, picture)
    page = folder / f"{PAGE}.md"
    page.write_text(render(comparison, picture.name, "make bench-peers"))
    print(f"page: {page}\npicture: {picture}")


def _parser() -> argparse.ArgumentParser:
    workloads, peers = ", ".join(each.name for each in WORKLOADS), ", ".join(each.name for each in PEERS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="tiny counts and one repeat: shows that it runs, no figures"
    )
    parser.add_argument("--repeat", type=positive, metavar="N", help="repeats (default 3)")
    parser.add_argument(
        "--only", type=some_of(WORKLOADS), default=WORKLOADS, metavar="NAMES", help=f"some of: {workloads}"
    )
    parser.add_argument("--peers", type=some_of(PEERS), default=PEERS, metavar="NAMES", help=f"some of: {peers}")
    parser.add_argument("--messages", type=positive, metavar="N", help="messages of produce, drain and lifecycle")
    parser.add_argument("--pending", type=positive, metavar="N", help="pending messages of restart (default 1,000,000)")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER", help="where the JSON file goes")
    parser.add_argument("--page", type=Path, metavar="FOLDER", help="where page and picture go")
    parser.add_argument("--render", type=Path, metavar="FILE", help="make page and picture of an earlier run's file")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
