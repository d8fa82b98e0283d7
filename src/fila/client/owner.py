"""Following a cluster: a refusal names the member that has the queue, or says that this one goes away.

A member that has passed a call on names the owner too. That is a hint: the call was answered. It is followed now and
then only, so that a client whose queues have several owners does not open a connection for each call.
"""

from fila.client.errors import details_of
from fila.v1 import errors_pb2
from fila.wire.addresses import Addresses
from fila.wire.status import Metadata, RpcError

#: The trailer with the address of the member that has what was asked for.
OWNER = "fila-owner"

#: How often one call follows the members that others name.
MAX_HOPS = 4

#: How often at most a client moves because its calls were passed on.
MOVE_EVERY_S = 1.0


def follow(addresses: Addresses, error: RpcError) -> bool:
    """Take from a refusal where to go. Returns whether that is another place than before."""
    details = details_of(error)
    if details is None:  # whoever ended the call is not a broker
        return False
    before = addresses.current
    if details.kind == errors_pb2.ERROR_KIND_NOT_OWNER:
        addresses.follow(owner_in(error.trailing_metadata() or ()) or details.owner)
    elif details.kind == errors_pb2.ERROR_KIND_SHUTTING_DOWN:
        addresses.leave(before)
    return addresses.current != before


def owner_in(trailers: Metadata) -> str:
    """The address of the owner, empty if it is not told."""
    return next((str(value) for key, value in trailers if key == OWNER), "")
