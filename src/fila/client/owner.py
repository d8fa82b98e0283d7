"""Following a cluster: a refusal names the member that has the queue, or says that this one goes away."""

from fila.client.errors import details_of
from fila.v1 import errors_pb2
from fila.wire.addresses import Addresses
from fila.wire.status import RpcError

#: The trailer with the address of the member that has what was asked for.
OWNER = "fila-owner"

#: How often one call follows the members that others name.
MAX_HOPS = 4


def follow(addresses: Addresses, error: RpcError) -> bool:
    """Take from a refusal where to go. Returns whether that is another place than before."""
    details = details_of(error)
    if details is None:  # whoever ended the call is not a broker
        return False
    before = addresses.current
    if details.kind == errors_pb2.ERROR_KIND_NOT_OWNER:
        addresses.follow(_owner(error) or details.owner)
    elif details.kind == errors_pb2.ERROR_KIND_SHUTTING_DOWN:
        addresses.leave(before)
    return addresses.current != before


def _owner(error: RpcError) -> str:
    return next((str(value) for key, value in error.trailing_metadata() or () if key == OWNER), "")
