"""The addresses of pages. Names of queues, keys and messages are in the query: any text can be one."""

from typing import NamedTuple
from urllib.parse import urlencode


class Entry(NamedTuple):
    """One entry of the navigation."""

    path: str
    title: str


NAVIGATION = (
    Entry("/", "Home"),
    Entry("/throttles", "Throttles"),
    Entry("/dead-letters", "Dead letters"),
    Entry("/hooks", "Hooks"),
    Entry("/jobs", "Jobs"),
    Entry("/pipelines", "Pipelines"),
    Entry("/settings", "Settings"),
    Entry("/audit", "Audit"),
)


def url(path: str, **query: str | int | None) -> str:
    """A path of the console with what is given of the query."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def local(target: str) -> str:
    """A path of the console to go on to; anything else, such as another site, becomes the home page."""
    if not target.startswith("/") or target.startswith(("//", "/\\")) or not target.isprintable():
        return "/"
    return target
