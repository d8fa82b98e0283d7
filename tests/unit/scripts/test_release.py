"""What a release is made with: one version, and workflows that only call scripts of this repository."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
COPIED = (
    "release",
    "pyproject.toml",
    "packages/fila-client/pyproject.toml",
    "deploy/helm/fila/Chart.yaml",
    "deploy/kubernetes/fila.yaml",
    "sdks/go/doc.go",
    "sdks/java/pom.xml",
    "sdks/java/README.md",
    "sdks/java/src/main/java/io/fila/client/FilaClient.java",
    "sdks/javascript/package.json",
    "sdks/ruby/lib/fila/version.rb",
    "sdks/rust/Cargo.toml",
)


@pytest.fixture
def copy(tmp_path):
    """What carries the version, to be changed."""
    for name in COPIED:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
    return tmp_path


def run(copy, script, *arguments, **env):
    command = [str(copy / "release" / script), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | env)


def git(*arguments):
    return subprocess.run(["git", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def test_everything_is_at_one_version():
    done = run(ROOT, "version", "--check")
    assert done.returncode == 0, done.stderr


def test_one_command_sets_it_everywhere(copy):
    assert run(copy, "version", "7.8.9").returncode == 0
    assert run(copy, "version").stdout == "7.8.9\n"
    assert 'version = "7.8.9"' in (copy / "packages/fila-client/pyproject.toml").read_text()
    assert '"fila-client==7.8.9"' in (copy / "pyproject.toml").read_text()
    assert 'version: 7.8.9\nappVersion: "7.8.9"' in (copy / "deploy/helm/fila/Chart.yaml").read_text()
    assert '\n  "version": "7.8.9",\n' in (copy / "sdks/javascript/package.json").read_text()


def test_a_build_of_main_sorts_below_its_release(copy):
    """As Python writes it, and as SemVer where a chart demands that."""
    run(copy, "version", "7.8.9")
    assert run(copy, "version", "--dev", 12).returncode == 0
    assert run(copy, "version").stdout == "7.8.9.dev12\n"
    assert "version: 7.8.9-dev.12\n" in (copy / "deploy/helm/fila/Chart.yaml").read_text()
    assert "VERSION = '7.8.9.dev12'" in (copy / "sdks/ruby/lib/fila/version.rb").read_text()
    assert '\nversion = "7.8.9-dev.12"\n' in (copy / "sdks/rust/Cargo.toml").read_text()
    assert run(copy, "version", "--dev", 13).returncode == 0
    assert run(copy, "version").stdout == "7.8.9.dev13\n"


@pytest.mark.parametrize("name", COPIED[2:])
def test_a_file_at_another_version_is_named(copy, name):
    file = copy / name
    file.write_text(re.sub(r"(?i)(version\W+)\d[\d.]*", r"\g<1>0.0.7", file.read_text()))
    done = run(copy, "version", "--check")
    assert done.returncode == 1
    assert name in done.stderr


@pytest.mark.parametrize("text", ["7", "v7.8.9", "7.8.9; rm", "7.8.9-rc1"])
def test_what_is_no_version_is_refused(copy, text):
    done = run(copy, "version", text)
    assert done.returncode == 1
    assert "is not a version" in done.stderr


def steps():
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for step in job.get("steps", ()):
                yield path.name, step


def test_each_step_of_a_workflow_is_a_script_or_an_action():
    """What runs there runs here: make targets, scripts of release/, and a few tools by name."""
    known = re.compile(r"(make|release/\w+|sudo( --\S+| \w+=\S+)* make|sudo apt-get|helm package|mkdir dist) ")
    for name, step in steps():
        assert ("uses" in step) != ("run" in step)
        for line in step.get("run", "").splitlines():
            assert known.match(f"{line} "), (name, line)
            for script in re.findall(r"release/[a-z]+(?= |$)", line):
                assert (ROOT / script).is_file() or script.endswith("dist"), (name, script)


def test_workflows_can_only_read_unless_a_job_says_otherwise():
    for path in WORKFLOWS:
        permissions = yaml.safe_load(path.read_text())["permissions"]
        assert permissions["contents"] == "read", path.name


def test_every_python_that_the_package_names_is_tested():
    named = set(re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text()))
    [matrix] = re.findall(r"python: (\[.*\])", (ROOT / ".github/workflows/ci.yml").read_text())
    assert set(yaml.safe_load(matrix)) == named


def test_checksums_can_be_verified_by_others(tmp_path):
    for name in ("fila-linux-amd64.tar.gz", "install.sh"):
        (tmp_path / name).write_text(name)
    for _ in range(2):  # a second time its own list is not in it
        assert run(ROOT, "checksums", tmp_path).returncode == 0
    check = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert check.stdout.count(": OK") == 2


PLATFORMS = ("darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64")


def test_the_formula_has_the_checksum_of_each_platform(tmp_path):
    sums = {name: f"{number:064x}" for number, name in enumerate(PLATFORMS)}
    (tmp_path / "SHA256SUMS").write_text("".join(f"{sums[name]}  fila-{name}.tar.gz\n" for name in PLATFORMS))
    done = run(ROOT, "formula", "https://example.org/v1", tmp_path)
    assert done.returncode == 0, done.stderr
    for name in PLATFORMS:
        assert f'url "https://example.org/v1/fila-{name}.tar.gz"\n      sha256 "{sums[name]}"' in done.stdout
    if ruby := shutil.which("ruby"):
        assert (
            subprocess.run([ruby, "-c"], input=done.stdout, check=False, text=True, capture_output=True).returncode == 0
        )


def test_a_formula_without_a_platform_is_refused(tmp_path):
    (tmp_path / "SHA256SUMS").write_text("00  fila-linux-amd64.tar.gz\n")
    done = run(ROOT, "formula", "https://example.org/v1", tmp_path)
    assert done.returncode != 0
    assert "does not name" in done.stderr


def test_a_go_module_becomes_a_commit_and_a_tag_of_its_repository(tmp_path):
    """A file that is gone from the module is gone from its repository."""
    remote, first, made = tmp_path / "remote.git", tmp_path / "first", tmp_path / "made"
    git("init", "--quiet", "--bare", "--initial-branch=main", remote)
    git("clone", "--quiet", remote, first)
    (first / "gone.go").write_text("package fila")
    git("-C", first, "add", ".")
    git("-C", first, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "first")
    git("-C", first, "push", "--quiet", "origin", "HEAD:main")
    assert run(ROOT, "sdks", made, "go").returncode == 0
    done = run(ROOT, "publish", "go", made, GO_REPOSITORY=str(remote))
    assert done.returncode == 0, done.stderr
    version = run(ROOT, "version").stdout.strip()
    names = git("-C", remote, "ls-tree", "--name-only", f"v{version}").splitlines()
    assert {"go.mod", "client.go", "LICENSE", "README.md"} <= set(names)
    assert "gone.go" not in names
    modules = (ROOT / "sdks/go").rglob("go.mod")
    tags = {"/".join([*module.relative_to(ROOT / "sdks/go").parts[:-1], f"v{version}"]) for module in modules}
    assert set(git("-C", remote, "tag").split()) == tags
    for tag in tags:
        assert git("-C", remote, "rev-parse", "main") == git("-C", remote, "rev-parse", f"{tag}^{{commit}}")


@pytest.mark.parametrize("arguments", [("python", "."), ("go", ".", "weekly")])
def test_what_cannot_be_published_is_said(arguments):
    done = run(ROOT, "publish", *arguments)
    assert done.returncode == 1
    assert arguments[-1 if len(arguments) > 2 else 0] in done.stderr
