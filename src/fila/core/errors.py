"""Every error with which the broker refuses a request, as one tree.

BrokerError
├── InvalidArgument      the request is wrong and will never succeed
├── LimitExceeded        the request is larger than a limit
│   ├── PayloadTooLarge  its payload is
│   ├── LimitReached     there are as many of something as there may be
│   └── QueueFull        the queue holds as much as it may; retry later
├── QuotaExceeded        the caller sends more than its principal may; retry later
├── QueueNotFound
├── QueueAlreadyExists
├── MessageNotFound      nobody holds the message under that lease
│   ├── LeaseEnded       the message exists, but that lease has ended
│   ├── MessageGone      the message does not exist any more
│   └── NoSuchMessage    the queue does not hold the message
├── ConfigNotFound
├── Unsupported          this server cannot do that
├── Unauthenticated      the caller is not known: no valid key, token or certificate
│   ├── KeyEnded         the key, token or certificate of an open call expired or was taken away
│   └── UnknownSigner    a token is signed by a key that the identity provider does not list, as far as is known
├── PermissionDenied     the caller's roles do not allow it
├── NotNow               a precondition is not met: something else must happen first
│   ├── ClaimLost        the claim was acked, was never made, or ended while it was read
│   ├── Fenced           a reader with a later epoch has taken over the group
│   ├── TooFarAhead      an epoch, a transaction or a sequence would jump too far ahead
│   └── NotStaged        a transaction lacks messages that its commit names
├── StaleSequence        a producer sent a batch again that is too old to be answered again
├── SequenceReused       a producer sent another batch under a sequence it has used
├── ProducerFenced       a later incarnation of the producer was heard of
├── Overloaded           too many requests are waiting; retry later
├── ShuttingDown         the broker takes no new requests
├── ProviderAway         a token cannot be checked, because the identity provider does not answer
├── StoreFailed          the store failed to write or to read; nothing was changed
│   ├── StoreBusy        the store has fallen behind (write stall); the same write may succeed soon
│   ├── StoreFull        the disk is full
│   └── SteppedDown      another member of the cluster is asked from now on; it knows whether it was done
└── StoreUnusable        the store cannot be opened or trusted
    ├── StoreLocked      another broker has it open
    ├── StoreLost        it was removed or replaced while it was open
    ├── StoreCorrupt     it is damaged
    └── StoreTooNew      a later version wrote it

Rules for the text of an error:
- it is one sentence for the person who sent the request: what is wrong, with the value and the limit, and what to do;
- it never contains payloads or header values.
"""

ECHO = 80
"""How many characters of a client's own text an error repeats."""


def quoted(name: str) -> str:
    """A client's own text in quotes, shortened so that the error stays short."""
    return f'"{name}"' if len(name) <= ECHO else f'"{name[:ECHO]}..."'


class BrokerError(Exception):
    """The broker refuses a request."""


class InvalidArgument(BrokerError):
    """The request is wrong and will never succeed."""


class LimitExceeded(BrokerError):
    """The request is larger than a limit, and will never succeed."""


class PayloadTooLarge(LimitExceeded):
    """The payload of a message is larger than the limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the payload has {size} bytes, {limit} are allowed")


class LimitReached(LimitExceeded):
    """There are as many of something as there may be: some of them must go first."""


class QuotaExceeded(BrokerError):
    """The caller sends more than its principal may; retry later."""


class QueueFull(LimitExceeded):
    """The queue holds as much as it may."""


class QueueNotFound(BrokerError):
    """The queue does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"queue {quoted(name)} does not exist")


class QueueAlreadyExists(BrokerError):
    """A queue of that name exists."""

    def __init__(self, name: str) -> None:
        super().__init__(f"queue {quoted(name)} already exists")


class MessageNotFound(BrokerError):
    """Nobody holds the message under that lease."""

    def __init__(self, message_id: str, queue: str) -> None:
        super().__init__(f"message {message_id[:ECHO]} is not leased in queue {quoted(queue)}")


class LeaseEnded(MessageNotFound):
    """The message still exists, perhaps as a dead letter, but the lease under which it was delivered has ended."""

    def __init__(self, message_id: str, queue: str) -> None:
        super().__init__(message_id, queue)
        self.args = (f"{self.args[0]} under this lease_id: the lease has ended",)


class MessageGone(MessageNotFound):
    """The message is neither in the queue nor in its dead-letter queue."""

    def __init__(self, message_id: str, queue: str) -> None:
        super().__init__(message_id, queue)
        self.args = (f"{self.args[0]}: it was acked, was purged or never existed",)


class NoSuchMessage(MessageNotFound):
    """The queue does not hold the message."""

    def __init__(self, text: str) -> None:
        BrokerError.__init__(self, text)


class ConfigNotFound(BrokerError):
    """The runtime configuration has no such key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"config key {quoted(key)} is not set")


class Unsupported(BrokerError):
    """This server cannot do that."""


class Unauthenticated(BrokerError):
    """The caller is not known: it has shown no valid key, token or certificate."""


class KeyEnded(Unauthenticated):
    """The key, token or certificate of an open call expired or was taken away."""


class UnknownSigner(Unauthenticated):
    """A token is signed by a key that the identity provider does not list, as far as is known."""


class ProviderAway(BrokerError):
    """A token cannot be checked, because the identity provider does not answer."""


class PermissionDenied(BrokerError):
    """The caller's roles do not allow it."""


class NotNow(BrokerError):
    """A precondition is not met: the request is right, but something else must happen first."""


class ClaimLost(NotNow):
    """The claim was acked, was never made, or ended while it was read."""


class Fenced(NotNow):
    """A reader with a later epoch has taken over the group."""


class TooFarAhead(NotNow):
    """An epoch, a transaction or a sequence would jump so far ahead that no later number would be left."""


class NotStaged(NotNow):
    """A transaction lacks messages that its commit names."""


class StaleSequence(BrokerError):
    """A producer sent a batch again that is too old to be answered again."""


class SequenceReused(BrokerError):
    """A producer sent another batch under a sequence that it has used."""


class ProducerFenced(BrokerError):
    """A later incarnation of the producer was heard of: this one must not enqueue any more."""


class Overloaded(BrokerError):
    """Too many requests are waiting in the broker; retry later."""


class ShuttingDown(BrokerError):
    """The broker is shutting down and takes no new requests."""

    def __init__(self) -> None:
        super().__init__("the broker is shutting down; retry when it has restarted")


class StoreFailed(BrokerError):
    """The store failed to write or to read; nothing was changed."""


class StoreBusy(StoreFailed):
    """The store has fallen behind (write stall); nothing was changed, and the same write may succeed soon."""


class StoreFull(StoreFailed):
    """The disk is full; nothing was changed."""


class SteppedDown(StoreFailed):
    """This member has the queues no more. Whether a write counts that was under way is not known here: whoever asked
    has to ask again, at the new owner. The broker ends: its memory may be behind.
    """


class StoreUnusable(BrokerError):
    """The store cannot be opened or trusted."""


class StoreLocked(StoreUnusable):
    """Another broker has the store open."""


class StoreLost(StoreUnusable):
    """The store was removed or replaced while it was open."""


class StoreCorrupt(StoreUnusable):
    """The store is damaged."""


class StoreTooNew(StoreUnusable):
    """A later version wrote the store."""
