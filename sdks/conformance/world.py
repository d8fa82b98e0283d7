"""What scenarios happen in: servers of several kinds, each with a fault proxy before it, certificates and keys."""

import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from fila import Client
from fila.testing import ServerProcess
from sdks.conformance.members import Passing, Refusing
from sdks.conformance.proxy import FaultProxy, dead_address
from tests.support.certificates import Authority, Pair

_CONFIG = '[log]\nlevel = "warning"\n'
_LARGE = "[limits]\nmax_payload_bytes = 8388608\n"


class Place:
    """A server, the proxy before it, and the variables that its scenario may use."""

    def __init__(self, server: ServerProcess, proxy: FaultProxy, variables: dict[str, Any]) -> None:
        self.server = server
        self.proxy = proxy
        port = proxy.addr.rpartition(":")[2]
        self.variables = {
            "addr": proxy.addr,
            "tls_addr": f"localhost:{port}",
            "direct": server.addr,
            "dead": dead_address(),
        } | variables


class World:
    """Starts servers when they are asked for. Each scenario has a proxy of its own; all but those that ask for a server
    of their own share the one of a kind. Callable from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._servers: dict[str, tuple[ServerProcess, dict[str, Any]]] = {}
        self._authorities: dict[str, Authority] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def place(self, kind: str, stack: ExitStack) -> Place:
        """`stack` ends what is the scenario's own."""
        if kind == "own":
            server, variables = self._start(kind, stack)
        else:
            shared = "shared" if kind == "cluster" else kind
            with self._lock:
                if shared not in self._servers:
                    self._servers[shared] = self._start(shared, self._stack)
                server, variables = self._servers[shared]
        proxy = stack.enter_context(FaultProxy(server.addr))
        if kind == "cluster":
            variables = _members(proxy.addr, stack)
        return Place(server, proxy, variables)

    def _start(self, kind: str, stack: ExitStack) -> tuple[ServerProcess, dict[str, Any]]:
        config, credentials = _CONFIG, None
        variables: dict[str, Any] = {}
        if kind == "large":
            config += _LARGE
        elif kind in {"tls", "mutual"}:
            config, credentials = self._secured(kind)
            variables = self._certificates(kind)
        server = stack.enter_context(ServerProcess(config=config, credentials=credentials))
        return server, _keys(server) if kind == "keys" else variables

    def _authority(self, name: str) -> Authority:
        if name not in self._authorities:
            self._authorities[name] = Authority(self._folder, name)
        return self._authorities[name]

    def _secured(self, kind: str) -> tuple[str, grpc.ChannelCredentials]:
        authority = self._authority("ca")
        pair = authority.server(f"server-{kind}")
        mutual = kind == "mutual"
        given = {"cert": pair.cert, "key": pair.key}
        if mutual:
            given |= {"client_ca": authority.ca, "client_auth": "required"}
        config = _CONFIG + "[tls]\n" + "".join(f'{name} = "{value}"\n' for name, value in given.items())
        shown = authority.client("probe") if mutual else None
        return config, _credentials(authority.ca, shown)

    def _certificates(self, kind: str) -> dict[str, Any]:
        authority, stranger = self._authority("ca"), self._authority("stranger")
        client, strange = authority.client(f"client-{kind}"), stranger.client(f"strange-{kind}")
        return {
            "ca": authority.ca,
            "stranger_ca": stranger.ca,
            "cert": client.cert,
            "key": client.key,
            "stranger_cert": strange.cert,
            "stranger_key": strange.key,
        }


def _credentials(ca: str, pair: Pair | None) -> grpc.ChannelCredentials:
    key, cert = (Path(pair.key).read_bytes(), Path(pair.cert).read_bytes()) if pair else (None, None)
    return grpc.ssl_channel_credentials(Path(ca).read_bytes(), key, cert)


def _keys(server: ServerProcess) -> dict[str, Any]:
    """The first key comes from the command line; then calls need one."""
    command = [sys.executable, "-m", "fila.cli.main", "--addr", server.addr, "auth", "init"]
    admin = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()  # noqa: S603
    with Client(server.addr, api_key=admin, tls=False) as client:
        producer = client.auth.create_key("maker", ["producer"]).token
    return {"admin_key": admin, "producer_key": producer, "wrong_key": admin[:-4] + "0000"}


def _members(owner: str, stack: ExitStack) -> dict[str, Any]:
    """Of a cluster: what they were asked is in the variables too."""
    refusing, passing = stack.enter_context(Refusing(owner)), stack.enter_context(Passing(owner))
    first, second = stack.enter_context(Refusing("")), stack.enter_context(Refusing(""))
    first.owner, second.owner = second.addr, first.addr
    members = {"refusing": refusing, "passing": passing, "circle": first, "circle2": second}
    return {name: member.addr for name, member in members.items()} | {
        f"asked_{name}": member.asked for name, member in members.items()
    }
