"""The tutorials that need a server which `make setup` does not install, command by command."""

import pytest

from benchmarks.peers.server import find_program
from benchmarks.peers.with_rabbitmq import RabbitServer
from tests.support.pages import ROOT, follow


def test_the_tutorial_on_rabbitmq_does_what_it_says(tmp_path):
    if find_program("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server") is None:
        pytest.skip("needs RabbitMQ: apt-get install rabbitmq-server")
    with RabbitServer("classic") as rabbit:
        follow(ROOT / "docs" / "tutorial-from-rabbitmq.md", tmp_path, {"5672": rabbit.port})
