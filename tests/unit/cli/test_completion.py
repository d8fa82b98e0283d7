"""`fila completion`: the scripts, and what a real shell makes of one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(fila, shell):
    result = fila("completion", shell)
    assert result.exit_code == 0
    assert "_FILA_COMPLETE" in result.stdout


def test_another_shell_is_wrong_usage(fila):
    assert fila("completion", "tcsh").exit_code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_and_values():
    """As a shell asks: with the words so far in its variables."""
    folder = str(Path(sys.executable).parent)
    for words, expected in (("fila que", "queue"), ("fila queue upd", "update"), ("fila top --sort old", "oldest")):
        env = {
            **os.environ,
            "_FILA_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        result = subprocess.run([f"{folder}/fila"], env=env, capture_output=True, text=True, check=False, timeout=30)
        assert expected in result.stdout
