"""What the process says of itself."""

import os
import time
from pathlib import Path

import psutil

from fila.telemetry import catalog, process


def collected(watch):
    samples = {metric: [] for metric in catalog.CATALOG}
    watch.collect(samples)
    return {metric: dict(values)[()] for metric, values in samples.items() if values}


def test_memory_and_time_are_those_of_this_process():
    watch = process.ProcessWatch()
    told = collected(watch)
    there = psutil.Process(os.getpid())
    assert abs(told[catalog.PROCESS_MEMORY] - there.memory_info().rss) < 64 << 20
    assert 0 < told[catalog.PROCESS_CPU] <= sum(there.cpu_times()[:2]) + 1
    assert there.create_time() <= told[catalog.PROCESS_START] <= time.time()


def test_the_time_spent_never_goes_down():
    watch = process.ProcessWatch()
    first = collected(watch)[catalog.PROCESS_CPU]
    assert collected(watch)[catalog.PROCESS_CPU] >= first


def test_a_system_that_does_not_say_what_is_resident_has_no_such_figure(monkeypatch):
    monkeypatch.setattr(process, "_STATM", Path("/nonexistent/statm"))
    told = collected(process.ProcessWatch())
    assert catalog.PROCESS_MEMORY not in told
    assert catalog.PROCESS_CPU in told
