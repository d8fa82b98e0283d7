"""Who takes part: affiliates by character, platforms by trouble, and what must come of it."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from fila.reconcile.simulator import truth

HEALTHY, SHAKY, OUT_FOR_A_WHILE, LOCKED = "clipshare", "photogram", "vidtube", "boardly"
PLATFORMS = (HEALTHY, SHAKY, OUT_FOR_A_WHILE, LOCKED)


@dataclass(frozen=True, slots=True)
class Affiliate:
    """Claims so many per cent of the truth."""

    name: str
    character: str
    claims_percent: int
    status: str
    impossible: bool = False


AFFILIATES = (
    Affiliate("ada", "honest", 100, "MATCHED"),
    Affiliate("ben", "honest", 100, "MATCHED"),
    Affiliate("cleo", "honest", 103, "MATCHED"),
    Affiliate("dora", "careless", 92, "DISCREPANCY_LOW"),
    Affiliate("emil", "careless", 115, "DISCREPANCY_MEDIUM"),
    Affiliate("finn", "forgetful", 60, "DISCREPANCY_HIGH"),
    Affiliate("gus", "boastful", 140, "AFFILIATE_OVERCLAIMED"),
    Affiliate("hal", "a cheat", 300, "AFFILIATE_OVERCLAIMED", impossible=True),
)
FLOODER = Affiliate("zoe", "floods", 100, "MATCHED")


def report(affiliate: Affiliate, platform: str, number: int) -> dict[str, object]:
    """The n-th report of an affiliate, as it goes over the wire."""
    post_id = f"{affiliate.name}-{number}"
    views, clicks, conversions = truth(platform, post_id)
    claimed = views * affiliate.claims_percent // 100
    return {
        "affiliate_id": affiliate.name,
        "platform": platform,
        "post_id": post_id,
        "campaign_id": "spring",
        "views": claimed,
        "clicks": claimed + 1 if affiliate.impossible else clicks,
        "conversions": conversions,
        "idempotency_key": post_id,
    }


def script(each: int, seed: int = 7) -> Iterator[tuple[Affiliate, dict[str, object]]]:
    """All reports but those of the flooder, shuffled. One in ten is about a post of a platform that refuses us."""
    rows = [
        (affiliate, report(affiliate, LOCKED if number % 10 == 9 else PLATFORMS[number % 3], number))
        for affiliate in AFFILIATES
        for number in range(each)
    ]
    random.Random(seed).shuffle(rows)
    return iter(rows)
