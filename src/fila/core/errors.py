"""Everything the broker refuses, as one tree.

BrokerError
├── InvalidArgument      the request can never succeed as it is
├── LimitExceeded        larger than a limit allows
├── QueueNotFound
├── QueueAlreadyExists
├── MessageNotFound      no such message is leased
│   ├── LeaseEnded       it is still there, but not under that lease
│   ├── MessageGone      it exists no more, and never will again
│   └── NoSuchMessage    it is nowhere in the queue
├── ConfigNotFound
├── NotNow               something else must happen first
│   ├── ClaimLost        the claim was acked, was never made, or ended on the way
│   ├── Fenced           a reader of a later epoch has taken over
│   ├── TooFarAhead      a number that only grows would grow by too much at once
│   └── NotStaged        a transaction lacks messages that belong to it
├── StaleSequence        a producer's batch from too far back to answer again
├── SequenceReused       a producer's batch under the number of another one
├── Overloaded           too much is waiting; try again later
├── ShuttingDown         the broker takes no more work
├── StoreFailed          the store did not take the write, or could not be read; nothing was changed
│   ├── StoreBusy        the store is behind with its files; the same write may succeed soon
│   └── StoreFull        there is no room on the disk
└── StoreUnusable        the store cannot be opened or trusted
    ├── StoreLocked      another broker has it open
    ├── StoreLost        removed or replaced while it was open
    ├── StoreCorrupt
    └── StoreTooNew      written by a later version

The text of an error is meant for the person who sent the request. It never holds payloads or header values.
"""

ECHO = 80
"""How much of a name is repeated in an error."""


def quoted(name: str) -> str:
    """A client's own word, shortened so that an error stays an error however long the word was."""
    return f'"{name}"' if len(name) <= ECHO else f'"{name[:ECHO]}..."'


class BrokerError(Exception):
    """Something the broker refuses."""


class InvalidArgument(BrokerError):
    """The request can never succeed as it is."""


class LimitExceeded(BrokerError):
    """The request is larger than a limit allows."""


class QueueNotFound(BrokerError):
    """There is no queue of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"queue {quoted(name)} does not exist")


class QueueAlreadyExists(BrokerError):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(f"queue {quoted(name)} already exists")


class MessageNotFound(BrokerError):
    """No such message is leased, or not under that lease."""

    def __init__(self, message_id: str, queue: str) -> None:
        super().__init__(f"message {message_id[:ECHO]} is not leased in queue {quoted(queue)}")


class LeaseEnded(MessageNotFound):
    """The message is still there, perhaps as a dead letter, but the lease under which it was delivered has ended."""

    def __init__(self, message_id: str, queue: str) -> None:
        BrokerError.__init__(self, f"message {message_id[:ECHO]} in queue {quoted(queue)}: its lease has ended")


class MessageGone(MessageNotFound):
    """The message is neither in the queue nor among its dead letters: it was acked, purged or never there."""

    def __init__(self, message_id: str, queue: str) -> None:
        super().__init__(message_id, queue)
        self.args = (f"{self.args[0]}: it was acked or removed, or was never there",)


class NoSuchMessage(MessageNotFound):
    """The queue holds no such message."""

    def __init__(self, text: str) -> None:
        BrokerError.__init__(self, text)


class ConfigNotFound(BrokerError):
    """There is no such entry in the runtime configuration."""

    def __init__(self, key: str) -> None:
        super().__init__(f"config key {quoted(key)} is not set")


class NotNow(BrokerError):
    """The request is right, but something else must happen first."""


class ClaimLost(NotNow):
    """The claim was acked, was never made, or ended on the way."""


class Fenced(NotNow):
    """A reader of a later epoch has taken the group over."""


class TooFarAhead(NotNow):
    """A number that only grows would grow by so much at once that nobody could come after it."""


class NotStaged(NotNow):
    """A transaction lacks messages that belong to it."""


class StaleSequence(BrokerError):
    """A producer sent a batch again that lies too far back to be answered again."""


class SequenceReused(BrokerError):
    """A batch has the producer and the sequence of another one."""


class Overloaded(BrokerError):
    """The broker has more work waiting than it may hold; try again later."""


class ShuttingDown(BrokerError):
    """The broker is shutting down and takes no more work."""

    def __init__(self) -> None:
        super().__init__("the broker is shutting down")


class StoreFailed(BrokerError):
    """The store did not take the write, or could not be read; nothing was changed."""


class StoreBusy(StoreFailed):
    """The store is behind with its files; nothing was changed, and the same write may succeed soon."""


class StoreFull(StoreFailed):
    """There is no room on the disk; nothing was changed."""


class StoreUnusable(BrokerError):
    """The store cannot be opened or trusted."""


class StoreLocked(StoreUnusable):
    """Another broker has the store open."""


class StoreLost(StoreUnusable):
    """The store was removed or replaced while it was open."""


class StoreCorrupt(StoreUnusable):
    """The store holds bytes that this broker did not write."""


class StoreTooNew(StoreUnusable):
    """The store was written by a later version."""
