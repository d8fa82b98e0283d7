"""Single requests that the calling thread sends and waits for, on a blocking connection of its own.

A thread that waits for each answer needs no event loop: passing the request to another thread, and the answer back,
takes a good part of the round trip. Concurrent threads use the client's streams instead, where calls travel together.

The rules of a batch stream apply: a request whose connection was lost is sent again, the same bytes, until it is
answered or its deadline has passed, or the broker may have forgotten it. So is one that was sent again and that the
broker refuses for a while: it may have been carried out before. One that timed out is never sent again.
"""

import os
from collections import deque
from threading import Event, Lock
from time import monotonic
from typing import Final, Generic, TypeVar

from fila.client.api_key import ApiKey
from fila.client.backoff import Backoff
from fila.client.batch_stream import Codec, since_boot
from fila.client.connection import LIMITS, was_lost
from fila.client.errors import ClientClosedError, FilaError, forgotten, forked, from_rpc, no_answer, unreadable
from fila.client.owner import follow
from fila.client.send_window import Batch
from fila.client.waiter import Waiter
from fila.wire.addresses import Addresses
from fila.wire.blocking import BlockingConnection
from fila.wire.status import Metadata, RpcError, StatusCode, TlsFailed
from fila.wire.tls_context import ClientTls

_IDLE_S: Final = 1.0
"""After so long without a call, check that the connection is still open before using it."""

_CONCURRENT_S: Final = 0.02
"""For so long after two threads have called at once, all use the streams: requests that travel together cost less."""

W = TypeVar("W", bound=Waiter)


class BlockingExchange(Generic[W]):
    """One streaming method of the broker, for one caller at a time. Callable from any thread."""

    def __init__(
        self,
        addresses: Addresses,
        path: str,
        codec: Codec[W],
        timeout_s: float,
        key: ApiKey | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        self._key = key
        self._tls = tls
        self._addresses = addresses
        self._path = path
        self._codec = codec
        self._timeout_s = timeout_s
        self._pid = os.getpid()
        self._busy = Lock()
        self._closed = Event()
        self._connection: BlockingConnection | None = None
        self._used_at = 0.0
        self._concurrent_until = 0.0

    def submit(self, waiter: W) -> bool:
        """Send a request and wait for the answer. Returns False, having done nothing, while other threads call too.

        The deadline is a time of the monotonic clock.
        """
        now = monotonic()
        if now < self._concurrent_until:
            return False
        if not self._busy.acquire(blocking=False):
            self._concurrent_until = now + _CONCURRENT_S
            return False
        try:
            if self._pid != os.getpid():  # the parent goes on using these sequence numbers
                waiter.fail(forked())
            elif self._closed.is_set():
                waiter.fail(ClientClosedError("the client is closed"))
            else:
                self._send_and_wait(waiter)
        finally:
            self._busy.release()
            if self._closed.is_set():
                self._disconnect_unless_busy()
        return True

    def close(self) -> None:
        """Close the connection. A waiting caller gets ClientClosedError."""
        self._closed.set()
        connection = self._connection
        if connection is not None and self._pid == os.getpid():  # a child must not end its parent's connection
            connection.interrupt()
        self._disconnect_unless_busy()

    def _disconnect_unless_busy(self) -> None:
        """A busy caller closes the connection itself when it is done."""
        if self._busy.acquire(blocking=False):
            self._disconnect()
            self._busy.release()

    def _send_and_wait(self, waiter: W) -> None:
        batch = self._codec.make_batch(deque((waiter,)))
        assert batch is not None
        try:
            self._exchange(batch)
        except FilaError as error:
            waiter.fail(error)
        except BaseException:  # such as Ctrl-C: a late answer would be taken for that of the next request
            self._disconnect()
            raise

    def _exchange(self, batch: Batch[W]) -> None:
        """Send, and resend after a lost connection, until it is done. Raises FilaError if there is no answer."""
        deadline = batch.waiters[0].deadline
        backoff = Backoff()
        sent, trouble = False, ""
        while True:
            try:
                connection = self._open(deadline)
                if not sent:
                    batch.sent_at = since_boot()
                elif since_boot() - batch.sent_at > self._codec.repeatable_s:
                    raise forgotten()
                batch.resent, sent = sent, True
                response = connection.ask(batch.data, deadline)
            except RpcError as failure:
                self._disconnect()
                follow(self._addresses, failure)
                self._check_again(failure, trouble)
                trouble, asked_s = failure.details(), 0.0
            else:
                refusal = self._answer(batch, response)
                if refusal is None:
                    return
                trouble, asked_s = str(refusal), refusal.retry_after_s
            wait_s = min(backoff.next_wait_s(asked_s), deadline - monotonic())
            if wait_s <= 0:
                raise no_answer(self._timeout_s, trouble)
            self._closed.wait(wait_s)

    def _answer(self, batch: Batch[W], response: bytes) -> FilaError | None:
        """Returns the refusal of a batch that has to come again under its number."""
        try:
            return self._codec.answer(batch, response)
        except Exception as error:
            self._disconnect()
            raise unreadable(error) from error

    def _check_again(self, failure: RpcError, trouble: str) -> None:
        """Raises FilaError when the request must not be sent again. `trouble` is the failure before this one."""
        if self._closed.is_set():
            raise ClientClosedError("the client was closed")
        if failure.code() is StatusCode.DEADLINE_EXCEEDED:
            raise no_answer(self._timeout_s, trouble)
        if not was_lost(failure):
            raise from_rpc(failure) from failure

    def _open(self, deadline: float) -> BlockingConnection:
        """The connection, opened again when it has ended. Raises RpcError."""
        now = monotonic()
        connection = self._connection
        if connection is not None and (
            connection.ended or (now - self._used_at > _IDLE_S and not connection.still_open())
        ):
            self._disconnect()
        self._used_at = now
        if self._connection is None:
            # Set before it connects, so that `close` can interrupt the connecting.
            self._connection = BlockingConnection(LIMITS, self._tls)
            self._check_open()
            metadata = self._key.metadata() if self._key is not None else ()
            self._connect(self._connection, now, deadline, metadata)
        self._check_open()
        return self._connection

    def _connect(self, connection: BlockingConnection, now: float, deadline: float, metadata: Metadata) -> None:
        """At the address in use; the next time at another one, if that fails. Raises RpcError."""
        address = self._addresses.current
        if len(self._addresses) > 1:  # one that does not answer leaves time for the others
            deadline = min(deadline, now + max(0.0, deadline - now) / len(self._addresses))
        try:
            connection.connect(address, self._path, deadline, metadata)
        except RpcError as error:
            if len(self._addresses) == 1 or isinstance(error, TlsFailed):
                raise
            self._addresses.leave(address)
            raise RpcError(StatusCode.UNAVAILABLE, error.details()) from error

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise RpcError(StatusCode.UNAVAILABLE, "the client was closed")

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
