"""Files of public data sets: from an offline copy, the cache or a download; always checked by SHA-256."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kernels.cache import cache_dir
from kernels.errors import DataError

Progress = Callable[[str, float | None], None]

ANSWER_S = 4.5  # the longest wait for the first answer of any mirror, name lookup included
CONNECT_S = 2.0
STALL_S = 30.0  # the longest silence in the middle of a download


def way_out(dataset: str) -> str:
    """What helps a user without a network, as the end of a sentence."""
    return (
        f"put its files into DIR/{dataset} and set KERNELSCOPE_DATA=DIR, "
        "or use the data set digits, which needs no network"
    )


def sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fetch(
    dataset: str,
    file: str,
    known: Mapping[str, str],
    mirrors: Sequence[str],
    progress: Progress | None = None,
) -> Path:
    """Path of `file` of `dataset`, its SHA-256 being known[file].

    Raises DataError where it is missing from the offline copy, damaged, or cannot be downloaded; where no
    mirror answers, within 5 s.
    """
    offline = os.environ.get("KERNELSCOPE_DATA")
    if offline:
        path = Path(offline).expanduser() / dataset / file
        if not path.is_file():
            raise DataError(f"KERNELSCOPE_DATA has no {path}: put the file there or unset the variable")
        if sha256(path) != known[file]:
            raise DataError(
                f"{path} is damaged or another version (its SHA-256 is not the known one): replace it"
            )
        return path
    path = cache_dir() / "data" / dataset / file
    try:
        if path.is_file() and sha256(path) == known[file]:
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error) from error
    _Download(dataset, file, known[file], mirrors, path, progress).run()
    return path


def _unusable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"the cache file {path} cannot be used ({error.strerror}): "
        "make room or set KERNELSCOPE_CACHE to another folder"
    )


class _Cancelled(Exception):
    """Raised in an abandoned download thread, inside its progress callback, to end it."""


class _Download:
    """One download in a thread of its own, because a name lookup has no time-out and ignores Ctrl-C.

    pooch downloads into a temporary folder and checks the file, which is then renamed into place. `total`,
    `update`, `reset` and `close` are what pooch calls of a progress bar.
    """

    def __init__(
        self,
        dataset: str,
        file: str,
        known: str,
        mirrors: Sequence[str],
        path: Path,
        progress: Progress | None,
    ) -> None:
        self.dataset, self.file, self.known, self.mirrors, self.path = dataset, file, known, mirrors, path
        self.progress = progress
        self.total = 0
        self.received = 0
        self.answered = threading.Event()
        self.ended = threading.Event()
        self.cancelled = False
        self.error: BaseException | None = None

    def update(self, nbytes: int) -> None:
        if self.cancelled:
            raise _Cancelled
        self.received += nbytes
        self.answered.set()

    def reset(self) -> None:
        self.received = 0

    def close(self) -> None:
        pass

    def run(self) -> None:
        try:
            holder = TemporaryDirectory(dir=self.path.parent, prefix=".part-", ignore_cleanup_errors=True)
        except OSError as error:
            raise _unusable(self.path, error) from error
        with holder as name:  # removed from here: a thread that hangs in a name lookup leaves nothing either
            folder = Path(name)
            words = f"download {self.file}"
            threading.Thread(target=self._work, args=(folder,), daemon=True, name=words).start()
            try:
                self._wait()
            except BaseException:
                self.cancelled = True
                raise
            try:
                (folder / self.file).replace(self.path)
            except OSError as error:
                raise _unusable(self.path, error) from error

    def _wait(self) -> None:
        reason = "no mirror answered"
        if self.answered.wait(ANSWER_S):
            seen = -1
            while not self.ended.wait(0.1):
                if self.received != seen and self.progress:
                    seen = self.received
                    fraction = min(seen / self.total, 1.0) if self.total else None
                    self.progress(f"downloading {self.dataset}/{self.file}", fraction)
            if self.error is None:
                return
            reason = _words(self.error)
        remedy = way_out(self.dataset)
        raise DataError(
            f"{self.dataset}/{self.file} could not be downloaded ({reason}): {remedy}"
        ) from self.error

    def _work(self, folder: Path) -> None:
        try:
            import pooch

            pooch.get_logger().setLevel(logging.ERROR)
            for mirror in self.mirrors:
                if self.cancelled:
                    break
                downloader = pooch.HTTPDownloader(
                    progressbar=self, chunk_size=1 << 16, timeout=(CONNECT_S, STALL_S)
                )
                try:
                    pooch.retrieve(
                        mirror + self.file,
                        self.known,
                        fname=self.file,
                        path=folder,
                        downloader=downloader,
                    )
                except Exception as error:
                    self.error = error
                    response = getattr(error, "response", None)
                    if response is not None:
                        response.close()  # pooch leaves the connection of a refused request open
                else:
                    self.error = None
                    break
        except BaseException as error:  # whatever it is, the waiting side must hear of it
            self.error = error
        finally:
            self.ended.set()
            self.answered.set()


def _words(error: BaseException) -> str:
    """The reason of a failed download in a few words, without the nested text of the HTTP library."""
    if isinstance(error, ValueError):
        return "the file received is not the known one, its SHA-256 differs"
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code}"
    name = type(error).__name__
    if "Connection" in name or "Timeout" in name:
        return "no mirror answered"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{name}: {error}".splitlines()[0]
