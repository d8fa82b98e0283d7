"""llms.txt tells a program that writes programs what there is: each call of the contract, and patterns that run."""

import re
import subprocess
import sys

import pytest

from fila.v1 import admin_pb2, auth_pb2, service_pb2
from tests.support.pages import ROOT, blocks

TEXT = (ROOT / "llms.txt").read_text()
PATTERNS = [block.text for block in blocks(TEXT) if block.kind == "python"]
PRINTED = ("acme an order", "max_attempts 2", "throttled", "5")


@pytest.mark.parametrize("pattern, printed", [*zip(PATTERNS, PRINTED, strict=True)], ids=PRINTED)
def test_a_pattern_runs_as_it_is_printed(pattern, printed, server):
    code = pattern.replace("localhost:5555", server.addr)
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"{printed}\n", "")


def test_every_call_of_the_contract_is_named_and_no_other():
    surface = TEXT.partition("## API surface")[2].partition("\n## ")[0]
    for file in (service_pb2, admin_pb2, auth_pb2):
        for name, service in file.DESCRIPTOR.services_by_name.items():
            lines = [line for line in surface.splitlines() if line.startswith(f"- `{name}`")]
            told = re.findall(r"`(\w+)`", " ".join(line.partition(":")[2] for line in lines))
            assert sorted(told) == sorted(method.name for method in service.methods)
