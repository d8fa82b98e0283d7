"""What every client may know of a server: Describe and GetClusterMap. Nothing of it is about queues or messages."""

from collections.abc import Callable
from importlib.metadata import version

from fila.broker.broker import Broker
from fila.broker.producers import MAX_PRODUCERS, SILENT_AFTER
from fila.config import KIB, Config
from fila.core.dedup import SEQUENCES_KEPT
from fila.core.ids import NS_PER_MS
from fila.server.types import ServerCall
from fila.v1 import service_pb2 as pb
from fila.wire.server_call import RESPONSE_BYTES

MAP_VERSION = 1
"""Of a server without a cluster: its map never changes."""
MORE_BYTES = 128 * KIB
"""What a delivery may have besides payload and headers: keys and failed attempts."""


class Greeting:
    """The handlers."""

    def __init__(
        self,
        config: Config,
        broker: Broker,
        max_request_bytes: int,
        cluster_map: Callable[[ServerCall], pb.ClusterMap] | None = None,
        *,
        transactions: bool = True,
    ) -> None:
        """`cluster_map` of one of several. Workers have no transactions."""
        self._cluster_map = cluster_map
        self._transactions = transactions
        self._config = config
        self._broker = broker
        self._max_request_bytes = max_request_bytes

    async def describe(self, _: pb.DescribeRequest, __: ServerCall) -> pb.DescribeResponse:
        features = [pb.FEATURE_CLAIMS, pb.FEATURE_HOOKS]
        features += [pb.FEATURE_TRANSACTIONS] if self._transactions else []
        features += [pb.FEATURE_JOURNAL] if self._broker.journal.enabled else []
        return pb.DescribeResponse(
            version=version("fila"),
            features=features,
            limits=self._limits(),
            memory=pb.Memory(
                producer_batches=SEQUENCES_KEPT,
                producer_ms=SILENT_AFTER // NS_PER_MS,
                producers=MAX_PRODUCERS,
                dedup_window_ms=self._config.scheduler.dedup_window_ms,
            ),
        )

    def _limits(self) -> pb.Limits:
        limits = self._config.limits
        return pb.Limits(
            max_payload_bytes=limits.max_payload_bytes,
            max_headers=limits.max_headers,
            max_header_bytes=limits.max_header_bytes,
            max_name_bytes=limits.max_name_bytes,
            max_key_bytes=limits.max_key_bytes,
            max_batch_messages=limits.max_batch_messages,
            max_request_bytes=self._max_request_bytes,
            max_response_bytes=max(4 * RESPONSE_BYTES, limits.max_payload_bytes + limits.max_header_bytes + MORE_BYTES),
            max_in_flight=limits.max_in_flight,
            max_delay_ms=limits.max_delay_ms,
            max_claim_messages=limits.max_claim_messages,
        )

    async def get_cluster_map(self, _: pb.GetClusterMapRequest, call: ServerCall) -> pb.GetClusterMapResponse:
        if self._cluster_map is not None:
            return pb.GetClusterMapResponse(map=self._cluster_map(call))
        member = pb.Member(id=f"{self._broker.state.ids.node:x}")  # reached where the caller has reached it
        return pb.GetClusterMapResponse(map=pb.ClusterMap(version=MAP_VERSION, members=[member], owners=[0]))
