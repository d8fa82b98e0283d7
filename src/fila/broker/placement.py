"""Where a message belongs: its fairness key, weight, throttle keys and cost, read from the headers its queue names."""

from collections.abc import Mapping

from fila.config import LimitsConfig
from fila.core.errors import InvalidArgument
from fila.core.policy import DEFAULT_KEY, MAX_COST, MAX_WEIGHT, Placement
from fila.storage.records import QueueRecord

_DEFAULT = Placement()


def read_placement(record: QueueRecord, headers: Mapping[str, str], limits: LimitsConfig) -> Placement:
    """By the queue's headers. Raises InvalidArgument for values that are not what the queue takes them for."""
    key, weight = DEFAULT_KEY, 1
    if record.fairness_header:
        given = headers.get(record.fairness_header)
        if given:
            key = _checked(given, record.fairness_header, "fairness key", limits)
    if record.weight_header:
        weight = _number(headers, record.weight_header, "the weight", MAX_WEIGHT)
    if not (record.throttle_headers or record.cost_header):
        return Placement(key, weight) if key is not DEFAULT_KEY or weight != 1 else _DEFAULT
    throttles = {
        _checked(f"{name}:{headers[name]}", name, "throttle key", limits)
        for name in record.throttle_headers
        if name in headers
    }
    cost = _number(headers, record.cost_header, "the cost", MAX_COST) if record.cost_header else 1
    return Placement(key, weight, tuple(sorted(throttles)), cost)


def _checked(key: str, header: str, meaning: str, limits: LimitsConfig) -> str:
    most = limits.max_key_bytes
    if len(key) > most or len(key.encode()) > most:
        raise InvalidArgument(f'the {meaning} from header "{header}" exceeds {most} bytes')
    return key


def _number(headers: Mapping[str, str], header: str, meaning: str, most: int) -> int:
    text = headers.get(header)
    if text is None:
        return 1
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else 0
    if not 1 <= number <= most:
        raise InvalidArgument(f'header "{header}" is {meaning} and must be a number from 1 to {most}')
    return number
