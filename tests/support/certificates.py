"""Certificates of tests: CAs, servers and clients, valid or not, as PEM files."""

from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)
LOCAL = ("localhost", "127.0.0.1")


class Pair(NamedTuple):
    """Paths of a certificate and its key."""

    cert: str
    key: str


class Authority:
    """A CA that signs what a test asks for. Its certificate is the file `ca`."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._name = _name(name)
        self._key = _key()
        builder = self._builder(self._name, self._key, -DAY, 365 * DAY)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.ca = str(folder / f"{name}.pem")
        Path(self.ca).write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def server(self, name: str = "server", *, hosts: tuple[str, ...] = LOCAL, **validity: timedelta) -> Pair:
        """A certificate for these host names and addresses."""
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._sign(name, _name(hosts[0]), alternatives, ExtendedKeyUsageOID.SERVER_AUTH, **validity)

    def client(self, name: str = "client", *, uri: str = "", **validity: timedelta) -> Pair:
        """A certificate of a client with this common name."""
        names: list[x509.GeneralName] = [x509.DNSName(f"{name}.example")]
        if uri:
            names.append(x509.UniformResourceIdentifier(uri))
        alternatives = x509.SubjectAlternativeName(names)
        return self._sign(name, _name(name), alternatives, ExtendedKeyUsageOID.CLIENT_AUTH, **validity)

    def renew_client(self, name: str) -> Pair:
        """A new certificate of a client at the same place, the pair replaced at once, as Kubernetes does."""
        made = self.client(f"{name}-{x509.random_serial_number():x}")
        versions, link = Path(made.cert).with_suffix(""), self._folder / f"{name}-current"
        versions.mkdir()
        for path, kind in ((made.cert, "pem"), (made.key, "key")):
            Path(path).rename(versions / f"client.{kind}")
        link.with_suffix(".new").symlink_to(versions)
        link.with_suffix(".new").replace(link)
        return Pair(str(link / "client.pem"), str(link / "client.key"))

    def _sign(self, file, subject, alternatives, usage, *, begins=-DAY, ends=30 * DAY):
        key = _key()
        builder = self._builder(subject, key, begins, ends)
        builder = builder.add_extension(alternatives, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        pair = Pair(str(self._folder / f"{file}.pem"), str(self._folder / f"{file}.key"))
        write(pair, _pem(builder.sign(self._key, hashes.SHA256())), key)
        return pair

    def _builder(self, subject, key, begins, ends):
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + ends)
        )


def write(pair, certificate, key):
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    Path(pair.key).write_bytes(private)
    Path(pair.key).chmod(0o600)
    Path(pair.cert).write_bytes(certificate)


def encrypted(pair, path):
    """The key of a pair under a passphrase, as another file."""
    key = serialization.load_pem_private_key(Path(pair.key).read_bytes(), None)
    kind = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, kind))
    return str(path)


def tls_config(pair, client_ca="", client_auth="none"):
    """The section of a server's configuration."""
    given = {"cert": pair.cert, "key": pair.key, "client_ca": client_ca, "client_auth": client_auth}
    return "[tls]\n" + "".join(f'{name} = "{value}"\n' for name, value in given.items())


def grpc_credentials(authority, pair=None):
    """For a channel of grpcio."""
    key, cert = (Path(pair.key).read_bytes(), Path(pair.cert).read_bytes()) if pair else (None, None)
    return grpc.ssl_channel_credentials(Path(authority.ca).read_bytes(), key, cert)


def _key():
    return ec.generate_private_key(ec.SECP256R1())


@cache
def _name(common_name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def _general_name(host):
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
