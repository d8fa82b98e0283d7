"""The `fila-server` program."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from fila.config import Config, load
from fila.core.errors import BrokerError
from fila.server.console import ConsoleMissing, console_beside
from fila.settings import SettingsError

EXIT_FAILED, EXIT_USAGE = 1, 2
DEFAULT_CONSOLE = "127.0.0.1:5550"

WORKERS_FILE = "FILA_WORKERS"
"""In the data directory of several workers (`fila.cluster.folder`, which one process does without)"""

CLUSTER_FILE = "FILA_CLUSTER"
"""In the data directory of a member of a cluster (`fila.replicas.folder`)"""

BEGIN_ANEW = -1
"""The program is to begin anew, with the same arguments."""

STORE_COMMANDS = ("backup", "restore", "check")
"""Commands about the folder of a store. Each has a help of its own."""

EXAMPLES = """commands about a store, each with --help:
  fila-server backup --data-dir DIR --to DIR        copy a store, in use or not
  fila-server restore --from DIR --data-dir DIR     bring a backup back, checked
  fila-server check --data-dir DIR                  is a store whole, and if not, what is wrong

examples:
  fila-server                                       settings from fila.toml, /etc/fila/fila.toml or defaults
  fila-server --data-dir /var/lib/fila              keep messages there
  fila-server --listen 127.0.0.1:5555               serve this machine only
  fila-server --workers 4 --data-dir data           four processes behind one address, each on a core of its own
  fila-server --console                             also the console, at http://localhost:5550/
  FILA_STORAGE__DURABILITY=fsync fila-server        survive power loss, not only a crash
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it is told to stop. Returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        if given and given[0] in STORE_COMMANDS:
            from fila.server import store_commands

            return store_commands.run(given[0], given[1:])
        options = _read(given)
        config = _configured(options)
        from fila.telemetry import logs

        logs.configure(config.log)
        os.umask(0o077)  # the store is for its owner alone
        with nullcontext() if options.console is None else console_beside(config, options.console):
            code = _serve(config)
        if code == BEGIN_ANEW:
            _begin_anew()
        return code
    except SettingsError as error:
        return _fail(EXIT_USAGE, str(error))
    except ModuleNotFoundError as error:
        return _fail(EXIT_FAILED, f"the server needs the package {error.name}: pip install 'fila[server]'")
    except (BrokerError, OSError, ConsoleMissing) as error:
        return _fail(EXIT_FAILED, str(error))


def _begin_anew() -> NoReturn:
    environ = os.environ | {"PYINSTALLER_RESET_ENVIRONMENT": "1"}  # a program without a Python unpacks itself anew
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environ)  # noqa: S606 - this very program


def _serve(config: Config) -> int:
    if config.cluster.enabled:
        return _serve_member(config)
    if (Path(config.storage.data_dir) / CLUSTER_FILE).exists():
        from fila.replicas.folder import check_none

        check_none(Path(config.storage.data_dir))
    if config.server.workers > 1:
        from fila.server.workers import serve_workers

        return serve_workers(config)
    import uvloop

    from fila.server.app import serve

    if (Path(config.storage.data_dir) / WORKERS_FILE).exists():
        from fila.cluster.folder import check_one

        check_one(Path(config.storage.data_dir))
    uvloop.run(serve(config))
    return 0


def _serve_member(config: Config) -> int:
    import uvloop

    from fila.server.clustered import check, serve_member

    check(config)
    return BEGIN_ANEW if uvloop.run(serve_member(config)) else 0


def configure(arguments: Sequence[str] | None) -> Config:
    """The configuration: file, then environment, then the command line. Raises SettingsError."""
    return _configured(_read(arguments))


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
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
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that share the queues, behind the one address (default: 1). The number belongs to the data "
        "directory",
    )
    parser.add_argument(
        "--console",
        nargs="?",
        const=DEFAULT_CONSOLE,
        metavar="ADDR",
        help=f"also start the console, a process of its own that ends with the server (default: {DEFAULT_CONSOLE})",
    )
    parser.add_argument("--version", action="version", version=f"fila-server {version('fila')}")
    return parser.parse_args(arguments)


def _configured(options: argparse.Namespace) -> Config:
    config = load(options.config, os.environ)
    if options.listen is not None:
        config = replace(config, server=replace(config.server, listen_addr=options.listen))
    if options.insecure:
        config = replace(config, server=replace(config.server, insecure=True))
    if options.workers is not None:
        try:
            config = replace(config, server=replace(config.server, workers=options.workers))
        except ValueError as error:
            raise SettingsError(f"--workers {str(error).partition(' = ')[2]}") from error
    if options.data_dir is not None:
        config = replace(config, storage=replace(config.storage, data_dir=options.data_dir))
    return config


def _fail(code: int, text: str) -> int:
    sys.stderr.write(f"Error: {text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
