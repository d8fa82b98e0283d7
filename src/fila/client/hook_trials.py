"""Trying a script: what its hooks would decide about a message."""

from collections.abc import Mapping
from dataclasses import dataclass

from fila.client.admin_service import AdminCalls
from fila.client.arguments import made
from fila.v1 import admin_pb2


@dataclass(frozen=True, slots=True)
class EnqueueDecision:
    """What `on_enqueue` would decide about a message."""

    fairness_key: str
    weight: int
    throttle_keys: tuple[str, ...]
    cost: int
    #: None leaves the producer's value.
    priority: int | None
    delay_ms: int | None
    #: Why the defaults above apply instead of the script's decision; empty when the decision applies.
    error: str


@dataclass(frozen=True, slots=True)
class FailureDecision:
    """What `on_failure` would decide about a message."""

    dead_letter: bool
    #: None leaves the delay of the nack or of the queue.
    delay_ms: int | None
    error: str


@dataclass(frozen=True, slots=True)
class HookTrial:
    """What a script would decide about one message. None for a hook that the script does not define."""

    #: Empty when the message does not exist in the queue.
    message_id: str
    on_enqueue: EnqueueDecision | None
    on_failure: FailureDecision | None


class HookCalls(AdminCalls):
    """The call that tries a script, as `AsyncClient` has it."""

    async def try_hook(
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
        admin = self._admin()
        request = made(
            admin_pb2.DryRunHookRequest,
            queue=queue,
            script=script,
            headers=headers,
            payload_size=payload_size,
            attempts=attempts,
            error=error,
            next_messages=next_messages,
        )
        response = await admin.call(admin.stub.DryRunHook, request)
        return [_trial(trial) for trial in response.trials]


def _trial(trial: admin_pb2.HookTrial) -> HookTrial:
    enqueue, failure = trial.on_enqueue, trial.on_failure
    return HookTrial(
        trial.message_id,
        EnqueueDecision(
            enqueue.fairness_key,
            enqueue.weight,
            tuple(enqueue.throttle_keys),
            enqueue.cost,
            enqueue.priority if enqueue.HasField("priority") else None,
            enqueue.delay_ms if enqueue.HasField("delay_ms") else None,
            enqueue.error,
        )
        if trial.HasField("on_enqueue")
        else None,
        FailureDecision(failure.dead_letter, failure.delay_ms if failure.HasField("delay_ms") else None, failure.error)
        if trial.HasField("on_failure")
        else None,
    )
