"""The `fila-server` program."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from fila.config import Config, load
from fila.core.errors import BrokerError
from fila.settings import SettingsError

EXIT_FAILED, EXIT_USAGE = 1, 2

EXAMPLES = """examples:
  fila-server                                       settings from fila.toml, /etc/fila/fila.toml or defaults
  fila-server --data-dir /var/lib/fila              keep messages there
  fila-server --listen 127.0.0.1:5555               serve this machine only
  FILA_STORAGE__DURABILITY=fsync fila-server        survive power loss, not only a crash
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it is told to stop. Returns the exit code."""
    try:
        config = configure(arguments)
        import uvloop

        from fila.server.app import serve
        from fila.telemetry import logs

        logs.configure(config.log)
        os.umask(0o077)  # the store is for its owner alone
        uvloop.run(serve(config))
    except SettingsError as error:
        return _fail(EXIT_USAGE, str(error))
    except ModuleNotFoundError as error:
        return _fail(EXIT_FAILED, f"the server needs the package {error.name}: pip install 'fila[server]'")
    except (BrokerError, OSError) as error:
        return _fail(EXIT_FAILED, str(error))
    return 0


def configure(arguments: Sequence[str] | None) -> Config:
    """The configuration: file, then environment, then the command line. Raises SettingsError."""
    parser = argparse.ArgumentParser(
        prog="fila-server",
        description="The Fila message broker.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the configuration file (default: fila.toml, /etc/fila/fila.toml)"
    )
    parser.add_argument("--listen", metavar="ADDR", help="address and port to serve (default: 0.0.0.0:5555)")
    parser.add_argument(
        "--insecure", action="store_true", help="serve other machines although neither keys nor certificates are set up"
    )
    parser.add_argument("--data-dir", metavar="DIR", help="where messages are kept (default: data)")
    parser.add_argument("--version", action="version", version=f"fila-server {version('fila')}")
    options = parser.parse_args(arguments)
    config = load(options.config, os.environ)
    if options.listen is not None:
        config = replace(config, server=replace(config.server, listen_addr=options.listen))
    if options.insecure:
        config = replace(config, server=replace(config.server, insecure=True))
    if options.data_dir is not None:
        config = replace(config, storage=replace(config.storage, data_dir=options.data_dir))
    return config


def _fail(code: int, text: str) -> int:
    sys.stderr.write(f"Error: {text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
