"""The methods of `AsyncAdmin` for programs that block: each runs one of them on the loop thread and waits.

What a method does, and its errors, are described in full at the method of the same name there.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Unpack

from fila.client.admin import Admin
from fila.client.audit import AuditEntry, AuditOptions, audit_pages
from fila.client.explain import Explanation
from fila.client.hook_trials import HookTrial
from fila.client.loop_thread import LoopThread, blocking_iterator
from fila.client.peek import MessageFilter, PeekPage
from fila.client.queues import QueueConfig, QueueInfo, QueueSettings
from fila.client.server_info import Description, ServerInfo
from fila.client.stats import QueueStats
from fila.client.sweep import Progress, Sweep, last_of, purge_steps, redrive_steps


class BlockingAdmin(ABC):
    """The calls to FilaAdmin, as `Client` has them. All of them raise FilaError."""

    _thread: LoopThread

    @abstractmethod
    def _admin(self) -> Admin:
        """What the calls go through. Raises ClientClosedError."""

    def create_queue(self, name: str, **settings: Unpack[QueueSettings]) -> str:
        """Create a queue and its dead-letter queue, and return its id. Raises QueueAlreadyExistsError."""
        return self._thread.run(self._admin().create_queue(name, **settings))

    def ensure_queue(self, name: str, **settings: Unpack[QueueSettings]) -> bool:
        """Create a queue unless it exists. Returns whether it was created; an existing queue keeps its settings."""
        return self._thread.run(self._admin().ensure_queue(name, **settings))

    def update_queue(self, name: str, **settings: Unpack[QueueSettings]) -> QueueConfig:
        """Change settings of an existing queue, and return all its settings. Raises QueueNotFoundError."""
        return self._thread.run(self._admin().update_queue(name, **settings))

    def delete_queue(self, name: str, *, force: bool = False) -> int:
        """Delete a queue and its dead-letter queue, and return how many messages they held.

        Raises QueueNotFoundError, or FailedPreconditionError when there are dead letters and `force` is not set.
        """
        return self._thread.run(self._admin().delete_queue(name, force=force))

    def pause_queue(self, name: str) -> None:
        """Stop delivery from a queue until it is resumed, also over restarts. Raises QueueNotFoundError."""
        self._thread.run(self._admin().pause_queue(name))

    def resume_queue(self, name: str) -> None:
        """Start delivery from a paused queue again. Raises QueueNotFoundError."""
        self._thread.run(self._admin().resume_queue(name))

    def list_queues(self) -> list[QueueInfo]:
        """All queues, ordered by name."""
        return self._thread.run(self._admin().list_queues())

    def queue_stats(
        self, name: str, max_keys: int = 20, *, sort: str = "pending", offset: int = 0, key_prefix: str = ""
    ) -> QueueStats:
        """The figures of a queue, with a page of its fairness keys. Raises QueueNotFoundError.

        `sort` is "pending", "delivered", "weight" or "oldest", each with the largest first, or "name".
        """
        return self._thread.run(
            self._admin().queue_stats(name, max_keys, sort=sort, offset=offset, key_prefix=key_prefix)
        )

    def describe(self) -> Description:
        """Version, features and limits of the server. Needs no permission."""
        return self._thread.run(self._admin().describe())

    def describe_server(self) -> ServerInfo:
        """How the server is set up. Needs the permission `audit` on the server once keys exist."""
        return self._thread.run(self._admin().describe_server())

    def read_audit(self, from_seq: int = 0, **options: Unpack[AuditOptions]) -> Iterator[AuditEntry]:
        """The entries of the audit from `from_seq` on (0: the oldest). `AuditOptions` lists the options."""
        for page in blocking_iterator(self._thread, audit_pages(self._admin().service, from_seq, options)):
            yield from page

    def set_config(self, key: str, value: str) -> None:
        """Set an entry of the runtime configuration. Raises InvalidArgumentError."""
        self._thread.run(self._admin().set_config(key, value))

    def get_config(self, key: str) -> str | None:
        """The value of an entry of the runtime configuration, or None."""
        return self._thread.run(self._admin().get_config(key))

    def list_config(self, prefix: str = "") -> dict[str, str]:
        """The entries of the runtime configuration whose keys begin with `prefix`."""
        return self._thread.run(self._admin().list_config(prefix))

    def delete_config(self, key: str) -> bool:
        """Remove an entry of the runtime configuration. Returns whether it existed."""
        return self._thread.run(self._admin().delete_config(key))

    def explain(self, queue: str, message_id: str = "", *, fairness_key: str = "") -> Explanation:
        """Why a message is still waiting: the given one, the first one of a fairness key, or the next one of all.

        Raises QueueNotFoundError, or MessageNotFoundError when there is no such message.
        """
        return self._thread.run(self._admin().explain(queue, message_id, fairness_key=fairness_key))

    def try_hook(
        self,
        queue: str,
        script: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        payload_size: int = 0,
        attempts: int = 1,
        error: str = "",
        next_messages: int = 0,
    ) -> list[HookTrial]:
        """What a script, or the queue's own, would decide: about a message with these properties, or about the next
        `next_messages` of the queue.

        Nothing is changed. Raises InvalidArgumentError, with line and reason, for a script that cannot be used.
        """
        return self._thread.run(
            self._admin().try_hook(
                queue,
                script,
                headers=headers,
                payload_size=payload_size,
                attempts=attempts,
                error=error,
                next_messages=next_messages,
            )
        )

    def peek(
        self,
        queue: str,
        *,
        limit: int = 100,
        newest: bool = False,
        payload_bytes: int = 0,
        cursor: str = "",
        **chosen: Unpack[MessageFilter],
    ) -> PeekPage:
        """Look at messages without taking them, oldest first, or newest first. Raises QueueNotFoundError.

        `payload_bytes` is how much of each payload to return. To continue behind a page, pass its `cursor`.
        """
        return self._thread.run(
            self._admin().peek(queue, limit=limit, newest=newest, payload_bytes=payload_bytes, cursor=cursor, **chosen)
        )

    def redrive(
        self,
        dlq: str,
        *,
        count: int | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        on_progress: Progress | None = None,
        **chosen: Unpack[MessageFilter],
    ) -> int:
        """Move dead letters back to the queue that they came from, oldest first, and return how many.

        At most `count` messages, and no more than `rate` a second. With `dry_run` they are only counted. Leased
        messages stay. Raises QueueNotFoundError, or InvalidArgumentError when `dlq` is not a dead-letter queue.
        """
        steps = redrive_steps(self._admin().service, dlq, Sweep(count, dry_run, rate), chosen)
        return last_of(blocking_iterator(self._thread, steps), on_progress)

    def purge(
        self,
        queue: str,
        *,
        count: int | None = None,
        dry_run: bool = False,
        rate: float | None = None,
        any_queue: bool = False,
        on_progress: Progress | None = None,
        **chosen: Unpack[MessageFilter],
    ) -> int:
        """Remove messages for good, oldest first, and return how many. Options as for `redrive`.

        Leased messages stay. Raises QueueNotFoundError, or InvalidArgumentError when `queue` is not a dead-letter queue
        and `any_queue` is not set.
        """
        steps = purge_steps(self._admin().service, queue, Sweep(count, dry_run, rate), chosen, any_queue=any_queue)
        return last_of(blocking_iterator(self._thread, steps), on_progress)
