import signal
import subprocess
import sys

import pytest

LONG = 60


def program(body):
    code = f"import os, signal, sys, threading, time\nfrom fila.cli.stopping import stop_signals\n{body}"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_a_signal_that_comes_just_when_somebody_starts_to_wait_is_not_missed():
    with program(
        """
for _ in range(500):
    both = threading.Barrier(2)
    def tell():
        both.wait()
        os.kill(os.getpid(), signal.SIGTERM)
    teller = threading.Thread(target=tell)
    with stop_signals() as wait_for_signal:
        teller.start()
        both.wait()
        wait_for_signal()
    teller.join()
print("stopped")
"""
    ) as rounds:
        try:
            assert rounds.communicate(timeout=LONG) == ("stopped\n", None)
        finally:
            rounds.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process(number):
    with program(
        """
with stop_signals() as wait_for_signal:
    print("waiting", flush=True)
    wait_for_signal()
    print("stopping", flush=True)
    time.sleep(600)
"""
    ) as stubborn:
        assert stubborn.stdout.readline() == "waiting\n"
        stubborn.send_signal(signal.SIGTERM)
        assert stubborn.stdout.readline() == "stopping\n"
        stubborn.send_signal(number)
        assert stubborn.wait(LONG) == -number


def test_signals_of_others_are_theirs_and_come_back_to_them():
    with program(
        """
signal.signal(signal.SIGUSR1, lambda *_: print("told", flush=True))
before = signal.getsignal(signal.SIGINT)
with stop_signals() as wait_for_signal:
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGINT)
    wait_for_signal()
print(signal.getsignal(signal.SIGINT) is before, signal.set_wakeup_fd(-1))
"""
    ) as polite:
        assert polite.communicate(timeout=LONG)[0] == "told\nTrue -1\n"


def test_a_signal_to_a_child_is_not_for_its_parent():
    with program(
        """
import multiprocessing
context = multiprocessing.get_context("fork")
ended = []
def work():
    here, there = context.Pipe()
    child = context.Process(target=lambda: there.send("here") or time.sleep(600))
    child.start()
    here.recv()
    child.terminate()
    child.join()
    ended.append(child.exitcode)
    os.kill(os.getpid(), signal.SIGTERM)
with stop_signals() as wait_for_signal:
    threading.Thread(target=work).start()
    wait_for_signal()
    print(ended)
"""
    ) as parent:
        try:
            assert parent.communicate(timeout=LONG)[0] == f"[{-signal.SIGTERM}]\n"
        finally:
            parent.kill()
