"""Check and test SDKs as continuous integration does: `python -m sdks.conformance.languages [language ...]`."""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass

from sdks.conformance.__main__ import LANGUAGES, SDKS

_TESTS = re.compile(r"^tests: (\d+) passed", re.MULTILINE)
_SCENARIOS = re.compile(r"^\w+: scenarios: (\d+) of \d+ passed", re.MULTILINE)
_EXAMPLES = re.compile(r"^\w+: examples: (\d+) of \d+ work", re.MULTILINE)
#: Colours, which some tools write also when nobody looks.
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_TARGETS = ("proto-check", "check", "test", "driver")
_TAIL_LINES = 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one SDK. `failure` is empty if all is well; `missing` says what its setup could not install."""

    tests: int = 0
    examples: int = 0
    scenarios: int = 0
    failure: str = ""
    missing: str = ""


def test(sdk: str) -> Outcome:
    """Set up, check and test one SDK, and run its examples and the quick scenarios."""
    installed = _run(["make", "--no-print-directory", "-C", str(SDKS / sdk), "setup"])
    if installed.returncode:
        return Outcome(missing=(installed.stdout.strip().splitlines() or ["its setup failed"])[-1])
    tests = 0
    for target in _TARGETS:
        made = _run(["make", "--no-print-directory", "-C", str(SDKS / sdk), target])
        if made.returncode:
            return Outcome(tests, failure=f"make {target}:\n{_tail(made.stdout)}")
        if target == "test":
            tests = _count(_TESTS, made.stdout)
    if not tests:
        return Outcome(failure="make test: it did not say `tests: N passed`")
    ran = _run([sys.executable, "-m", "sdks.conformance.examples", sdk])
    examples = _count(_EXAMPLES, ran.stdout)
    if ran.returncode or not examples:
        return Outcome(tests, examples, failure=f"examples:\n{_tail(ran.stdout)}")
    ran = _run([sys.executable, "-m", "sdks.conformance", "--sdk", sdk, "--fast"])
    scenarios = _count(_SCENARIOS, ran.stdout)
    if ran.returncode or not scenarios:
        failed = "\n".join(re.findall(r"^.*FAIL.*\n.*$", ran.stdout, re.MULTILINE))
        return Outcome(tests, examples, scenarios, failure=f"conformance:\n{failed or _tail(ran.stdout)}")
    return Outcome(tests, examples, scenarios)


def main(chosen: list[str]) -> int:
    """The exit code: 0 only if something was tested and all of it is well. In CI nothing may be missing."""
    if unknown := set(chosen) - set(LANGUAGES):
        _say(f"no such SDK: {', '.join(sorted(unknown))}; there are {', '.join(LANGUAGES)}")
        return 2
    outcomes = {}
    for sdk in chosen or LANGUAGES:
        began = time.monotonic()
        outcome = outcomes[sdk] = test(sdk)
        seconds = time.monotonic() - began
        if outcome.missing:
            _say(f"  skip  {sdk:10}  {outcome.missing}")
        else:
            counts = f"{outcome.tests:4} tests, {outcome.examples} examples, {outcome.scenarios:3} scenarios"
            _say(f"  {'FAIL' if outcome.failure else 'ok  '}  {sdk:10}  {counts}, {seconds:4.0f} s")
        if outcome.failure:
            _say("        " + outcome.failure.replace("\n", "\n        "))
    counted = ("tests", "examples", "scenarios")
    tests, examples, scenarios = (sum(getattr(each, name) for each in outcomes.values()) for name in counted)
    failed = [sdk for sdk, outcome in outcomes.items() if outcome.failure]
    missing = [sdk for sdk, outcome in outcomes.items() if outcome.missing]
    passed = len(outcomes) - len(failed) - len(missing)
    _say(f"{passed} SDKs, {tests} tests, {examples} examples and {scenarios} scenarios passed")
    if failed or missing:
        _say(f"failed: {', '.join(failed) or 'none'}; without their toolchain: {', '.join(missing) or 'none'}")
    return 1 if failed or not tests or not scenarios or (missing and os.environ.get("CI")) else 0


def _run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    ran = subprocess.run(  # noqa: S603  # our own commands
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=SDKS.parent
    )
    ran.stdout = _ESCAPES.sub("", ran.stdout)
    return ran


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(int(found) for found in pattern.findall(text))


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_TAIL_LINES:])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
