"""What the pages name exists: commands with their options, methods of the SDK, settings, metrics and links. And every
command and every method of the SDK is on a page.
"""

import re
import shlex
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest

import fila
from fila import AsyncClient, Client
from fila.cli.main import cli
from fila.config import Config, load
from fila.jobs.metrics import CATALOG as JOBS_CATALOG
from fila.server.main import STORE_COMMANDS
from fila.telemetry.catalog import CATALOG
from fila.v1 import admin_pb2, auth_pb2, service_pb2

ROOT = Path(__file__).parents[3]
SERVICES = [
    *admin_pb2.DESCRIPTOR.services_by_name.values(),
    *auth_pb2.DESCRIPTOR.services_by_name.values(),
    *service_pb2.DESCRIPTOR.services_by_name.values(),
]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "llms.txt", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
JOBS = {name for metric in JOBS_CATALOG for name in (metric.prometheus_name, metric.alias)}
COLUMNS = {"fila_file", "fila_problem"}  # of pipelines, where a row comes from and what is wrong with it
TABLES = {"fila_log"}  # of PostgreSQL, where a log is kept
FILES = {"py", "pem", "key"}  # server.py is no setting
COMMAND = r"fila(?:-server)? [^|;&\n]*"


def page(path):
    return path.relative_to(ROOT).as_posix()


def commands(text):
    """Whole lines of shell in blocks, and what is written `fila ...` in a sentence."""
    for kind, block in FENCE.findall(text):
        if kind in {"sh", ""}:
            yield from re.findall(
                r"(?:^|[|;&(] *|[A-Z_]+=\S+ )(?:\.venv/bin/)?(fila(?:-server)? [^|;&\n]*)", block, re.MULTILINE
            )
    outside = FENCE.sub("", text)
    yield from re.findall(rf"^    ({COMMAND})", outside, re.MULTILINE)
    yield from re.findall(r"`(fila(?:-server)? [^`|]*)[`|]", outside)


def words_of(command):
    command = re.split(r"  +|\s#", command.strip())[0]  # a remark stands behind it
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_commands_and_options_exist(path):
    wrong = []
    for command in commands(path.read_text()):
        program, *words = words_of(command)
        if program == "fila-server":
            known = {"--config", "--listen", "--insecure", "--data-dir", "--workers", "--console", "--version"}
            known |= {"--help"}
            if words and words[0] in STORE_COMMANDS:
                known = {"--data-dir", "--to", "--from", "--help"}
        else:
            found, known = cli, set()
            while isinstance(found, click.Group) and words:
                known |= {option for each in found.params for option in each.opts}
                if words[0].startswith("-") or words[0] in {"...", "…"}:
                    break
                name = words.pop(0)
                if "|" not in name and name not in found.commands:
                    wrong.append(command)
                    break
                found = found.commands.get(name.split("|")[0], found)
            known |= {option for each in found.params for option in (*each.opts, *each.secondary_opts)}
            known |= {"--help", "-h"}
        wrong += [
            command
            for word in words
            if (bare := word.strip("[](),").split("=")[0]).startswith("--") and bare not in known
        ]
    assert wrong == []


def leaves(group, path=()):
    """Every command that does something, by its words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        elif not command.hidden:
            yield (*path, name)


def ran(command, words, path=()):
    """The commands that a line stands for: `fila auth role set|list` are two."""
    if not isinstance(command, click.Group):
        yield path
    elif words:
        for name in words[0].split("|"):
            if name in command.commands:
                yield from ran(command.commands[name], words[1:], (*path, name))


def test_every_command_is_on_a_page():
    lines = [words_of(command) for path in PAGES for command in commands(path.read_text())]
    shown = {path for program, *words in lines if program == "fila" for path in ran(cli, words)}
    assert set(leaves(cli)) - shown == set()


def test_options_in_the_tables_of_the_command_exist():
    def options(command):
        own = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        return own.union(*(options(each) for each in getattr(command, "commands", {}).values()))

    named = re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", (ROOT / "docs" / "cli.md").read_text())
    assert set(named) - options(cli) - {"--help"} == set()


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_methods_of_clients_exist(path):
    named = re.findall(r"(?<!self\.)\bclient\.(\w+)", path.read_text())  # `self.client` is that of Django's tests
    assert [name for name in named if not (hasattr(Client, name) or hasattr(AsyncClient, name))] == []


def test_every_method_of_the_client_is_on_the_page_of_the_sdk():
    text = (ROOT / "docs" / "sdk-python.md").read_text()
    methods = [name for name in dir(AsyncClient) if not name.startswith("_")]
    assert [name for name in methods if not re.search(rf"[.`]{name}\b", text)] == []


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_configurations_can_be_loaded(path, tmp_path):
    for kind, block in FENCE.findall(path.read_text()):
        if kind == "toml" and set(tomllib.loads(block)) & set(Config.__dataclass_fields__):
            (tmp_path / "fila.toml").write_text(block)
            load(tmp_path / "fila.toml", {})


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_settings_exist(path):
    """Those that are written with their section."""
    sections = {each.name: {one.name for one in fields(each.default_factory)} for each in fields(Config)}
    named = re.findall(rf"`({'|'.join(sections)})\.(\w+)(?: = [^`]*)?`", path.read_text())
    named += re.findall(rf"`\[({'|'.join(sections)})\] (\w+)(?: = [^`]*)?`", path.read_text())
    assert [f"{section}.{key}" for section, key in named if key not in sections[section] | FILES] == []


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_calls_of_the_contract_exist(path):
    """What a page calls a call, an RPC or a method of a service."""
    known = {method for service in SERVICES for method in service.methods_by_name}
    named = re.findall(r"the `(\w+)` call|RPC is `(\w+)`|`(\w+)` of `Fila(?:Admin|Service)`", path.read_text())
    assert {name for found in named for name in found if name} - known == set()


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_metrics_exist(path):
    known = {metric.name for metric in CATALOG}
    prefixes = tuple(name.replace(".", "_") for name in known)
    text = path.read_text()
    exported = set(re.findall(r"`(fila_[a-z_]+)(?:\{[^`]*)?`", text)) - JOBS - COLUMNS - TABLES
    assert {name for name in exported if not name.startswith(prefixes)} == set()
    named = set(re.findall(r"`(fila\.[a-z_]+\.[a-z_.]+)[`{]", text))
    code = {name for name in named if (ROOT / "src" / "/".join(name.split(".")[:2])).exists()}
    assert named - known - code == set()


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_alerts_exist(path):
    known = set(re.findall(r"alert: (\w+)", (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()))
    named = set(re.findall(r"`(Fila[A-Z]\w+)`", path.read_text()))
    names = {service.name for service in SERVICES} | {*dir(fila), *fila.jobs.__all__}
    assert named - known - names == set()


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_links_lead_somewhere(path):
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", path.read_text())):
        name, _, anchor = target.partition("#")
        if re.match(r"\w+:", target):
            continue
        found = (path.parent / name).resolve() if name else path
        if not found.exists():
            wrong.append(target)
        elif anchor and found.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE)
            if anchor not in {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}:
                wrong.append(target)
    assert wrong == []


@pytest.mark.parametrize("path", PAGES, ids=page)
def test_tests_exist(path):
    """Files and folders of tests, and the classes and functions that are named in them (`file.py::name`)."""
    wrong = []
    for named, inside in re.findall(r"`(tests/[\w/.-]+)((?:::\w+)*)[^`]*`", path.read_text()):
        found = ROOT / named
        if not found.exists():
            wrong.append(named)
        elif names := inside.split("::")[1:]:
            text = found.read_text()
            wrong += [
                f"{named}::{name}"
                for name in names
                if not re.search(rf"^ *(?:class|def|async def) {name}\b", text, re.MULTILINE)
            ]
    assert wrong == []


def test_modules_of_the_glossary_exist():
    """Where the glossary says that a word lives, there is a module or a part of that name."""
    glossary = (ROOT / "docs" / "concepts.md").read_text().partition("## Glossary")[2]
    named = re.findall(r"`((?:broker|core|lua|server|storage)/(?:\w+\.py)?)`", glossary)
    assert named
    assert [name for name in named if not (ROOT / "src" / "fila" / name).exists()] == []
