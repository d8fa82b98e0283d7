"""A broker without a network for each test."""

import pytest

from tests.helpers.broker import Driver


@pytest.fixture
def driver():
    """A broker on the memory store with a queue "q", whose fairness key and weight come from headers."""
    driver = Driver()
    driver.create("q", fairness_header="tenant", weight_header="weight")
    return driver


@pytest.fixture
def held(driver):
    """A message that a consumer holds."""
    driver.send("q", b"body")
    driver.consumer = driver.join("q")
    driver.settle_down()
    (got,) = driver.consumer.take()
    return got
