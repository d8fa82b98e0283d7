"""When producers are refused, and when the reserve is given and taken."""

import os
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.storage import room
from fila.storage.room import RESERVE_FILE, Room

MIB = 1 << 20


class Disk:
    """A disk whose figures are made up; the reserve is a file of its own size on the real one."""

    def __init__(self, monkeypatch, folder, total):
        self.folder, self.total, self.others = folder, total, 0
        monkeypatch.setattr(room, "os", SimpleNamespace(**vars(os) | {"statvfs": self.statvfs}))

    @property
    def free(self):
        return self.total - self.others - sum(file.stat().st_size for file in self.folder.iterdir())

    def statvfs(self, _):
        return SimpleNamespace(f_bavail=self.free, f_blocks=self.total, f_frsize=1)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    return Disk(monkeypatch, tmp_path, 80 * MIB)


def has_reserve(disk):
    return (disk.folder / RESERVE_FILE).exists()


def test_the_watermark_fits_the_file_system_unless_it_is_set(disk):
    assert Room(disk.folder).min_free_bytes == 10 * MIB
    assert Room(disk.folder, 3 * MIB).min_free_bytes == 3 * MIB
    disk.total = 1 << 40
    assert Room(disk.folder).min_free_bytes == 1 << 30


def test_producers_are_refused_below_the_mark_and_taken_a_quarter_above_it(disk):
    kept = Room(disk.folder)
    seen = []
    for free in (40, 10, 9, 10, 12, 13, 10):
        kept.look(0)
        disk.others += disk.free - free * MIB
        kept.look(0)
        seen.append(kept.full)
    assert seen == [False, False, True, True, True, False, False]


def test_what_is_in_memory_counts_as_used(disk):
    kept = Room(disk.folder)
    disk.others = 50 * MIB
    kept.look(14 * MIB)
    assert not kept.full
    kept.look(21 * MIB)
    assert kept.full
    assert str(kept.refusal()).startswith(f"the store is full: {disk.free} bytes are free, ")
    assert f"again at {int(33.5 * MIB)};" in str(kept.refusal())


def test_the_reserve_is_given_when_nothing_else_is_left_and_taken_again(disk):
    kept = Room(disk.folder)
    kept.look(0)
    assert has_reserve(disk)
    assert (disk.folder / RESERVE_FILE).stat().st_size == 5 * MIB
    disk.others = disk.total - 6 * MIB
    kept.look(0)
    assert not has_reserve(disk)
    assert kept.full
    assert disk.free == 6 * MIB
    disk.others = disk.total - 20 * MIB
    kept.look(0)
    assert not kept.full
    assert has_reserve(disk)


def test_a_reserve_that_was_given_cannot_be_given_again(disk):
    kept = Room(disk.folder)
    kept.look(0)
    assert kept.give_reserve()
    assert kept.full
    assert not kept.give_reserve()


@given(
    total=st.integers(1, 1 << 44),
    free=st.floats(0, 1),
    unflushed=st.integers(0, 1 << 34),
    mark=st.integers(0, 1 << 34),
)
def test_nobody_is_refused_who_leaves_the_mark_free(total, free, unflushed, mark):
    kept = object.__new__(Room)
    kept._look = lambda: None
    kept.min_free_bytes, kept._reserve_bytes, kept.full = mark or min(1 << 30, total // 8), 0, False
    kept.free_bytes, kept._reserve = int(total * free), SimpleNamespace(exists=lambda: True)
    kept.look(unflushed)
    assert kept.full == (kept.free_bytes - unflushed < kept.min_free_bytes)
