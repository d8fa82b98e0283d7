"""What every no-op job calls. The first and the last one of a run note the time, so that starting a worker costs nobody
anything.
"""

import itertools
import json
import os
import time
from pathlib import Path

REDIS_URL = os.environ.get("BENCH_REDIS_URL", "redis://127.0.0.1:6379/0")
FILA_ADDR = os.environ.get("BENCH_FILA_ADDR", "127.0.0.1:5555")
TOTAL = int(os.environ.get("BENCH_JOBS", "0"))
RESULT = Path(os.environ.get("BENCH_RESULT", "result.json"))
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "4"))

_count = itertools.count(1)
_first = 0.0


def tick() -> None:
    global _first  # noqa: PLW0603  one number for the whole process
    n = next(_count)
    if n == 1:
        _first = time.time()
    if n == TOTAL:
        temporary = RESULT.with_suffix(".part")
        temporary.write_text(json.dumps({"first": _first, "last": time.time()}))
        temporary.rename(RESULT)
