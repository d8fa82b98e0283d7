"""The documentation site: it builds without a warning, has every page and every public thing, and asks nobody else."""

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from playwright.sync_api import expect

from fila.cli.main import cli
from fila.client import __all__ as public_names
from fila.config import Config
from fila.settings import section_types
from fila.settings.section import rules
from fila.telemetry.catalog import CATALOG
from fila.testing.console import BrowserMissing, open_browser
from fila.v1 import admin_pb2, auth_pb2, service_pb2
from website.__main__ import CONFIG
from website.versions import this_version, write_list

ROOT = Path(__file__).parents[2]
PATIENCE_MS = 20_000


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nobody reads it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(
        [sys.executable, "-m", "website", "build", "--to", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert made.returncode == 0, made.stderr
    return folder


def text_of(path):
    return re.sub(r"<[^>]*>", "", path.read_text())


def test_it_has_every_page_of_docs(site):
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / str(name).replace("README", "index")).exists(), name


def test_programs_find_a_map_and_all_pages_as_one_text(site):
    assert (site / "llms.txt").read_text() == (ROOT / "llms.txt").read_text()
    whole = (site / "llms-full.txt").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert f"<!-- {page.relative_to(ROOT / 'docs')} -->" in whole
    for sdk in ("go", "javascript", "rust", "java", "ruby"):
        quickstart = (ROOT / "sdks" / sdk / "README.md").read_text().partition("## Quickstart")[2][:200]
        assert quickstart in whole
        assert (site / "sdks" / f"{sdk}.html").exists()


def test_it_loads_nothing_from_other_machines(site):
    for page in site.rglob("*.html"):
        assert not re.search(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//', page.read_text()), page


def test_the_reference_names_everything(site):
    commands = text_of(site / "reference" / "cli.html")
    for name in cli.commands:
        assert f"Usage: fila {name}" in commands
    configuration = text_of(site / "reference" / "configuration.html")
    for section, kind in section_types(Config).items():
        assert f"[{section}]" in configuration
        for key in rules(kind):
            assert key in configuration
    metrics = text_of(site / "reference" / "metrics.html")
    for metric in CATALOG:
        assert metric.prometheus_name in metrics
    python = text_of(site / "reference" / "python.html")
    for name in public_names:
        assert name in python
    api = text_of(site / "reference" / "api.html")
    for file in (service_pb2, admin_pb2, auth_pb2):
        for service in file.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                assert method.name in api


#: Found without a parser: what each SDK declares for everybody, and names that are only its own.
DECLARED = {
    "go": (
        "*.go",
        r"^(?:func (?:\(\w+ \*?[A-Z]\w*\) )?|type |\t(?=Err\w+ +=))([A-Z]\w*)",
        ["sendWindow", "newHolding"],
    ),
    "javascript": ("src/index.ts", r"^  (?:type )?([A-Z]\w+),$", ["SendWindow", "ConsumerContext"]),
    "rust": ("src/*.rs", r"^    pub (?:async )?fn (\w+)", ["SendWindow", "pub(crate)"]),
    "java": (
        "src/main/java/io/fila/client/*.java",
        r"^public (?:final )?(?:class|interface|record) (\w+)",
        ["SendWindow"],
    ),
    "ruby": ("lib/fila/{client,admin,message,errors}.rb", r"^ +(?:class|attr_reader) :?(\w+)", ["SendWindow", "Feed"]),
}


@pytest.mark.parametrize("sdk", DECLARED)
def test_the_reference_of_an_sdk_names_what_is_public_and_nothing_else(site, sdk):
    pattern, declaration, own = DECLARED[sdk]
    before, _, rest = pattern.partition("{")
    names, _, after = rest.partition("}")
    files = [file for name in names.split(",") for file in (ROOT / "sdks" / sdk).glob(f"{before}{name}{after}")]
    text = "".join(file.read_text() for file in files if not file.name.endswith("_test.go"))
    shown = text_of(site / "reference" / f"{sdk}.html")
    found = set(re.findall(declaration, text, re.MULTILINE))
    assert len(found) > 20
    assert [name for name in sorted(found) if not re.search(rf"\b{name}\b", shown)] == []
    assert [name for name in own if name in shown] == []
    package = re.search(r"Every public name of (\S+),", shown)[1]
    assert package in (ROOT / "sdks" / sdk / "README.md").read_text()


@pytest.fixture(scope="module")
def browser():
    try:
        with open_browser() as found:
            yield found
    except BrowserMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


def test_the_search_works_on_pages_from_the_disk(site, browser):
    """Without a server, and so without any other machine."""
    page = browser.new_page()
    page.goto((site / "index.html").as_uri())
    page.locator("[data-md-component=search-query]").click()
    page.keyboard.type("bridge RabbitMQ")
    found = page.locator(".md-search-result__link").first
    expect(found).to_have_attribute("href", re.compile("tutorial-from-rabbitmq.html"), timeout=PATIENCE_MS)


@pytest.fixture
def site_repository(tmp_path):
    """The repository of a site that has one older version."""
    bare, work = tmp_path / "site.git", tmp_path / "work"
    git("init", "--quiet", "--bare", "--initial-branch", "main", bare)
    git("init", "--quiet", "--initial-branch", "gh-pages", work)
    (work / "0.0.9").mkdir()
    (work / "0.0.9" / "index.html").write_text("old")
    git("-C", work, "add", "--all")
    git("-C", work, *NOBODY, "commit", "--quiet", "--message", "Documentation of 0.0.9")
    git("-C", work, "push", "--quiet", bare, "gh-pages")
    return bare


NOBODY = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")


def git(*arguments):
    command = ["git", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def publish_site(repository, *arguments):
    return subprocess.run(
        [ROOT / "release" / "site", *arguments],
        env={**os.environ, "SITE_REPOSITORY": str(repository), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )


def test_a_release_puts_its_pages_beside_those_of_other_versions_with_a_menu(tmp_path, site_repository, browser):
    published = publish_site(site_repository)
    assert published.returncode == 0, published.stderr
    served = tmp_path / "served"
    git("clone", "--quiet", "--branch", "gh-pages", site_repository, served)
    assert (served / ".nojekyll").exists()
    assert git("-C", served, "log", "--format=%s").splitlines() == [
        f"Documentation of {this_version()}",
        "Documentation of 0.0.9",
    ]
    handler = functools.partial(QuietFiles, directory=str(served))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_url(f"**/{this_version()}/index.html", timeout=PATIENCE_MS)
            expect(page.locator(".md-version__link")).to_have_text([this_version(), "0.0.9"], timeout=PATIENCE_MS)
        finally:
            server.shutdown()


def test_a_site_that_cannot_be_reached_is_not_begun_anew(tmp_path):
    failed = publish_site(tmp_path / "nowhere.git")
    assert failed.returncode == 1
    assert f"site: cannot read {tmp_path / 'nowhere.git'}" in failed.stderr


def test_the_newest_release_is_the_one_to_read(tmp_path):
    for name in ("0.9.0", "0.10.0", "0.11.0.dev3", "0.10.0.dev12", "assets"):
        (tmp_path / name).mkdir()
    write_list(tmp_path)
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [entry["version"] for entry in listed] == ["0.11.0.dev3", "0.10.0", "0.10.0.dev12", "0.9.0"]
    assert [entry["version"] for entry in listed if entry["aliases"]] == ["0.10.0"]
    assert "url=0.10.0/" in (tmp_path / "index.html").read_text()


def test_a_broken_link_fails_the_build(tmp_path, caplog):
    """Also one to a heading that is not there."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "journal.md").open("a") as page:
        page.write("[a](nowhere.md) [b](concepts.md#nothing)")
    with pytest.raises(Abort):
        build(load_config(CONFIG, docs_dir=str(tmp_path / "docs"), site_dir=str(tmp_path / "site"), strict=True))
    assert "nowhere.md" in caplog.text
    assert "#nothing" in caplog.text
