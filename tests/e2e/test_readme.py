"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_quickstart_runs_as_it_is_printed(server):
    """The quiet tenant's message overtakes the noisy one's backlog, and the noisy one's keep their order."""
    code = re.search(r"<!-- quickstart -->\n```python\n(.*?)```", README.read_text(), re.DOTALL)[1]
    run = [sys.executable, "-c", code.replace("localhost:5555", server.addr)]
    lines = subprocess.run(run, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    assert "quiet password reset" in lines
    assert [line for line in lines if line.startswith("noisy")] == [f"noisy newsletter {n}" for n in range(7)]
