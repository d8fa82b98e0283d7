"""`fila-server --workers N`: this process is the parent, and each worker a fork of it."""

import gc
import sys
from pathlib import Path

import structlog
import uvloop

from fila.cluster.supervisor import Supervisor
from fila.config import Config
from fila.core.errors import BrokerError
from fila.server.app import EXIT_DEFECT, serve
from fila.server.member import Place
from fila.settings import SettingsError
from fila.wire.address import split_address

EXIT_FAILED, EXIT_USAGE = 1, 2
LAST_PORT = 65_535


def serve_workers(config: Config) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code. Raises SettingsError, StoreUnusable or OSError."""
    _check_ports(config)
    gc.freeze()  # what is loaded by now is shared by all workers, as long as nobody writes to it
    return Supervisor(config, _run).serve()


def _check_ports(config: Config) -> None:
    """Raises SettingsError for a first port that leaves none for the last worker."""
    metrics = config.telemetry.prometheus_listen
    ports = {
        "server.worker_port": config.server.worker_port,
        "telemetry.prometheus_listen": split_address(metrics)[1] if metrics else 0,
    }
    for name, first in ports.items():
        last = first + config.server.workers - 1
        if first and last > LAST_PORT:
            raise SettingsError(
                f"{name}: {config.server.workers} workers need the ports {first} to {last}, and the last port there is "
                f"is {LAST_PORT}"
            )


def _run(config: Config, worker: int, sockets: Path, told: int, tells: int, *, restarted: bool) -> int:
    structlog.contextvars.bind_contextvars(worker=worker)
    server = config.server
    place = Place(worker, server.workers, sockets, server.worker_port, told, tells, restarted)
    try:
        uvloop.run(serve(config, place))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_DEFECT
    except SettingsError as error:
        return _fail(EXIT_USAGE, worker, error)
    except (BrokerError, OSError) as error:
        return _fail(EXIT_FAILED, worker, error)
    except Exception:  # noqa: BLE001  # whatever it is, the parent starts another
        structlog.get_logger(__name__).exception("the worker has a defect and ends")
        return EXIT_DEFECT
    return 0


def _fail(code: int, worker: int, error: Exception) -> int:
    sys.stderr.write(f"Error: worker {worker}: {error}\n")
    sys.stderr.flush()
    return code
