"""What the process costs the machine: memory, CPU time, and since when."""

import os
import time
from contextlib import suppress
from pathlib import Path

from fila.metrics.metric import Samples
from fila.telemetry import catalog

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ProcessWatch:
    """Collects the samples of this process. One is made when it starts."""

    def __init__(self) -> None:
        self._start = time.time()

    def collect(self, samples: Samples) -> None:
        samples[catalog.PROCESS_CPU].append(((), time.process_time()))
        samples[catalog.PROCESS_START].append(((), self._start))
        with suppress(OSError):  # other systems than Linux do not say what is resident now
            samples[catalog.PROCESS_MEMORY].append(((), resident_bytes()))


def resident_bytes() -> int:
    """The memory of this process that is not swapped out. Raises OSError where there is no /proc."""
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
