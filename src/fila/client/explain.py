"""Why a message is still waiting."""

from dataclasses import dataclass
from datetime import datetime

from fila.client.admin_service import AdminCalls, moment
from fila.client.arguments import made
from fila.client.enums import name_of
from fila.v1 import admin_pb2


@dataclass(frozen=True, slots=True)
class WaitReason:
    """One reason why a message waits."""

    #: leased, delayed, paused, no_consumer, no_credit, isolated, in_flight_cap, throttled, behind_own_key or turn.
    code: str
    text: str
    #: When the reason ends, if that is known.
    until: datetime | None
    #: The throttle key, fairness key or consumer concerned.
    subject: str
    #: The setting that an operator would change.
    setting: str
    numbers: dict[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message is still waiting."""

    message_id: str
    #: ready, delayed or leased.
    state: str
    fairness_key: str
    priority: int
    cost: int
    attempt_count: int
    throttle_keys: tuple[str, ...]
    #: In the order in which the message must pass them. Empty when it is being delivered now.
    reasons: tuple[WaitReason, ...]
    #: How many deliveries of the queue come first.
    deliveries_ahead: int
    #: Whether `deliveries_ahead` is counted, not estimated.
    exact: bool
    #: The message is not delivered earlier, unless settings change.
    not_before: datetime
    #: The estimated time of delivery at the present rate; None when that depends on consumers.
    estimated_at: datetime | None
    enqueued_at: datetime


class ExplainCalls(AdminCalls):
    """The call that explains a wait, as `AsyncClient` has it."""

    async def explain(self, queue: str, message_id: str = "", *, fairness_key: str = "") -> Explanation:
        """Why a message is still waiting: the given one, the first one of a fairness key, or the next one of all.

        Raises QueueNotFoundError, or MessageNotFoundError when there is no such message.
        """
        admin = self._admin()
        subject = {"message_id": message_id} if message_id else {"fairness_key": fairness_key} if fairness_key else {}
        request = made(admin_pb2.ExplainRequest, queue=queue, **subject)
        return _explanation(await admin.call(admin.stub.Explain, request))


def _explanation(about: admin_pb2.ExplainResponse) -> Explanation:
    return Explanation(
        message_id=about.message_id,
        state=name_of(admin_pb2.MessageState, about.state),
        fairness_key=about.fairness_key,
        priority=about.priority,
        cost=about.cost,
        attempt_count=about.attempt_count,
        throttle_keys=tuple(about.throttle_keys),
        reasons=tuple(
            WaitReason(
                name_of(admin_pb2.WaitCause, one.code),
                one.text,
                moment(one.until) if one.HasField("until") else None,
                one.subject,
                one.setting,
                dict(one.numbers),
            )
            for one in about.reasons
        ),
        deliveries_ahead=about.deliveries_ahead,
        exact=about.exact,
        not_before=moment(about.not_before),
        estimated_at=moment(about.estimated_at) if about.HasField("estimated_at") else None,
        enqueued_at=moment(about.enqueued_at),
    )
