"""Where a log ends, when the one who is asked may not know."""

import asyncio

import pytest

from fila.replicas.asking import Highest


def answers(*ends):
    left = list(ends)

    async def ask():
        return left.pop(0) if len(left) > 1 else left[0]

    return ask


@pytest.mark.parametrize("ends", [(5,), (3, 5), (0, 4, 4, 9)])
async def test_an_end_below_what_was_told_is_asked_for_again(ends):
    highest = Highest()
    highest.told(4)
    highest.told(2)
    assert await highest.end(answers(*ends), patience_s=60) == ends[-1]


async def test_an_end_that_stays_low_is_told():
    highest = Highest()
    highest.told(4)
    assert await highest.end(answers(3), patience_s=0) == 3


async def test_what_is_told_meanwhile_is_not_waited_for():
    """The end that was asked for is that of the beginning."""
    highest = Highest()
    highest.told(4)

    async def ask():
        highest.told(100)
        return 5

    async with asyncio.timeout(5):
        assert await highest.end(ask, patience_s=60) == 5
