"""The deadline of a question, on a clock that the test moves."""

import socket
import threading

import httpcore
import pytest

from fila.reconcile.platforms.addresses import AddressRefused
from fila.reconcile.platforms.network import Deadline, Network


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Slow(httpcore.NetworkBackend, httpcore.NetworkStream):
    """Everything takes some seconds; an address of which nothing comes back takes all the time it is given."""

    def __init__(self, clock, *, takes=2.0, silent=(), closed=()):
        self.clock = clock
        self.takes = takes
        self.silent = silent
        self.closed = closed
        self.given = []

    def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        if host in self.closed:
            raise httpcore.ConnectError("refused")
        self.wait(host, timeout, timeout if host in self.silent else self.takes)
        return self

    def start_tls(self, ssl_context, server_hostname=None, timeout=None):
        self.wait("tls", timeout, self.takes)
        return self

    def read(self, max_bytes, timeout=None):
        self.wait("read", timeout, self.takes)
        return b"a"

    def write(self, buffer, timeout=None):
        self.wait("write", timeout, self.takes)

    def wait(self, what, timeout, takes):
        self.given.append((what, timeout))
        self.clock.now += min(takes, timeout)
        if takes >= timeout:
            raise httpcore.ConnectTimeout


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def addresses(monkeypatch):
    """The addresses that every name has."""
    found = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 80)) for each in found]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    return found


def test_all_waits_of_a_question_share_its_time(clock, addresses):
    inner = Slow(clock)
    deadline = Deadline(clock)
    deadline.start(9.0)
    stream = Network(deadline, inner, internal=True).connect_tcp("x", 80, timeout=9.0).start_tls(None, "x", timeout=9.0)
    stream.write(b"a", timeout=9.0)
    stream.read(1, timeout=9.0)
    with pytest.raises(httpcore.TimeoutException):
        stream.read(1, timeout=9.0)
    assert inner.given == [(addresses[0], 9.0), ("tls", 7.0), ("write", 5.0), ("read", 3.0), ("read", 1.0)]
    with pytest.raises(httpcore.TimeoutException):
        stream.read(1, timeout=9.0)
    assert len(inner.given) == 5, "what is over is not waited for"


def test_many_addresses_do_not_give_more_time(clock, addresses):
    inner = Slow(clock, silent=addresses)
    deadline = Deadline(clock)
    deadline.start(9.0)
    with pytest.raises(httpcore.TimeoutException):
        Network(deadline, inner, internal=True).connect_tcp("x", 80, timeout=9.0)
    assert inner.given == [(addresses[0], 9.0)]


def test_an_address_that_refuses_is_followed_by_the_next(clock, addresses):
    inner = Slow(clock, closed=addresses[:2])
    deadline = Deadline(clock)
    deadline.start(9.0)
    Network(deadline, inner, internal=True).connect_tcp("x", 80)
    assert inner.given == [(addresses[2], 9.0)]


def test_when_all_refuse_that_is_said(clock, addresses):
    deadline = Deadline(clock)
    deadline.start(9.0)
    with pytest.raises(httpcore.ConnectError, match="refused"):
        Network(deadline, Slow(clock, closed=addresses), internal=True).connect_tcp("x", 80)


def test_each_thread_has_a_deadline_of_its_own(clock):
    deadline = Deadline(clock)
    deadline.start(9.0)
    other = threading.Thread(target=deadline.start, args=(1.0,))
    other.start()
    other.join()
    assert deadline.left() == 9.0


class Resolver:
    """Answers each look-up with the next of these lists of addresses."""

    def __init__(self, monkeypatch, *answers):
        self.answers = list(answers)
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host, port, *_, **__):
        found = self.answers.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "fe80::1%1"])
@pytest.mark.parametrize("others", [[], ["8.8.8.8"]], ids=["alone", "behind a public one"])
def test_a_name_that_leads_inside_is_not_connected_to(clock, monkeypatch, address, others):
    Resolver(monkeypatch, [*others, address])
    inner, deadline = Slow(clock), Deadline(clock)
    deadline.start(9.0)
    with pytest.raises(AddressRefused, match=r"platform\.example leads to"):
        Network(deadline, inner).connect_tcp("platform.example", 443)
    assert inner.given == []


def test_the_address_that_was_checked_is_the_one_connected_to(clock, monkeypatch):
    """DNS rebinding: public when it is checked, loopback when it is looked up again."""
    resolver = Resolver(monkeypatch, ["8.8.8.8"], ["127.0.0.1"])
    inner, deadline = Slow(clock), Deadline(clock)
    deadline.start(9.0)
    Network(deadline, inner).connect_tcp("platform.example", 443)
    assert [host for host, _ in inner.given] == ["8.8.8.8"]
    assert resolver.answers == [["127.0.0.1"]], "looked up once"


def test_each_connection_is_checked_anew(clock, monkeypatch):
    Resolver(monkeypatch, ["8.8.8.8"], ["127.0.0.1"])
    deadline = Deadline(clock)
    network = Network(deadline, Slow(clock))
    deadline.start(9.0)
    network.connect_tcp("platform.example", 443)
    with pytest.raises(AddressRefused):
        network.connect_tcp("platform.example", 443)
