"""Whether a file was changed or replaced, without reading it."""

from pathlib import Path

Stamp = tuple[int, int, int]


def stamp_of(path: str) -> Stamp | None:
    """Differs from that of before when the file has changed; None for a file that is not there."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
