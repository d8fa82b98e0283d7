"""Limits of the API. Past each of them the caller gets a clear error."""

from dataclasses import dataclass

from fila.settings import Section, flag, whole_number


@dataclass(frozen=True, slots=True)
class ApiSettings(Section):
    """What the API accepts, and from when on it says "later"."""

    #: Reports in one request.
    max_batch: int = whole_number(1_000, 1, 10_000)
    max_body_bytes: int = whole_number(1_048_576, 1, 1 << 30)
    #: An affiliate may send so many reports a minute on average ...
    affiliate_per_minute: int = whole_number(600, 1, 1_000_000_000)
    #: ... and so many at once. It also bounds how many of one affiliate fit into a request.
    affiliate_burst: int = whole_number(300, 1, 1_000_000_000)
    #: So many jobs waiting are a backlog: nobody may send more until it is shorter.
    queue_mark: int = whole_number(10_000, 1, 1_000_000_000)
    #: Whether other machines are served although there are no API keys. A warning is logged at each start.
    insecure: bool = flag(False)
