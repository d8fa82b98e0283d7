"""What simulated posts bring: the same for everybody who asks, in every process, without anything being stored."""

import hashlib


def roll(*words: object, below: int) -> int:
    """A number from 0 up to `below` that depends on the words alone."""
    digest = hashlib.blake2b(repr(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % below


def truth(platform: str, post_id: str) -> tuple[int, int, int]:
    """Views, clicks and conversions of a post: a few per cent of views click, a few per cent of these convert."""
    views = 1_000 + roll(platform, post_id, "views", below=99_000)
    clicks = views * (20 + roll(platform, post_id, "clicks", below=60)) // 1_000
    conversions = clicks * (20 + roll(platform, post_id, "conversions", below=80)) // 1_000
    return views, clicks, conversions
