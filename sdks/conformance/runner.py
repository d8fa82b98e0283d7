"""Carries out one scenario with one driver."""

import itertools
import signal
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import ExitStack
from typing import Any

from sdks.conformance.driver_process import DriverFailed, DriverProcess
from sdks.conformance.matching import Mismatch, check, expand, pick, shown
from sdks.conformance.pool import DriverPool
from sdks.conformance.scenario import Scenario, Step
from sdks.conformance.world import Place, World

#: How long a driver may take to answer, unless the step says otherwise; and how long `until` asks again.
PATIENCE_S = 60.0
_POLL_S = 0.05

#: The client of a request that names none.
_CLIENT = "c"

_numbers = itertools.count(1)


class Failed(Exception):
    """A scenario failed. The text says at which step, and what was found."""


class Run:
    """One scenario on one driver: its processes, its variables, and what runs in the background."""

    def __init__(self, scenario: Scenario, pool: DriverPool, place: Place) -> None:
        self._scenario = scenario
        self._pool = pool
        self._place = place
        self._drivers: dict[str, DriverProcess] = {}
        self._clients: set[tuple[str, str]] = set()
        self._background: dict[str, tuple[float, Future[dict[str, Any]]]] = {}
        number = next(_numbers)
        self.variables: dict[str, Any] = dict(place.variables) | {"queue": f"{scenario.name}-{number}", "n": number}

    def all(self) -> None:
        """Raises Failed."""
        try:
            if self._scenario.connect:
                self._connect("main")
            self._steps(self._scenario.steps, "step ")
            self._leave()
        except (DriverFailed, FutureTimeoutError) as error:
            self._kill()
            raise Failed(str(error) or "no answer in time") from error
        except BaseException:
            self._kill()
            raise

    def _kill(self) -> None:
        for driver in self._drivers.values():
            driver.kill()

    def _steps(self, steps: tuple[Step, ...] | list[Step], prefix: str) -> None:
        for index, step in enumerate(steps, 1):
            try:
                self._step(step, f"{prefix}{index}")
            except (Mismatch, DriverFailed, FutureTimeoutError) as error:
                what = str(error) or "no answer in time"
                raise Failed(f"{prefix}{index} ({shown(step)}): {what}") from error

    def _leave(self) -> None:
        """Close the clients that are open, and give the processes back, or see that a fresh one ends by itself."""
        for name, client in self._clients:
            answer = self._drivers[name].ask("close", {"client": client}).result(PATIENCE_S)
            if "error" in answer:
                raise Failed(f"close at the end: {shown(answer['error'])}")
        for name, driver in self._drivers.items():
            if not self._scenario.fresh:
                self._pool.give_back(driver)
            elif not driver.close():
                raise Failed(f"driver {name!r} did not end when its standard input ended")

    def _driver(self, name: str) -> DriverProcess:
        if name not in self._drivers:
            self._drivers[name] = self._pool.take(fresh=self._scenario.fresh)
            if name != "main" and self._scenario.connect:
                self._connect(name)
        return self._drivers[name]

    def _connect(self, name: str) -> None:
        answer = self._driver(name).ask("connect", {"addresses": [self.variables["addr"]]}).result(PATIENCE_S)
        if "error" in answer:
            raise Failed(f"connect: {shown(answer['error'])}")
        self._clients.add((name, _CLIENT))

    def _step(self, step: Step, place: str) -> None:
        if "do" in step:
            self._fault(step["do"], expand(step.get("with", {}), self.variables), step.get("driver", "main"))
        elif "rounds" in step:
            for number in range(step["rounds"]):
                self.variables["round"] = number
                self._steps(step["steps"], f"{place}, round {number + 1}, step ")
        elif "check" in step:
            self._judge(step, {"ok": expand(step["check"], self.variables)}, 0.0)
        elif "wait" in step:
            began, answer = self._background.pop(step["wait"])
            self._judge(step, answer.result(_patience(step)), time.monotonic() - began)
        elif "background" in step:
            self._background[step["background"]] = (time.monotonic(), self._ask(step))
        elif "until" in step:
            self._until(step)
        elif "for_each" in step:
            for item in expand(step["for_each"], self.variables):
                self.variables["item"] = item
                self._once(step)
        else:
            for number in range(step.get("repeat", 1)):
                self.variables["i"] = number
                self._once(step)

    def _once(self, step: Step) -> None:
        began = time.monotonic()
        answer = self._ask(step).result(_patience(step))
        self._judge(step, answer, time.monotonic() - began)

    def _until(self, step: Step) -> None:
        deadline = time.monotonic() + _patience(step)
        while True:
            answer = self._ask(step).result(_patience(step))
            try:
                self._judge({**step, "expect": step["until"]}, answer, 0.0)
            except Mismatch:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)
            else:
                return

    def _ask(self, step: Step) -> "Future[dict[str, Any]]":
        given, name = expand(step.get("with", {}), self.variables), step.get("driver", "main")
        driver, client = self._driver(name), (name, given.get("client", _CLIENT))
        if step["op"] == "connect":
            self._clients.add(client)
        elif step["op"] == "close":
            self._clients.discard(client)
        return driver.ask(step["op"], given)

    def _judge(self, step: Step, answer: dict[str, Any], took_s: float) -> None:
        refused = answer.get("error")
        if refused is not None and (not isinstance(refused, dict) or refused.get("kind") == "UNSUPPORTED_OP"):
            raise Mismatch(f"the driver cannot do it: {shown(refused)}")
        if "error" in step or (refused is not None and "or_error" in step):
            _judge_error(step.get("error") or step["or_error"], answer)
        elif refused is not None:
            raise Mismatch(f"refused: {shown(refused)}")
        else:
            check(expand(step.get("expect", {}), self.variables), answer["ok"])
        for name, path in step.get("save", {}).items():
            self.variables[name] = pick(answer.get("ok"), path)
        if took_s * 1000 < step.get("at_least_ms", 0):
            raise Mismatch(f"it took {took_s * 1000:.0f} ms, less than {step['at_least_ms']}")
        if "at_most_ms" in step and took_s * 1000 > step["at_most_ms"]:
            raise Mismatch(f"it took {took_s * 1000:.0f} ms, more than {step['at_most_ms']}")

    def _fault(self, what: str, given: dict[str, Any], driver: str) -> None:
        server, proxy = self._place.server, self._place.proxy
        match what:
            case "sleep":
                time.sleep(given["ms"] / 1000)
            case "kill_server":
                server.kill()
            case "start_server":
                server.start()
            case "cut":
                proxy.cut()
            case "cut_every":
                proxy.cut_every(given["ms"] / 1000)
            case "mend":
                proxy.mend()
            case "delay_answers":
                proxy.delay_s = given["ms"] / 1000
            case "lose_answers":
                proxy.swallows_answers = True
            case "lose_requests":
                proxy.swallows_requests = True
            case "kill_driver":
                self._drivers.pop(driver).kill()
                self._clients = {client for client in self._clients if client[0] != driver}
            case "freeze_driver":
                self._drivers[driver].signal(signal.SIGSTOP)
            case "thaw_driver":
                self._drivers[driver].signal(signal.SIGCONT)
            case _:
                raise ValueError(f"no such fault: {what}")


def _patience(step: Step) -> float:
    return float(step.get("timeout_ms", PATIENCE_S * 1000)) / 1000


def _judge_error(wanted: str | list[str], answer: dict[str, Any]) -> None:
    kinds = [wanted] if isinstance(wanted, str) else wanted
    found = answer.get("error")
    if found is None:
        raise Mismatch(f"expected the error {' or '.join(kinds)}, found {shown(answer['ok'])}")
    if found.get("kind") not in kinds:
        raise Mismatch(f"expected the error {' or '.join(kinds)}, found {shown(found)}")
    if not found.get("type"):
        raise Mismatch(f"an error must name its type in the language: {shown(found)}")


def run(scenario: Scenario, pool: DriverPool, world: World) -> None:
    """Raises Failed."""
    with ExitStack() as stack:
        Run(scenario, pool, world.place(scenario.server, stack)).all()
