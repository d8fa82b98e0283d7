"""Executes a Dockerfile without an engine: each stage is a root folder, each step runs in it by chroot.

Knows the instructions that ours uses, and fails on others. `FROM` of any Debian is a copy of the given root.
"""

import fnmatch
import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.roots import ENVIRONMENT, Root, copy_root

STEP_TIMEOUT_S = 1100


@dataclass
class Image:
    """What a stage leaves: files, and how containers of it run."""

    root: Root
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    volumes: list[str] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    stop_signal: str = "SIGTERM"

    def command(self, *words: str) -> list[str]:
        """The command line of these words in a container: the image's user and folder, only the image's variables."""
        user = [f"--userspec={self.user}:{self.user}"] if self.user != "root" else []
        variables = [f"{name}={value}" for name, value in {**ENVIRONMENT, **self.env}.items()]
        inside = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', self.workdir, *words]
        return ["env", "-i", *variables, "chroot", *user, str(self.root.folder), *inside]


def instructions(path: Path) -> list[tuple[str, str]]:
    """Pairs of instruction and arguments, with comments removed and lines joined."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def context_files(context: Path) -> list[Path]:
    """Files of the context that .dockerignore lets through, relative to it."""
    rules = [line for line in (context / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=context, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [Path(name) for name in listed.stdout.splitlines() if (context / name).is_file() and _included(name, rules)]


def _included(name: str, rules: list[str]) -> bool:
    """The last rule that matches the file or a folder above it decides."""
    included = True
    parts = Path(name).parts
    above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    for rule in rules:
        pattern = rule.removeprefix("!")
        if any(fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path, pattern.removeprefix("**/")) for path in above):
            included = rule.startswith("!")
    return included


class Builder:
    """Runs all stages; `image` is the last one."""

    def __init__(self, dockerfile: Path, context: Path, base: Path, work: Path) -> None:
        self.context, self.base, self.work = context, base, work
        self.stages: dict[str, Image] = {}
        self.image: Image
        for name, arguments in instructions(dockerfile):
            getattr(self, f"_{name.lower()}")(arguments)

    def _from(self, arguments: str) -> None:
        source, *name = arguments.split(" AS ")
        assert source.startswith("debian:"), source
        stage = name[0] if name else "final"
        self.image = self.stages[stage] = Image(copy_root(self.base, self.work / stage))

    def _run(self, arguments: str) -> None:
        env = self.image.root.reach_the_network()  # as an engine does
        runner = Image(self.image.root, {**self.image.env, **env}, self.image.workdir, self.image.user)
        command = runner.command("/bin/sh", "-c", arguments)
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=STEP_TIMEOUT_S)
        assert done.returncode == 0, (arguments, done.stdout[-3000:], done.stderr[-3000:])

    def _copy(self, arguments: str) -> None:
        words = shlex.split(arguments)
        target = self._inside(words[-1])
        if words[0].startswith("--from="):
            shutil.copytree(self._inside(words[1], words[0].removeprefix("--from=")), target, symlinks=True)
        elif words[0] == ".":
            for name in context_files(self.context):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.context / name, target / name)
        else:
            assert Path(words[0]) in context_files(self.context), f".dockerignore leaves {words[0]} out"
            shutil.copy(self.context / words[0], target)

    def _inside(self, path: str, stage: str | None = None) -> Path:
        image = self.stages[stage] if stage else self.image
        return image.root.folder / str(Path(image.workdir) / path).lstrip("/")

    def _workdir(self, arguments: str) -> None:
        self.image.workdir = arguments
        self._inside(".").mkdir(parents=True, exist_ok=True)

    def _env(self, arguments: str) -> None:
        name, value = arguments.split("=", 1)
        self.image.env[name] = value

    def _user(self, arguments: str) -> None:
        self.image.user = arguments

    def _volume(self, arguments: str) -> None:
        self.image.volumes.append(arguments)

    def _expose(self, arguments: str) -> None:
        self.image.ports += arguments.split()

    def _healthcheck(self, arguments: str) -> None:
        self.image.health = json.loads(arguments.partition("CMD ")[2])

    def _stopsignal(self, arguments: str) -> None:
        self.image.stop_signal = arguments

    def _entrypoint(self, arguments: str) -> None:
        self.image.entrypoint = json.loads(arguments)
