"""Runs h2spec, the HTTP/2 conformance suite, against a real server; fails when a case passes or fails unexpectedly.

`scripts/h2spec_accepted.txt` lists the cases that fail and why that is accepted. A failure that is not listed fails the
run, and so does a listed case that passes: then its line is to be removed.
"""

import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from scripts import go_tool

H2SPEC = "github.com/summerwind/h2spec/cmd/h2spec"
VERSION = "v2.2.1+incompatible"  # the newest one that can be installed as a Go module
CASE_TIMEOUT_S = 2
RUN_TIMEOUT_S = 300
START_TIMEOUT_S = 30

RETRIES = 5
"""A request of h2spec that is no call of gRPC is answered at once. A case of several frames cannot pass when that is
before the last one is sent, so what is unexpected is tried again, by itself."""

Cases = dict[str, tuple[str, str | None]]
"""By name, as h2spec takes it: what a case does, and how it failed, if it did."""

ROOT = Path(__file__).parent.parent
ACCEPTED = ROOT / "scripts" / "h2spec_accepted.txt"
PROGRAMS = Path(sys.executable).parent


def main() -> int:
    try:
        program, accepted = go_tool.build(H2SPEC, VERSION), read_accepted()
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as port:
            cases = run(program, port)
            for _ in range(RETRIES):
                for name in unexpected(cases, accepted):
                    cases |= run(program, port, name)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        sys.stderr.write(f"check-wire: {error}\n")
        return 1
    problems = [
        *(f"{name} is accepted, and there is no such case" for name in accepted if name not in cases),
        *(describe(name, *cases[name]) for name in unexpected(cases, accepted)),
    ]
    failed = sum(error is not None for _, error in cases.values())
    sys.stdout.write(f"check-wire: {len(cases)} cases, {failed} fail, {len(problems)} unexpected\n")
    sys.stdout.writelines(f"  {problem}\n" for problem in problems)
    return 1 if problems else 0


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """The port of a server."""
    port = free_port()
    server = subprocess.Popen(
        [PROGRAMS / "fila-server", "--listen", f"127.0.0.1:{port}", "--data-dir", str(folder / "data")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        wait_for(port, server)
        yield port
    finally:
        server.terminate()
        server.wait()


def run(program: Path, port: int, only: str | None = None) -> Cases:
    """All cases, or one."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        arguments = ["-h", "127.0.0.1", "-p", str(port), "-o", str(CASE_TIMEOUT_S), "-j", str(report)]
        wanted = [] if only is None else [only]
        subprocess.run([program, *wanted, *arguments], stdout=subprocess.DEVNULL, timeout=RUN_TIMEOUT_S, check=False)
        cases = read_report(report)
    if only is None:
        return cases
    return {only: next(iter(cases.values()))}  # its number in the report is 1


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("fila-server did not start")


def read_report(report: Path) -> Cases:
    cases: Cases = {}
    for suite in ET.parse(report).getroot().iter("testsuite"):  # noqa: S314  # written by the program above
        for number, case in enumerate(suite.findall("testcase"), 1):
            error = case.find("error")
            if error is None:
                error = case.find("failure")
            found = None if error is None else " / ".join((error.text or "").split("\n"))
            cases[f"{suite.get('package')}/{number}"] = (case.get("classname", ""), found)
    if not cases:
        raise RuntimeError("h2spec has reported nothing")
    return cases


def read_accepted() -> dict[str, str]:
    """Reasons by case."""
    lines = [line for line in ACCEPTED.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(maxsplit=1) for line in lines)


def unexpected(cases: Cases, accepted: Mapping[str, str]) -> list[str]:
    return [name for name, (_, error) in cases.items() if (error is not None) != (name in accepted)]


def describe(name: str, title: str, error: str | None) -> str:
    if error is None:
        return f"{name} passes: remove it from {ACCEPTED.name}: {title}"
    return f"{name} fails: {title}: {error}"


if __name__ == "__main__":
    sys.exit(main())
