"""What the broker says in words is explained on the page about it, also where it is told from history."""

import re
from pathlib import Path

import pytest

from fila.broker.explain import CAUSES
from fila.broker.outcomes import OUTCOMES
from fila.storage.journal import Kind
from fila.storage.records import DeathReason
from tests.helpers.journal import Replay

DOCS = Path(__file__).parents[3] / "docs"


def first_column(page, title):
    """The words in the first column of the table under a title."""
    text = (DOCS / page).read_text().split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    return [name for row in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]


def test_every_kind_of_entry_has_a_row_on_the_page_of_the_journal():
    assert sorted(first_column("journal.md", "Entries")) == sorted(kind.name.lower() for kind in Kind)


@pytest.mark.parametrize("kind", Kind)
def test_history_is_told_again_of_every_kind(kind):
    """The property test of the journal replays it; of a kind that never happens there it would not notice."""
    assert callable(getattr(Replay, f"on_{kind.name.lower()}"))


def test_every_reason_and_every_failed_attempt_is_on_the_page_of_dead_letters():
    page = (DOCS / "dead-letters.md").read_text()
    words = [*DeathReason, *(kind.name.lower() for kind, outcome in OUTCOMES.items() if outcome.counts)]
    assert [word for word in words if f"`{word}`" not in page] == []


def test_every_reason_to_wait_is_on_the_page_that_says_what_to_do():
    page = (DOCS / "operations.md").read_text()
    assert [cause for cause in CAUSES if f"`{cause}`" not in page] == []
