"""Grants on disk, and what the plans of one tick do to leases before any of it is durable."""

from collections.abc import Iterator

from fila.broker.commands import AckGroup, ExtendGroup
from fila.broker.queue import QueueState
from fila.core.ids import MessageIds
from fila.core.leases import Grant
from fila.storage import codec, keys
from fila.storage.base import Batch, Family
from fila.storage.records import GrantRecord


def token_text(token: int) -> str:
    """A lease's token as clients see it."""
    return f"{token:016x}"


def read_token(text: str) -> int | None:
    """The token in a text; None for no text; one that no lease has for any other text."""
    if not text:
        return None
    try:
        return int(text, 16)
    except ValueError:
        return -1


def put_grant(batch: Batch, queue: QueueState, grant: Grant) -> None:
    """Write a grant's two records."""
    attempts = queue.attempts
    tried = {seq: attempts[seq] for seq in grant.members if seq in attempts} if attempts else {}
    record = codec.grant(GrantRecord(grant.token, grant.expires_at, list(grant.members), tried))
    batch.put(Family.LEASES, keys.grant(queue.name, grant.number), record)
    batch.put(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, queue.name, grant.number), b"")


class EndingLeases:
    """The leases that end in one tick. So two commands of a tick cannot both settle a message, and the records of a
    grant go with the last of its messages.
    """

    __slots__ = ("_batch", "_left", "_with_releases", "gone")

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.gone: set[int] = set()
        """Messages whose lease ends in this tick"""
        self._left: dict[Grant, int] = {}
        """How many members remain in each grant that lost some in this tick"""
        self._with_releases: dict[tuple[str, int, int], QueueState] = {}
        """Leases (queue, consumer, token) from which messages were released without counting an attempt"""

    def holders(
        self, ids: MessageIds, queue: QueueState, group: AckGroup | ExtendGroup
    ) -> Iterator[tuple[str, int, Grant | None]]:
        """For each message of a group its sequence number and the grant that holds it, None when none does."""
        token = read_token(group.token)
        to_seq, find, gone = ids.seq, queue.leases.find, self.gone
        for message_id in group.message_ids:
            seq = to_seq(message_id)
            if seq is None or seq in gone:
                yield message_id, seq or 0, None
            else:
                grant = find(seq, token)
                if grant is not None and grant.claim is not None and grant.claim.acked:
                    grant = None
                yield message_id, seq, grant

    def drop(self, queue: QueueState, grant: Grant, count: int) -> None:
        """Messages leave their grant, whether or not their lease ends with that."""
        left = self._left.get(grant)
        left = (len(grant.members) if left is None else left) - count
        self._left[grant] = left
        if not left:
            self._batch.delete(Family.LEASES, keys.grant(queue.name, grant.number))
            self._batch.delete(Family.LEASE_EXPIRY, keys.grant_expiry(grant.expires_at, queue.name, grant.number))

    def end(self, queue: QueueState, grant: Grant, seq: int) -> None:
        """The lease of one message ends."""
        self.gone.add(seq)
        self.drop(queue, grant, 1)

    def note_release(self, queue: QueueState, grant: Grant) -> None:
        """A message of this lease is released without counting an attempt."""
        self._with_releases[queue.name, grant.consumer, grant.token] = queue

    def rewrite_released(self) -> None:
        """Write down what remains of the leases from which messages were released.

        A message that comes back otherwise counts an attempt, by which recovery tells it from one that is still leased.
        A lease that was extended has several grants, and the records of the earlier ones may still name the message.
        """
        for (_, consumer, token), queue in self._with_releases.items():
            for grant in queue.leases.of_consumer(consumer):
                remaining = {seq: message for seq, message in grant.members.items() if seq not in self.gone}
                if grant.token == token and remaining and self._left.get(grant, 1):
                    put_grant(self._batch, queue, Grant(grant.number, token, consumer, grant.expires_at, remaining))
