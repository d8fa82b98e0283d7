"""The command `Settle`: what consumers say of the messages that they hold.

Acks come first, then nacks, and extensions when all commands of the tick are planned. Each message succeeds or fails by
itself. A message that nobody holds fails with MessageNotFound here; `lookup.py` finds out whether it still exists.

docs/changing.md says where to go to add a way to settle.
"""

from collections.abc import Callable, Iterator, Mapping

from fila.broker.ack import plan_acks
from fila.broker.admission import check_delay, check_settle_size
from fila.broker.attempts import EndedLease
from fila.broker.commands import AckGroup, Failure, Nack, Settle
from fila.broker.extension import ask_extension
from fila.broker.grants import read_token
from fila.broker.lease_end import ask, plan_lease_end
from fila.broker.outcomes import OUTCOMES
from fila.broker.state import BrokerState
from fila.broker.tick import Tick
from fila.core.errors import BrokerError, InvalidArgument, MessageNotFound
from fila.core.policy import Verdict
from fila.storage.base import Storage
from fila.storage.records import LeaseEnd


def plan_settle(tick: Tick, command: Settle) -> list[Failure]:
    """Returns what failed. Raises LimitExceeded for a batch that is too large."""
    check_settle_size(command.size, tick.state.limits)
    failures: list[Failure] = []
    for acks in command.acks:
        failures += plan_acks(tick, acks)
    for nack in command.nacks:
        try:
            _plan_nack(tick, nack, command.answers)
        except BrokerError as error:
            failures.append(Failure(nack.queue, nack.message_id, error))
    for group in command.extends:
        ask_extension(tick, group, failures)
    return failures


def _plan_nack(tick: Tick, nack: Nack, answers: Mapping[Nack, tuple[object, Verdict]]) -> None:
    queue = tick.state.queue(nack.queue)
    check_delay(nack.delay_ms, tick.state.limits)
    group = AckGroup(nack.queue, [nack.message_id], nack.token)
    ((message_id, seq, grant),) = tick.leases.holders(tick.state.ids, queue, group)
    if grant is None:
        raise MessageNotFound(message_id, queue.name)
    if nack.release and nack.dead_letter:
        raise InvalidArgument("release and dead_letter cannot both be set")
    failed = EndedLease(queue, grant, seq, _end_of(nack), nack.error, nack.delay_ms, nack.dead_letter)
    if nack in answers and answers[nack][0] is queue.hooks:
        failed.verdict = answers[nack][1]
    plan_lease_end(tick, failed)


def _end_of(nack: Nack) -> LeaseEnd:
    """How a nack ends the lease of its message; what follows is in the table of outcomes."""
    return LeaseEnd.RELEASED if nack.release else LeaseEnd.NACKED


def ask_on_failure_ahead(
    state: BrokerState, store: Storage, command: Settle, clock: Callable[[], int]
) -> Iterator[None]:
    """Have hooks judge messages that are given back before that is planned. Yields before each call of a hook."""
    answers, changed = command.answers, -1
    while changed != state.hooks_changed:
        changed = state.hooks_changed
        for nack in command.nacks:
            queue = state.queues.get(nack.queue)
            if queue is None or queue.hooks is None or nack.dead_letter or not OUTCOMES[_end_of(nack)].by_choice:
                continue
            seq = state.ids.seq(nack.message_id)
            grant = queue.leases.find(seq, read_token(nack.token)) if seq is not None else None
            if seq is None or grant is None or (nack in answers and answers[nack][0] is queue.hooks):
                continue
            yield
            grant = queue.leases.find(seq, read_token(nack.token))  # time may have passed
            if grant is None:
                continue
            verdict = ask(state, store, EndedLease(queue, grant, seq, _end_of(nack), nack.error), clock())
            if verdict is not None:
                answers[nack] = (queue.hooks, verdict)
