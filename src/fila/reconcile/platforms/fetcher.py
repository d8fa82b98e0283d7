"""The seam to platforms: one question, and an answer that is a value even when it is none."""

from collections.abc import Mapping
from typing import Protocol

from fila.reconcile.domain.models import Fetched, Post, Reason


class Fetcher(Protocol):
    """Asks one platform. Safe to use from many threads."""

    def fetch(self, post: Post, now_ms: int) -> Fetched:
        """The post's figures, or why there are none. Never raises for anything that a platform does."""

    def close(self) -> None:
        """Give back connections."""


class Fetchers:
    """The platforms that are known, by name."""

    def __init__(self, fetchers: Mapping[str, Fetcher]) -> None:
        self._fetchers = dict(fetchers)

    def fetch(self, post: Post, now_ms: int) -> Fetched:
        """Ask the post's platform. One that is not known has nothing to say."""
        fetcher = self._fetchers.get(post.platform)
        return fetcher.fetch(post, now_ms) if fetcher else Fetched(failure=Reason.ABSENT)

    def close(self) -> None:
        """Give back all connections."""
        for fetcher in self._fetchers.values():
            fetcher.close()
