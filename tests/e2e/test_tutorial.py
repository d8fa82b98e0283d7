"""The tutorial on TLS and keys, command by command: what it prints, and that its last words are true."""

import pytest

from fila.testing import ServerProcess
from tests.support.pages import ROOT, Shell, blocks, checkout, environment, matches

PAGE = ROOT / "docs" / "tutorial-tls-and-keys.md"


@pytest.mark.timeout(240)
def test_the_tutorial_does_what_it_says(tmp_path):
    folder = checkout(tmp_path / "checkout")
    holder = ServerProcess(tmp_path)  # never started: it keeps a port free for us
    steps = blocks(PAGE.read_text().replace("5555", str(holder.port)))
    try:
        with Shell(folder, environment()) as shell:
            for step in steps:
                if step.kind == "python":
                    name = step.text.splitlines()[0].removeprefix("# ")
                    (folder / "tls-tutorial" / name).write_text(step.text)
                else:
                    shell.check(step)
    finally:
        holder.close()
    assert "stopped" in (folder / "tls-tutorial" / "server.log").read_text()


def test_a_page_that_shows_something_else_is_found(tmp_path):
    """So that the tests of pages can fail."""
    assert matches("a ...\n...\nlast\n", "a b\n1\n2\nlast\n")
    assert not matches("a ...\nlast\n", "a b\n1\nlast\n")
    assert not matches("a\n", "a b\n")
    with Shell(tmp_path, environment()) as shell:
        [right, wrong, fails, hides] = blocks(
            "```sh\necho yes\n```\n\n```text\nyes\n```\n"
            "```sh\necho no\n```\n\n```text\nyes\n```\n"
            "```sh\nfalse\ntrue\n```\n"
            "```sh\necho 'Error: x'\n```\n\n```text\nError: x\n```\n"
        )
        shell.check(right)
        for block in (wrong, fails, hides):
            with pytest.raises(AssertionError):
                shell.check(block)
