"""The tutorials, command by command: what they print is what they say."""

import pytest

from tests.support.pages import ROOT, Shell, blocks, environment, follow, matches

#: Run elsewhere: tests/release/test_tutorials.py, tests/spark/pipelines/test_tutorial.py.
ELSEWHERE = {"tutorial-from-rabbitmq", "tutorial-spark"}
TUTORIALS = sorted(page for page in (ROOT / "docs").glob("tutorial-*.md") if page.stem not in ELSEWHERE)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem.removeprefix("tutorial-"))
def test_the_tutorial_does_what_it_says(page, tmp_path):
    follow(page, tmp_path)


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
