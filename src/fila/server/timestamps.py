"""Points in time on the wire: google.protobuf.Timestamp."""

from google.protobuf.timestamp_pb2 import Timestamp

from fila.server.delivery_codec import NS_PER_S

LAST_MOMENT = 253_402_300_800 * NS_PER_S - 1
"""The end of the year 9999, which is that of google.protobuf.Timestamp"""


def timestamp(ns: int) -> Timestamp:
    """A point in time; the last one that can be told for a later one, as that of a throttle with a very low rate."""
    moment = Timestamp()
    moment.FromNanoseconds(min(ns, LAST_MOMENT))
    return moment
