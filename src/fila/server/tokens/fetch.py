"""Fetching a document over HTTPS, within bounds of time, size and redirects. Blocks: not for the event loop.

Plain HTTP is for addresses of this machine only, also behind a redirect: whoever could change the answer on its way
could sign tokens.
"""

import http.client
import time
import urllib.error
import urllib.request
from typing import IO, Any, Final

from fila.config import is_jwks_url

TIMEOUT_S: Final = 5.0
"""For all of it but the look-up of the name, which the system bounds."""
MAX_REDIRECTS: Final = 3
_CHUNK: Final = 64 << 10


class FetchFailed(OSError):
    """Why there is no document."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = MAX_REDIRECTS
    max_repeats = MAX_REDIRECTS

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not is_jwks_url(newurl):
            raise FetchFailed("it redirects to an address without https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(url: str, max_bytes: int) -> bytes:
    """Raises FetchFailed."""
    if not is_jwks_url(url):
        raise FetchFailed("the address is not https, nor http of this machine")
    deadline = time.monotonic() + TIMEOUT_S
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - checked above
    try:
        with urllib.request.build_opener(_Redirects).open(request, timeout=TIMEOUT_S) as response:
            return _read(response, max_bytes, deadline)
    except FetchFailed:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchFailed(f"the answer is {error.code}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise FetchFailed(str(getattr(error, "reason", None) or error) or type(error).__name__) from error


def _read(response: Any, max_bytes: int, deadline: float) -> bytes:
    """What a response holds: one piece at a time, so that one which comes drop by drop ends at the deadline too."""
    if response.status != http.client.OK:
        raise FetchFailed(f"the answer is {response.status}")
    found = b""
    while piece := response.read1(_CHUNK):
        found += piece
        if len(found) > max_bytes:
            raise FetchFailed(f"the answer is larger than {max_bytes} bytes")
        if time.monotonic() > deadline:
            raise FetchFailed(f"the answer takes longer than {TIMEOUT_S:g} s")
    return found
