"""Writing to the audit in a tick: entries about a change, purges and redrives from begin to end, refused calls."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fila.broker.audit import RunningSweep, Written
from fila.broker.audit_commands import BeginSweep, EndSweep, RecordRefusals
from fila.broker.tick import Effect, Tick
from fila.storage.audit import AuditRecord


@dataclass(slots=True)
class Entries(Effect):
    """Entries that are written with a tick."""

    written: Written

    def commit(self, tick: Tick) -> None:
        tick.state.audit.commit(self.written)


@dataclass(slots=True)
class Progress(Effect):
    """A sweep has moved some more."""

    sweep: RunningSweep
    done: int

    def commit(self, tick: Tick) -> None:
        self.sweep.done, self.sweep.seen_at = self.done, tick.now


def plan_entries(tick: Tick, records: Sequence[AuditRecord]) -> None:
    """Write entries about a change in the write of the change."""
    if records:
        tick.add(Entries(tick.state.audit.write(tick.batch, tick.store, records)))


def plan_begin_sweep(tick: Tick, command: BeginSweep) -> int:
    """Write what was asked. Returns the number of the entry, which is that of the sweep."""
    audit = tick.state.audit
    record = command.origin.record(tick.now, "queue", command.queue, stage="begin", changes=command.asked)
    written = audit.write(tick.batch, tick.store, [record])
    written.started = RunningSweep(record, seen_at=tick.now, identity=command.identity)
    audit.write_sweep(tick.batch, audit.next_entry, written.started, 0)
    tick.add(Entries(written))
    return audit.next_entry


def plan_progress(tick: Tick, number: int, more: int) -> None:
    """In the write that moves so many messages: that a sweep has moved them."""
    audit = tick.state.audit
    sweep = audit.sweeps.get(number)
    if sweep is not None and more:
        done = sweep.done + more
        audit.write_sweep(tick.batch, number, sweep, done)
        tick.add(Progress(sweep, done))


def plan_end_sweep(tick: Tick, command: EndSweep) -> None:
    """Write how many messages there were."""
    audit = tick.state.audit
    sweep = audit.sweeps.get(command.number)
    if sweep is None:
        return
    record = replace(
        sweep.begin,
        at=tick.now,
        stage="end",
        outcome=command.outcome,
        count=sweep.done,
        began=command.number,
        changes={},
    )
    audit.forget_sweep(tick.batch, command.number)
    written = audit.write(tick.batch, tick.store, [record])
    written.ended = command.number
    tick.add(Entries(written))


def plan_refusals(tick: Tick, command: RecordRefusals) -> None:
    """Write which calls were refused."""
    tick.add(Entries(tick.state.audit.write(tick.batch, tick.store, command.records, refused=True)))
