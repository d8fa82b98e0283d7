"""The package of each SDK, installed into a project that has nothing else, runs the quickstart of its README.

A toolchain that is missing is a failure, as in all tests of a release.
"""

import os
import re
import subprocess

import pytest

from fila import Client
from fila.testing import ServerProcess
from tests.release.conftest import ROOT, script


@pytest.fixture
def packages(request, tmp_path):
    """The folder with the package of the SDK that a test is named after."""
    folder = tmp_path / "packages"
    assert script("release/sdks", folder, request.node.name.removeprefix("test_")).returncode == 0
    return folder


@pytest.fixture(scope="module")
def server():
    with ServerProcess() as server:
        yield server


def quickstart(sdk, kind, addr):
    """The program of the README, with the address of a server."""
    readme = (ROOT / "sdks" / sdk / "README.md").read_text()
    found = re.search(rf"^## Quickstart\n.*?^```{kind}\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert found, f"sdks/{sdk}/README.md has no quickstart"
    return found[1].replace("localhost:5555", addr)


def run(folder, *command, **env):
    done = subprocess.run(command, cwd=folder, env=os.environ | env, check=False, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def only(folder, pattern):
    [found] = folder.glob(pattern)
    return found


def unpacked(archive, folder):
    folder.mkdir(exist_ok=True)
    run(folder, "tar", "--extract", "--gzip", "--file", archive)
    return folder


def acked(server):
    """Whatever the language: the message of the quickstart was enqueued, delivered, and is gone."""
    with Client(server.addr) as client:
        counters = client.queue_stats("orders").counters
        client.delete_queue("orders", force=True)
    return (counters.enqueued, counters.acked) == (1, 1)


def test_javascript(packages, server, tmp_path):
    (tmp_path / "package.json").write_text('{"private": true}')
    assert script("release/publish", "--dry-run", "javascript", packages, "dev").returncode == 0
    run(tmp_path, "npm", "install", "--silent", "--no-package-lock", only(packages, "*.tgz"))
    (tmp_path / "quickstart.mjs").write_text(quickstart("javascript", "js", server.addr))
    assert "got one coffee for acme" in run(tmp_path, "node", "quickstart.mjs")
    assert acked(server)


def test_rust(packages, server, tmp_path):
    unpacked(only(packages, "*.crate"), tmp_path)
    crate = only(tmp_path, "fila-client-*")
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "hello"\nversion = "1.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n'
        f'fila-client = {{ path = "{crate}" }}\ntokio = {{ version = "1", features = ["full"] }}\n'
    )
    main = f'\n#[tokio::main]\nasync fn main() {{\n    quickstart("{server.addr}").await.unwrap();\n}}\n'
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text(quickstart("rust", "rust", server.addr) + main)
    run(tmp_path, "cargo", "run", "--quiet")
    assert acked(server)


def test_java(packages, server, tmp_path):
    version = only(packages, "maven/io/fila/fila-client/*/").name
    names = {path.name for path in only(packages, f"maven/io/fila/fila-client/{version}").iterdir()}
    parts = (".pom", ".jar", "-sources.jar", "-javadoc.jar")
    assert names >= {f"fila-client-{version}{part}" for part in parts}
    (tmp_path / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>a</groupId><artifactId>hello</artifactId><version>1</version>"
        f"<repositories><repository><id>built</id><url>file://{packages}/maven</url></repository></repositories>"
        "<dependencies><dependency><groupId>io.fila</groupId><artifactId>fila-client</artifactId>"
        f"<version>{version}</version></dependency></dependencies></project>"
    )
    (tmp_path / "Quickstart.java").write_text(quickstart("java", "java", server.addr))
    # With a cache of its own: one that is shared may hold an earlier build of this version.
    run(tmp_path, "mvn", "-q", "-B", "-Dmaven.repo.local=m2", "dependency:copy-dependencies", "-DoutputDirectory=lib")
    run(tmp_path, "javac", "-cp", "lib/*", "Quickstart.java")
    assert run(tmp_path, "java", "-cp", "lib/*:.", "Quickstart") == "true hello\n"
    assert acked(server)


def test_ruby(packages, server, tmp_path):
    run(
        tmp_path, "gem", "install", "--silent", "--local", "--ignore-dependencies", "--no-document",
        "--install-dir", "gems", only(packages, "*.gem"),
    )  # fmt: skip
    (tmp_path / "quickstart.rb").write_text(quickstart("ruby", "ruby", server.addr))
    lib = only(tmp_path, "gems/gems/fila-client-*/lib")
    assert run(tmp_path, "ruby", "-I", lib, "quickstart.rb") == "acme: an order\n"
    assert acked(server)


def test_go(packages, server, tmp_path):
    module = unpacked(only(packages, "fila-go-*.tar.gz"), tmp_path / "module")
    path = re.search(r"^module (\S+)$", (module / "go.mod").read_text(), re.MULTILINE)[1]
    (tmp_path / "main.go").write_text(quickstart("go", "go", server.addr))
    run(tmp_path, "go", "mod", "init", "hello")
    run(tmp_path, "go", "mod", "edit", f"-require={path}@v0.0.0", f"-replace={path}={module}")
    run(tmp_path, "go", "mod", "tidy")
    assert "received hello" in run(tmp_path, "go", "run", ".")
    assert acked(server)
