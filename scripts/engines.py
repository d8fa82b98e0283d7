"""Installs the engines that tests and benchmarks run, from the registries of their languages, into `.venv`.

    python -m scripts.engines nats    prints the path of nats-server, built from its Go module
    python -m scripts.engines kafka   prints the folder of Kafka's jars, from Maven Central

Each is installed once and then found at once. What cannot be had is one line on standard error, and the exit status 1.
"""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from scripts import go_tool

NATS_VERSION = "v2.15.2"
KAFKA_VERSION = "4.3.1"
KAFKA_TIMEOUT_S = 600
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>engines</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{KAFKA_VERSION}</version></dependency>
  </dependencies>
</project>
"""


def nats() -> Path:
    """The program. Raises RuntimeError, with one sentence, when it cannot be had."""
    return go_tool.build("github.com/nats-io/nats-server/v2", NATS_VERSION)


def kafka() -> Path:
    """The folder of the jars, for `java`. Raises RuntimeError, with one sentence, when they cannot be had."""
    folder = Path(sys.prefix) / f"kafka-{KAFKA_VERSION}"
    libraries = folder / "libs"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run in parallel fetch them once
        if not libraries.exists():
            _fetch_jars(folder, libraries)
    if shutil.which("java") is None:
        raise RuntimeError("Kafka needs Java 17 or newer: install openjdk-17-jre-headless")
    return libraries


def _fetch_jars(folder: Path, libraries: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise RuntimeError(
            "Kafka comes from Maven Central and there is no `mvn` here: install maven, then run this again"
        )
    (folder / "pom.xml").write_text(_POM)
    fetched = folder / "fetched"
    copied = subprocess.run(
        [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={fetched}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=KAFKA_TIMEOUT_S,
        check=False,
    )
    if copied.returncode:
        errors = [line for line in (copied.stdout + copied.stderr).splitlines() if "ERROR" in line]
        raise RuntimeError(f"cannot fetch Kafka: {errors[0] if errors else 'mvn failed'}")
    fetched.rename(libraries)


ENGINES: dict[str, Callable[[], Path]] = {"nats": nats, "kafka": kafka}


def main(names: list[str]) -> int:
    """Install the engines that are named."""
    if not names or not set(names) <= ENGINES.keys():
        print(f"engines: say some of {', '.join(ENGINES)}", file=sys.stderr)
        return 2
    failed = False
    for name in names:
        try:
            print(ENGINES[name]())
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            print(f"engines: {error}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
