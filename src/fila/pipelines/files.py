"""Files of wherever Spark runs, through Hadoop's file systems: a laptop's disk, HDFS, an object store."""

import gzip
import io
import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from fila.pipelines.errors import PipelineError


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file, and what tells whether it has changed."""

    path: str
    size: int
    modified_ms: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def local(self) -> str | None:
        """Its path on this machine, if it has one."""
        return local(self.path)


def local(path: str) -> str | None:
    """The path on this machine of a path that Hadoop gave, if it has one."""
    parts = urlsplit(path)
    return unquote(parts.path) if parts.scheme == "file" else None


class _HadoopFile(io.RawIOBase):
    """A file of a Hadoop file system that can be read and sought."""

    def __init__(self, stream: Any, size: int) -> None:
        super().__init__()
        self._stream, self._size = stream, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: int(self._stream.getPos()), io.SEEK_END: self._size}[whence]
        self._stream.seek(base + offset)
        return base + offset

    def readinto(self, buffer: Any) -> int:
        data = bytes(self._stream.readNBytes(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class Files:
    """What pipelines do with files. Paths are those of Hadoop; without a scheme they are of the default file system."""

    def __init__(self, spark: SparkSession) -> None:
        if not hasattr(spark, "_jvm"):
            raise PipelineError(
                "this is a session of Spark Connect, which does not reach the files of a pipeline: give one of a master"
            )
        # PySpark has no public way to Hadoop's file systems; its own pandas part goes this way too.
        self._jvm: Any = spark._jvm  # noqa: SLF001
        self._conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001

    def find(self, pattern: str) -> list[FileInfo]:
        """Files that the pattern names, and those in folders that it names, hidden ones left out, by path."""
        path, system = self._at(pattern)
        found = [self._info(status) for top in system.globStatus(path) or () for status in self._below(system, top)]
        return sorted(found, key=lambda file: file.path)

    def matches(self, pattern: str) -> bool:
        """Whether the pattern names any file or folder."""
        path, system = self._at(pattern)
        return bool(system.globStatus(path))

    def qualified(self, where: str) -> str:
        """The path with the scheme of its file system, and from its root."""
        path, system = self._at(where)
        return str(path.makeQualified(system.getUri(), system.getWorkingDirectory()).toString())

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in this one."""
        path, system = self._at(folder)
        if not system.exists(path):
            return []
        return sorted(each.getPath().getName() for each in system.listStatus(path) if each.isDirectory())

    def exists(self, where: str) -> bool:
        path, system = self._at(where)
        return bool(system.exists(path))

    def read(self, where: str) -> str:
        path, system = self._at(where)
        stream = system.open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, where: str, text: str) -> None:
        """Writes the file so that it is either the old one or the whole new one.

        A file system that does not rename over a file has neither for a moment.
        """
        path, system = self._at(where)
        draft = self._jvm.org.apache.hadoop.fs.Path(path.getParent(), f".{path.getName()}.part")
        stream = system.create(draft, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if not system.rename(draft, path):
            system.delete(path, False)
            system.rename(draft, path)

    def remove(self, folder: str) -> None:
        """Removes a folder with all it holds, as far as that is possible."""
        path, system = self._at(folder)
        with suppress(Exception):
            system.delete(path, True)

    def open(self, file: FileInfo) -> BinaryIO:
        """A file for reading, in this process: no Spark job is run for it."""
        if file.local is not None:
            return Path(file.local).open("rb")
        path, system = self._at(file.path)
        return io.BufferedReader(_HadoopFile(system.open(path), file.size))

    def lines(self, file: FileInfo, count: int) -> list[str]:
        """The first lines of a text file."""
        with self.open(file) as stream:
            binary: Any = gzip.GzipFile(fileobj=stream) if file.name.endswith(".gz") else stream
            text = io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace")
            return [line.rstrip("\r\n") for line in itertools.islice(text, count)]

    def _at(self, where: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(where)
        return path, path.getFileSystem(self._conf)

    def _below(self, system: Any, status: Any) -> Iterator[Any]:
        if not status.isDirectory():
            yield status
            return
        for each in system.listStatus(status.getPath()):
            if not each.getPath().getName().startswith(("_", ".")):
                yield from self._below(system, each)

    @staticmethod
    def _info(status: Any) -> FileInfo:
        return FileInfo(status.getPath().toString(), int(status.getLen()), int(status.getModificationTime()))
