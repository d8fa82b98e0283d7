"""Without the right Java, one error says what was looked for and how to get it. None of this starts Spark."""

import subprocess
import sys

import pytest

from fila.spark.errors import SparkMissing
from fila.spark.java import require_java


def java(folder, said):
    """A java that says this of itself."""
    binary = folder / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    binary.chmod(0o755)
    return binary


def test_java_home_counts_before_the_path(tmp_path):
    binary = java(tmp_path, 'openjdk version "21.0.2" 2024-01-16')
    assert require_java({"JAVA_HOME": str(tmp_path), "PATH": ""}) == binary
    assert require_java({"PATH": str(tmp_path / "bin")}) == binary


@pytest.mark.parametrize(
    "said, text",
    [
        ('openjdk version "11.0.22" 2024-01-16', "is version 11"),
        ('java version "1.8.0_402"', "is version 8"),
        ("Segmentation fault", "does not tell its version"),
    ],
)
def test_a_java_that_will_not_do_is_named(tmp_path, said, text):
    java(tmp_path, said)
    with pytest.raises(SparkMissing, match=text) as error:
        require_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert str(tmp_path) in str(error.value)
    assert "apt-get install openjdk-17-jre-headless" in str(error.value)


def test_no_java_is_said_with_where_it_was_looked_for(tmp_path):
    with pytest.raises(SparkMissing, match="JAVA_HOME is not set and PATH has no java"):
        require_java({"PATH": str(tmp_path)})
    with pytest.raises(SparkMissing, match="has no bin/java"):
        require_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_nothing_else_imports_pyspark():
    """The SDK and the command line, with all of its commands, work where pyspark is not installed."""
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from click.testing import CliRunner\n"
        "from fila.cli.main import cli\n"
        "run = lambda *a: CliRunner().invoke(cli, ['pipeline', *a])\n"
        "assert run('reconcile', '--help').exit_code == 0\n"
        "result = run('reconcile', '--reports', 'a', '--metrics', 'b', '--out', 'c')\n"
        "assert result.exit_code == 1, result\n"
        "print(result.output)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'fila[spark]'" in done.stdout


def test_without_what_it_needs_the_format_says_so_and_leaves_other_formats_alone():
    pytest.importorskip("pyspark")
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pyspark_fila import DefaultSource\n"
        "assert DefaultSource.name() == 'fila'\n"
        "try: DefaultSource({})\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SparkMissing")
    assert "pyarrow" in done.stdout
    assert "pip install 'fila[spark]'" in done.stdout
