r"""Keys: what sorts first in the store is what is wanted first.

Every key is a tuple of numbers and names. Numbers are big-endian. A name is its UTF-8 bytes with each zero byte written
as 00 FF, ended by 00 01: so no name is a prefix of another, names of any content keep their order, and what follows a
name can hold any byte.

    MESSAGES      queue  seq  fairness key  priority
    SCHEDULED     due  queue  seq
    LEASES        queue  grant
    LEASE_EXPIRY  expires at  queue  grant
    ATTEMPTS      queue  seq  attempt
    STATE         name
    DEDUP         "k" queue  key    or    "p" producer  sequence
    QUEUES        queue
    CLAIMS        queue  group    or    queue  group  claim    or    queue  group  claim  part
    STAGED        "c" producer  transaction  part  sequence    or    "p" producer
    JOURNAL       "r" last entry    or    "s" last entry    or    "n"
    AUDIT         "c" entry    or    "r" entry    or    "s" entry of a sweep's begin    or    "h"    or    "k"
"""

from functools import lru_cache
from struct import Struct

_U64 = Struct(">Q")
_END = b"\x00\x01"
u64 = _U64.pack

KEY_MARK = b"k"
PRODUCER_MARK = b"p"
RECORD_MARK = b"r"
SEGMENT_MARK = b"s"
STAGED_CALL, STAGED_PRODUCER = b"c", b"p"
NEXT_ENTRY = b"n"
"""Where the journal says which number its next entry has, when its records alone do not."""
AUDIT_CHANGE, AUDIT_REFUSAL, AUDIT_SWEEP = b"c", b"r", b"s"
AUDIT_HEAD, AUDIT_SECRET = b"h", b"k"
SEQ_BYTES = 8


def name(text: str) -> bytes:
    return text.encode().replace(b"\x00", b"\x00\xff") + _END


def read_u64(key: bytes, at: int) -> int:
    """The number that ends the key. Raises ValueError when something else is there."""
    if len(key) != at + SEQ_BYTES:
        raise ValueError("a key has the wrong length")
    return int.from_bytes(key[at:], "big")


def read_name(key: bytes, at: int) -> tuple[str, int]:
    """The name that begins at `at`, and where the rest of the key begins. Raises ValueError for no name."""
    end = key.index(_END, at)
    # An escaped zero followed by 01 looks like the end: 00 FF 01 does not contain 00 01, so the first match is right.
    return key[at:end].replace(b"\x00\xff", b"\x00").decode(), end + len(_END)


def after(prefix: bytes) -> bytes:
    """The end of the range of all keys that begin with `prefix`, which must not be all FF."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1])


KeyParts = tuple[bytes, bytes]
"""The keys of a lane's messages: what stands before their numbers, and what behind."""


def lane(queue: str, fairness_key: str, priority: int) -> KeyParts:
    return _queue(queue), name(fairness_key) + bytes([priority])


_LANE_END = -len(_END) - 1
_queue = lru_cache(maxsize=1024)(name)  # lanes of a queue share it


def joined(parts: KeyParts) -> bytes:
    """A lane in one piece: queue, fairness key, priority."""
    return b"".join(parts)


def fairness_key(behind: bytes) -> bytes:
    """The fairness key in what stands behind the numbers of a lane's messages, in UTF-8."""
    key = behind[:_LANE_END]
    return key.replace(b"\x00\xff", b"\x00") if b"\x00" in key else key


def parted(lane: bytes) -> KeyParts:
    """The opposite of `joined`."""
    _, at = read_name(lane, 0)
    return lane[:at], lane[at:]


def read_lane(lane: bytes) -> tuple[str, str, int]:
    """Queue, fairness key and priority of a lane in one piece. Raises ValueError."""
    queue, at = read_name(lane, 0)
    fairness_key, at = read_name(lane, at)
    if at != len(lane) - 1:
        raise ValueError("a lane has the wrong length")
    return queue, fairness_key, lane[at]


def message(parts: KeyParts, seq: int) -> bytes:
    """Messages stand in the order in which they came, so that a few of each tenant, which is what goes out together,
    stand together.
    """
    return parts[0] + u64(seq) + parts[1]


def read_message(key: bytes) -> tuple[KeyParts, int]:
    """Raises ValueError."""
    _, at = read_name(key, 0)
    end = at + SEQ_BYTES
    parts = key[:at], key[end:]
    read_lane(joined(parts))
    return parts, int.from_bytes(key[at:end], "big")


def scheduled(due: int, queue: str, seq: int) -> bytes:
    return u64(due) + name(queue) + u64(seq)


def read_scheduled(key: bytes) -> tuple[int, str, int]:
    queue, at = read_name(key, SEQ_BYTES)
    return read_u64(key[:SEQ_BYTES], 0), queue, read_u64(key, at)


def grant(queue: str, number: int) -> bytes:
    return name(queue) + u64(number)


def read_grant(key: bytes) -> tuple[str, int]:
    queue, at = read_name(key, 0)
    return queue, read_u64(key, at)


def grant_expiry(expires_at: int, queue: str, number: int) -> bytes:
    return u64(expires_at) + name(queue) + u64(number)


def attempt(queue: str, seq: int, number: int) -> bytes:
    """Attempts count from 1. What stands at 0 is how a dead letter died."""
    return name(queue) + u64(seq) + u64(number)


def read_attempt(key: bytes) -> tuple[str, int, int]:
    queue, at = read_name(key, 0)
    return queue, read_u64(key[: at + SEQ_BYTES], at), read_u64(key, at + SEQ_BYTES)


def dedup(queue: str, key: str) -> bytes:
    return KEY_MARK + name(queue) + name(key)


def read_dedup(key: bytes) -> tuple[str, str]:
    queue, at = read_name(key, 1)
    dedup_key, end = read_name(key, at)
    if end != len(key):
        raise ValueError("a key has the wrong length")
    return queue, dedup_key


def producer(producer_id: str) -> bytes:
    """What all batches of a producer begin with."""
    return PRODUCER_MARK + name(producer_id)


def producer_batch(producer_id: str, sequence: int) -> bytes:
    return producer(producer_id) + u64(sequence)


def read_producer_batch(key: bytes) -> tuple[str, int]:
    producer_id, at = read_name(key, 1)
    return producer_id, read_u64(key, at)


def journal_record(last: int) -> bytes:
    """A record stands at its last entry, so that the first key from an entry on is that of the record which has it."""
    return RECORD_MARK + u64(last)


def journal_segment(last: int) -> bytes:
    return SEGMENT_MARK + u64(last)


def read_journal_key(key: bytes) -> int:
    """The last entry of a record or a segment."""
    return read_u64(key, 1)


def audit(mark: bytes, number: int) -> bytes:
    """An entry of the audit, or the sweep that began with it."""
    return mark + u64(number)


def read_audit(key: bytes) -> int:
    return read_u64(key, 1)


def group(queue: str, name_of_group: str) -> bytes:
    return name(queue) + name(name_of_group)


def claim(queue: str, name_of_group: str, number: int) -> bytes:
    return group(queue, name_of_group) + u64(number)


def claim_part(queue: str, name_of_group: str, number: int, first: int) -> bytes:
    """Parts of a claim stand by the position of their first message."""
    return claim(queue, name_of_group, number) + u64(first)


def read_claim(key: bytes) -> tuple[str, str, list[int]]:
    """Queue and group, and what follows them: nothing, a claim, or a claim and the position of a part."""
    queue, at = read_name(key, 0)
    name_of_group, at = read_name(key, at)
    if (len(key) - at) not in (0, SEQ_BYTES, 2 * SEQ_BYTES):
        raise ValueError("a key has the wrong length")
    return queue, name_of_group, [int.from_bytes(key[i : i + SEQ_BYTES], "big") for i in range(at, len(key), SEQ_BYTES)]


def transaction(producer_name: str, number: int) -> bytes:
    """What the keys of all calls that staged for a transaction begin with."""
    return STAGED_CALL + name(producer_name) + u64(number)


def staged(producer_name: str, number: int, part: str, sequence: int) -> bytes:
    return transaction(producer_name, number) + name(part) + u64(sequence)


def read_staged(key: bytes) -> tuple[str, int, str, int]:
    producer_name, at = read_name(key, 1)
    number = read_u64(key[: at + SEQ_BYTES], at)
    part, end = read_name(key, at + SEQ_BYTES)
    return producer_name, number, part, read_u64(key, end)


def staging_producer(producer_name: str) -> bytes:
    return STAGED_PRODUCER + name(producer_name)


def read_staging_producer(key: bytes) -> str:
    producer_name, end = read_name(key, 1)
    if end != len(key):
        raise ValueError("a key has the wrong length")
    return producer_name
