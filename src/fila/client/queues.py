"""Queues: their settings, and the calls that create, change, list and delete them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict, Unpack

from fila.client.admin_service import AdminCalls
from fila.client.arguments import chosen, known_names, made, several
from fila.client.enums import name_of
from fila.client.errors import InvalidArgumentError, QueueAlreadyExistsError
from fila.v1 import admin_pb2


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """The figures of a queue in a list."""

    name: str
    #: Messages that wait to be delivered, delayed ones included.
    depth: int
    #: Messages that were delivered and are not yet settled.
    in_flight: int
    #: Messages whose delay has not passed.
    delayed: int
    #: Fairness keys that have messages to deliver.
    active_keys: int
    consumers: int
    #: The name of its dead-letter queue; empty for a dead-letter queue.
    dead_letter_queue: str
    #: Whether delivery is stopped.
    paused: bool


class QueueSettings(TypedDict, total=False):
    """The settings of a queue. One that is left out or None takes the broker's default, or stays as it is."""

    #: How long a consumer may hold a message before the broker delivers it again.
    visibility_timeout_ms: int | None
    #: The header whose value is a message's fairness key; empty means that all messages share one key.
    fairness_header: str | None
    #: The header whose value is the weight of a message's fairness key.
    weight_header: str | None
    #: The cost that a key of weight 1 may spend in one round of the scheduler.
    quantum: int | None
    #: How long the broker remembers dedup keys.
    dedup_window_ms: int | None
    #: Each of these headers gives a message the throttle key "<header>:<value>".
    throttle_headers: Sequence[str] | None
    #: The header whose value is the cost of delivering a message.
    cost_header: str | None
    #: After so many failed attempts a message goes to the dead-letter queue; 0 means never.
    max_attempts: int | None
    #: The delay before a nacked message is delivered again.
    retry_delay_ms: int | None
    #: The factor by which the delay grows with each attempt.
    retry_backoff: float | None
    #: The upper limit of the delay; 0 means none.
    retry_max_delay_ms: int | None
    #: Randomly shorten the delay by up to this fraction, 0 to 1.
    retry_jitter: float | None
    #: Lua source that defines the hooks; empty means no script.
    script: str | None
    #: The same as two sources, one for each hook, instead of `script`.
    on_enqueue: str | None
    on_failure: str | None
    #: Limits of a script: the time of one call of a hook, and the memory that the script may use.
    script_timeout_ms: int | None
    script_memory_bytes: int | None
    #: How many messages the queue may hold: ready, delayed, leased and staged ones; 0 means no limit.
    max_depth: int | None
    #: How many bytes their headers and payloads may have; 0 means no limit.
    max_bytes: int | None
    #: What a full queue does: "reject" refuses messages, "drop-oldest" moves the oldest ones to the dead-letter queue.
    overflow: str | None


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """All settings of a queue, defaults included. An empty header name means none."""

    visibility_timeout_ms: int
    fairness_header: str
    weight_header: str
    quantum: int
    dedup_window_ms: int
    throttle_headers: tuple[str, ...]
    cost_header: str
    max_attempts: int
    retry_delay_ms: int
    retry_backoff: float
    retry_max_delay_ms: int
    retry_jitter: float
    script: str
    script_timeout_ms: int
    script_memory_bytes: int
    max_depth: int = 0
    max_bytes: int = 0
    overflow: str = "reject"


class QueueCalls(AdminCalls):
    """The calls about queues, as `AsyncClient` has them."""

    async def create_queue(self, name: str, **settings: Unpack[QueueSettings]) -> str:
        """Create a queue and its dead-letter queue, and return its id. Raises QueueAlreadyExistsError."""
        admin = self._admin()
        config = queue_config(settings)
        response = await admin.call(
            admin.stub.CreateQueue, made(admin_pb2.CreateQueueRequest, name=name, config=config)
        )
        return response.queue_id

    async def ensure_queue(self, name: str, **settings: Unpack[QueueSettings]) -> bool:
        """Create a queue unless it exists. Returns whether it was created; an existing queue keeps its settings."""
        try:
            await self.create_queue(name, **settings)
        except QueueAlreadyExistsError:
            return False
        return True

    async def update_queue(self, name: str, **settings: Unpack[QueueSettings]) -> QueueConfig:
        """Change settings of an existing queue, and return all its settings. Raises QueueNotFoundError.

        The change applies to what happens from then on.
        """
        admin = self._admin()
        config = queue_config(settings)
        response = await admin.call(
            admin.stub.UpdateQueue, made(admin_pb2.UpdateQueueRequest, queue=name, config=config)
        )
        return config_of(response.config)

    async def delete_queue(self, name: str, *, force: bool = False) -> int:
        """Delete a queue and its dead-letter queue, and return how many messages they held.

        Raises QueueNotFoundError, or FailedPreconditionError when there are dead letters and `force` is not set.
        """
        admin = self._admin()
        response = await admin.call(admin.stub.DeleteQueue, made(admin_pb2.DeleteQueueRequest, queue=name, force=force))
        return response.messages_deleted

    async def pause_queue(self, name: str) -> None:
        """Stop delivery from a queue until it is resumed, also over restarts. Raises QueueNotFoundError."""
        admin = self._admin()
        await admin.call(admin.stub.PauseQueue, made(admin_pb2.PauseQueueRequest, queue=name))

    async def resume_queue(self, name: str) -> None:
        """Start delivery from a paused queue again. Raises QueueNotFoundError."""
        admin = self._admin()
        await admin.call(admin.stub.ResumeQueue, made(admin_pb2.ResumeQueueRequest, queue=name))

    async def list_queues(self) -> list[QueueInfo]:
        """All queues, ordered by name."""
        admin = self._admin()
        found: list[QueueInfo] = []
        request = admin_pb2.ListQueuesRequest()
        while True:
            response = await admin.call(admin.stub.ListQueues, request)
            found += [info_of(summary) for summary in response.queues]
            if not response.cursor:
                return found
            request.cursor = response.cursor


def queue_config(settings: QueueSettings) -> admin_pb2.QueueConfig:
    """The settings as a message. Raises InvalidArgumentError."""
    known_names("setting", settings, QueueSettings.__annotations__)
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, int) and value < 0:
            raise InvalidArgumentError(f"{name} must not be negative")
    headers = given.pop("throttle_headers", None)
    names = None if headers is None else several("throttle_headers", headers)
    if "overflow" in given:
        given["overflow"] = chosen("overflow", admin_pb2.Overflow, given["overflow"])
    config = admin_pb2.QueueConfig()
    for name, value in given.items():
        try:
            setattr(config, name, value)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{name} = {value!r}: {error}") from error
    if names is not None:
        config.throttle_headers.SetInParent()
        try:
            config.throttle_headers.names.extend(names)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"throttle_headers: {error}") from error
    return config


def config_of(config: admin_pb2.QueueConfig) -> QueueConfig:
    plain = {field.name: getattr(config, field.name) for field in fields(QueueConfig)}
    plain["overflow"] = name_of(admin_pb2.Overflow, config.overflow).replace("_", "-")
    return QueueConfig(**plain | {"throttle_headers": tuple(config.throttle_headers.names)})


def info_of(summary: admin_pb2.QueueSummary) -> QueueInfo:
    return QueueInfo(
        name=summary.name,
        depth=summary.depth,
        in_flight=summary.in_flight,
        delayed=summary.delayed,
        active_keys=summary.active_keys,
        consumers=summary.consumers,
        dead_letter_queue=summary.dead_letter_queue,
        paused=summary.paused,
    )
