"""The tutorials, command by command: what they print is what they say."""

import pytest

from fila.testing import ServerProcess
from tests.support.pages import ROOT, Shell, blocks, checkout, environment, matches

TUTORIALS = sorted((ROOT / "docs").glob("tutorial-*.md"))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem.removeprefix("tutorial-"))
def test_the_tutorial_does_what_it_says(page, tmp_path):
    """Each makes a folder of its own with the log of its server, which stops at the end."""
    folder = checkout(tmp_path / "checkout")
    holder = ServerProcess(tmp_path)  # never started: it keeps a port free for us
    steps = blocks(page.read_text().replace("5555", str(holder.port)))
    try:
        with Shell(folder, environment()) as shell:
            for step in steps:
                if step.kind == "python":
                    name = step.text.splitlines()[0].removeprefix("# ")
                    [made] = folder.glob("*-tutorial")
                    (made / name).write_text(step.text)
                elif step.kind == "sh":
                    shell.check(step)
    finally:
        holder.close()
    [log] = folder.glob("*-tutorial/server.log")
    assert "stopped" in log.read_text()


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
