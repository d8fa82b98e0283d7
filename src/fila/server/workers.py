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

EXIT_FAILED, EXIT_USAGE = 1, 2


def serve_workers(config: Config) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code. Raises StoreUnusable or OSError."""
    gc.freeze()  # what is loaded by now is shared by all workers, as long as nobody writes to it
    return Supervisor(config, _run).serve()


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
