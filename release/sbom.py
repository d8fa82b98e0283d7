"""Prints what the programs hold as a CycloneDX document: `sbom.py PYTHON LIBRARIES VERSION`.

The Python packages come from the environment that was frozen. Interpreter and shared libraries, which are no Python
packages, are added, files with their SHA-256.
"""

import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path


def packages(python: str) -> dict:
    """The document of the environment, without what differs from run to run."""
    tool = Path(sys.executable).with_name("cyclonedx-py")
    command = [tool, "environment", "--output-reproducible", "--output-format", "JSON", python]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def libraries(folder: Path) -> list[dict]:
    """Shared libraries beside the interpreter, such as OpenSSL and the interpreter itself."""
    found = sorted(path for path in folder.iterdir() if path.is_file() and ".zip" not in path.name)
    return [
        {
            "type": "library",
            "name": path.name,
            "bom-ref": f"file:{path.name}",
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
        }
        for path in found
    ]


def main(python: str, folder: str, version: str) -> None:
    """Prints the document."""
    document = packages(python)
    document["metadata"]["component"] = {"type": "application", "name": "fila", "version": version, "bom-ref": "fila"}
    interpreter = {"type": "platform", "name": "cpython", "version": platform.python_version(), "bom-ref": "cpython"}
    document["components"] += [interpreter, *libraries(Path(folder))]
    json.dump(document, sys.stdout, indent=2)


main(*sys.argv[1:])
