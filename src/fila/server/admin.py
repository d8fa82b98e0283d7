"""FilaAdmin: queues and what is known of them, and the runtime configuration.

Each handler decodes, calls the broker, encodes. How to add an RPC: see the head of `service.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fila.auth.rights import Kind, Permission
from fila.broker.audit_commands import Origin
from fila.broker.broker import Broker
from fila.broker.dry_run import Subject
from fila.broker.lease_end import MAX_ERROR
from fila.broker.operators import Sweep, SweptSome
from fila.broker.search import Query
from fila.config import KIB, LuaConfig, SchedulerConfig
from fila.core.errors import ConfigNotFound, InvalidArgument, Unsupported
from fila.server.access import Gate
from fila.server.access_table import config_entry
from fila.server.audit import describe_sweep, identity_of_sweep, read_audit
from fila.server.browse import DEFAULT_PAGE, MAX_PAGE, WAITING, Page, read_cursor, read_filter, write_cursor
from fila.server.journal import read_journal
from fila.server.queue_settings import hook_sources, located, read_queue, read_settings, write_settings
from fila.server.stats_codec import read_order, write_explanation, write_stats, write_summary, write_tried
from fila.server.types import Method, Methods, ServerCall, SmallMethod
from fila.v1 import admin_pb2 as pb

MAX_TRIALS = 1000
LARGE_ANSWERS = frozenset({"ListQueues", "GetStats", "ListConfig", "DryRunHook", "Peek", "ReadAudit"})
"""Of up to a few megabytes: made when the caller takes them"""
MAX_REQUEST_BYTES = 512 * KIB
"""Of a call that administers: a script, or a filter with as many ids and headers as it may have."""


class FilaAdmin:
    """The handlers of the contract's FilaAdmin."""

    def __init__(
        self,
        broker: Broker,
        defaults: SchedulerConfig,
        lua: LuaConfig,
        gate: Gate,
        describe: Callable[[], pb.DescribeServerResponse],
    ) -> None:
        self._broker = broker
        self._describe = describe
        self._gate = gate
        self._defaults = defaults
        self._lua = lua

    async def create_queue(self, request: pb.CreateQueueRequest, call: ServerCall) -> pb.CreateQueueResponse:
        if request.parts > 1:
            raise Unsupported(f"parts is {request.parts}: this server has no cluster, so a queue is whole (1)")
        owner = self._gate.of(call).principal
        record = read_queue(request, self._defaults, self._lua, self._broker.now(), owner)
        with located(request.config):
            await self._broker.create_queue(record, self._origin(call))
        return pb.CreateQueueResponse(queue_id=record.name)

    async def update_queue(self, request: pb.UpdateQueueRequest, call: ServerCall) -> pb.UpdateQueueResponse:
        sources = hook_sources(request.config)
        if sources is not None and None in {sources.on_enqueue, sources.on_failure}:
            raise InvalidArgument(
                "on_enqueue and on_failure make one script: give both of them, or give script instead"
            )
        with located(request.config):
            record = await self._broker.update_queue(request.queue, read_settings(request.config), self._origin(call))
        return pb.UpdateQueueResponse(config=write_settings(record))

    async def delete_queue(self, request: pb.DeleteQueueRequest, call: ServerCall) -> pb.DeleteQueueResponse:
        deleted = await self._broker.delete_queue(request.queue, request.force, self._origin(call))
        return pb.DeleteQueueResponse(messages_deleted=deleted)

    async def list_queues(self, request: pb.ListQueuesRequest, call: ServerCall) -> pb.ListQueuesResponse:
        access = self._gate.of(call)
        found, more = await self._broker.operators.list_queues(
            request.cursor,
            min(request.limit or MAX_PAGE, MAX_PAGE),
            (lambda name: access.allows(Permission.BROWSE, Kind.QUEUE, name)) if access.restricted else None,
        )
        return pb.ListQueuesResponse(
            queues=[write_summary(summary) for summary in found], cursor=found[-1].name if more else ""
        )

    async def get_stats(self, request: pb.GetStatsRequest, _: ServerCall) -> pb.GetStatsResponse:
        response = await write_stats(await self._broker.operators.stats(request.queue, read_order(request)))
        response.waiting_for_hooks = self._broker.waiting_for_hooks(request.queue)
        response.script_error = self._broker.state.scripts.broken.get(request.queue, "")
        return response

    async def set_config(self, request: pb.SetConfigRequest, call: ServerCall) -> pb.SetConfigResponse:
        await self._broker.set_config(request.key, request.value, self._origin(call))
        return pb.SetConfigResponse()

    async def get_config(self, request: pb.GetConfigRequest, _: ServerCall) -> pb.GetConfigResponse:
        value = self._broker.state.config.get(request.key)
        if value is None:
            raise ConfigNotFound(request.key)
        return pb.GetConfigResponse(value=value)

    async def list_config(self, request: pb.ListConfigRequest, call: ServerCall) -> pb.ListConfigResponse:
        limit, access = min(request.limit or MAX_PAGE, MAX_PAGE), self._gate.of(call)
        entries, total, more = self._broker.operators.list_config(
            request.prefix,
            request.cursor,
            limit,
            (lambda key: access.allows(Permission.BROWSE, *config_entry(key))) if access.restricted else None,
        )
        return pb.ListConfigResponse(
            entries=[pb.ConfigEntry(key=key, value=value) for key, value in entries],
            total_count=total,
            cursor=entries[-1][0] if more else "",
        )

    async def delete_config(self, request: pb.DeleteConfigRequest, call: ServerCall) -> pb.DeleteConfigResponse:
        before = await self._broker.set_config(request.key, None, self._origin(call))
        return pb.DeleteConfigResponse(existed=before is not None)

    async def explain(self, request: pb.ExplainRequest, _: ServerCall) -> pb.ExplainResponse:
        about = await self._broker.operators.explain(request.queue, request.message_id, request.fairness_key)
        return write_explanation(about, self._broker.state.ids.text(about.seq))

    async def dry_run_hook(self, request: pb.DryRunHookRequest, _: ServerCall) -> pb.DryRunHookResponse:
        if request.next_messages > MAX_TRIALS:
            raise InvalidArgument(f"next_messages must not exceed {MAX_TRIALS}")
        given = Subject("", request.headers, request.payload_size, request.attempts, request.error[:MAX_ERROR])
        tried = await self._broker.operators.try_hooks(request.queue, request.script, given, request.next_messages)
        return pb.DryRunHookResponse(trials=[write_tried(message) for message in tried])

    async def pause_queue(self, request: pb.PauseQueueRequest, call: ServerCall) -> pb.PauseQueueResponse:
        await self._broker.pause_queue(request.queue, True, self._origin(call))
        return pb.PauseQueueResponse()

    async def resume_queue(self, request: pb.ResumeQueueRequest, call: ServerCall) -> pb.ResumeQueueResponse:
        await self._broker.pause_queue(request.queue, False, self._origin(call))
        return pb.ResumeQueueResponse()

    async def peek(self, request: pb.PeekRequest, _: ServerCall) -> pb.PeekResponse:
        query = read_filter(request.filter, self._broker.state.ids, self._broker.now())
        query = replace(query, newest=request.newest_first)
        behind = read_cursor(request.cursor, 1)
        if behind:
            query = query.behind(*behind)
        seen = await self._broker.operators.peek(request.queue, query, min(request.limit or DEFAULT_PAGE, MAX_PAGE))
        return await Page(self._broker, request.payload_bytes).write(seen)

    async def redrive(self, request: pb.RedriveRequest, call: ServerCall) -> pb.RedriveResponse:
        query, sweep, until = self._read_sweep(request, call)
        swept = await self._broker.operators.redrive(request.dlq_queue, query, sweep)
        return pb.RedriveResponse(redriven=swept.done, cursor=_cursor(swept, until))

    async def purge(self, request: pb.PurgeRequest, call: ServerCall) -> pb.PurgeResponse:
        query, sweep, until = self._read_sweep(request, call)
        swept = await self._broker.operators.purge(request.queue, query, sweep, request.any_queue)
        return pb.PurgeResponse(purged=swept.done, cursor=_cursor(swept, until))

    def _read_sweep(self, request: pb.RedriveRequest | pb.PurgeRequest, call: ServerCall) -> tuple[Query, Sweep, int]:
        """Which messages are meant, how many, and the last that had come when it began: later ones are left alone."""
        query = read_filter(request.filter, self._broker.state.ids, self._broker.now(), WAITING)
        position, until, begun = read_cursor(request.cursor, 3) or (None, self._broker.state.sequence.last, 0)
        query = replace(query, high=min(query.high, until))
        sweep = Sweep(
            request.count,
            request.dry_run,
            request.bounded,
            self._origin(call),
            describe_sweep(request),
            identity_of_sweep(request),
            begun,
            request.final,
        )
        return query if position is None else query.behind(position), sweep, until

    def _origin(self, call: ServerCall) -> Origin:
        return self._gate.of(call).origin

    async def describe_server(self, _: pb.DescribeServerRequest, __: ServerCall) -> pb.DescribeServerResponse:
        return self._describe()

    async def read_audit(self, request: pb.ReadAuditRequest, _: ServerCall) -> pb.ReadAuditResponse:
        return await read_audit(self._broker, request)

    async def read_journal(self, request: pb.ReadJournalRequest, call: ServerCall) -> None:
        await read_journal(self._broker, request, call)


def methods(admin: FilaAdmin) -> Methods:
    """The service, by the names of its methods."""
    methods: dict[str, tuple[Any, Any]] = {
        "CreateQueue": (admin.create_queue, pb.CreateQueueRequest),
        "UpdateQueue": (admin.update_queue, pb.UpdateQueueRequest),
        "DeleteQueue": (admin.delete_queue, pb.DeleteQueueRequest),
        "ListQueues": (admin.list_queues, pb.ListQueuesRequest),
        "GetStats": (admin.get_stats, pb.GetStatsRequest),
        "SetConfig": (admin.set_config, pb.SetConfigRequest),
        "GetConfig": (admin.get_config, pb.GetConfigRequest),
        "ListConfig": (admin.list_config, pb.ListConfigRequest),
        "DeleteConfig": (admin.delete_config, pb.DeleteConfigRequest),
        "Explain": (admin.explain, pb.ExplainRequest),
        "DryRunHook": (admin.dry_run_hook, pb.DryRunHookRequest),
        "PauseQueue": (admin.pause_queue, pb.PauseQueueRequest),
        "ResumeQueue": (admin.resume_queue, pb.ResumeQueueRequest),
        "Peek": (admin.peek, pb.PeekRequest),
        "Redrive": (admin.redrive, pb.RedriveRequest),
        "Purge": (admin.purge, pb.PurgeRequest),
        "ReadAudit": (admin.read_audit, pb.ReadAuditRequest),
        "DescribeServer": (admin.describe_server, pb.DescribeServerRequest),
    }
    by_name = {
        name: Method(
            method,
            request.FromString,
            lambda response: response.SerializeToString(),
            max_request_bytes=MAX_REQUEST_BYTES,
            large=name in LARGE_ANSWERS,
        )
        for name, (method, request) in methods.items()
    }
    by_name["ReadJournal"] = SmallMethod(
        admin.read_journal,
        pb.ReadJournalRequest.FromString,
        pb.ReadJournalResponse.SerializeToString,
        gives_stream=True,
    )
    return by_name


def _cursor(swept: SweptSome, until: int) -> str:
    return "" if swept.position is None else write_cursor(swept.position, until, swept.sweep)
