"""An identity provider of tests: keys that sign tokens, its key set (JWKS), and a tiny server for it on loopback."""

import base64
import json
import threading
import time
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://login.example/acme", "fila"


@cache
def rsa_key(bits=2048, number=0):
    """Making one takes a tenth of a second."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


class Signer:
    """One key of the provider."""

    def __init__(self, kid="one", algorithm="ES256", key=None):
        self.kid, self.algorithm = kid, algorithm
        make = {"E": lambda: ec.generate_private_key(ec.SECP256R1()), "R": rsa_key, "P": rsa_key}
        self.key = key or (ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else make[algorithm[0]]())

    def jwk(self, **more):
        """The public half."""
        kind = OKPAlgorithm if self.algorithm == "EdDSA" else {"E": ECAlgorithm}.get(self.algorithm[0], RSAAlgorithm)
        data = kind.to_jwk(self.key.public_key(), as_dict=True)
        data.pop("key_ops", None)
        return data | {"kid": self.kid, "use": "sig", "alg": self.algorithm} | more

    def token(self, ttl=60, headers=None, **claims):
        """A token that is in order, but for what is given. A claim of None is left out."""
        now = time.time()
        all_claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + ttl} | claims
        given = {name: value for name, value in all_claims.items() if value is not None}
        return jwt.encode(given, self.key, self.algorithm, headers={"kid": self.kid} | (headers or {}))


def jwks(*signers):
    return json.dumps({"keys": [signer.jwk() for signer in signers]}).encode()


def b64(data):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class JwksServer:
    """Serves a document at `url`, and counts how often. `answer` may be replaced: it gets the handler."""

    def __init__(self):
        self.document = b"{}"
        self.asked = 0
        self.answer = None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                provider.asked += 1
                if provider.answer is not None:
                    provider.answer(self)
                else:
                    self.send(provider.document)

            def send(self, document):
                self.send_response(200)
                self.send_header("Content-Length", str(len(document)))
                self.end_headers()
                self.wfile.write(document)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/jwks"

    @contextmanager
    def serving(self):
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


@contextmanager
def jwks_server(*signers):
    server = JwksServer()
    server.document = jwks(*signers)
    with server.serving():
        yield server
