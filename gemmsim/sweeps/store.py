"""Stores results of sweeps in an SQLite file, each in a transaction of its own, so that an interrupt loses none.

gemmsim reads only the column `data` back. The other columns are for people and their queries.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from gemmsim.analysis.studies.ranking import Point, Prediction, Status, SweepResult
from gemmsim.support.errors import GemmsimError

APPLICATION_ID = 0x67656D73  # marks the file as one of gemmsim: "gems" in ASCII
SCHEMA_VERSION = 1
SECONDS_TO_WAIT = 60.0  # how long to wait while another process writes to the file

_SCHEMA = """
CREATE TABLE result (
    key TEXT PRIMARY KEY,     -- of request, kernel source, GPU and model
    status TEXT NOT NULL,     -- predicted, refused (cannot be launched) or failed
    reason TEXT NOT NULL,
    kernel TEXT NOT NULL,
    tunables TEXT NOT NULL,   -- JSON
    m INTEGER, n INTEGER, k INTEGER,
    dtype TEXT NOT NULL,
    gpu TEXT NOT NULL,
    time_us REAL,
    tflops REAL,
    finished TEXT NOT NULL,   -- UTC
    data TEXT NOT NULL        -- JSON: the whole result
) WITHOUT ROWID;
"""


class Store:
    """Keeps results of sweeps in a file, or in memory where `path` is None.

    Raises GemmsimError for a file of another kind.
    """

    def __init__(self, path: Path | None) -> None:
        self._name = str(path) if path else ":memory:"
        new = path is None or not path.exists() or not path.stat().st_size
        try:
            self._file = sqlite3.connect(self._name, timeout=SECONDS_TO_WAIT, isolation_level=None)
            self._check(new)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")  # in WAL mode: a crash of gemmsim loses nothing
        except OSError as error:
            raise GemmsimError(f"cannot keep results in '{self._name}': {error.strerror}") from None
        except UnicodeDecodeError:  # where SQLite quotes bytes of the file in what it says
            raise GemmsimError(f"cannot keep results in '{self._name}': the file is damaged") from None
        except sqlite3.Error as error:
            raise GemmsimError(f"cannot keep results in '{self._name}': {error}") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def load(self, keys: Iterable[str]) -> dict[str, SweepResult]:
        """Return the stored results of `keys`, by key.

        Failed jobs and rows that cannot be read are left out, so that they are predicted again. Raises GemmsimError
        where the file itself is damaged.
        """
        found = {}
        for key in keys:
            try:
                row = self._file.execute(
                    "SELECT data FROM result WHERE key = ? AND status <> ?", (key, str(Status.FAILED))
                ).fetchone()
                if row is not None:
                    found[key] = _result(row[0])
            except sqlite3.Error as error:
                full = getattr(error, "sqlite_errorname", "").startswith(("SQLITE_IOERR", "SQLITE_FULL"))
                advice = "the disk may be full" if full else "name another file, or delete this one"
                raise GemmsimError(f"cannot read the results in '{self._name}': {error}; {advice}") from None
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
        return found

    def save(self, result: SweepResult) -> None:
        """Store a result. It replaces an earlier result of the same key."""
        point, prediction = result.point, result.prediction
        values = (
            result.key,
            str(result.status),
            result.reason,
            point.kernel,
            json.dumps(point.tunables),
            point.m,
            point.n,
            point.k,
            point.dtype,
            point.gpu,
            prediction.time_us if prediction else None,
            prediction.tflops if prediction else None,
            datetime.now(UTC).isoformat(timespec="seconds"),
            json.dumps(asdict(result)),
        )
        try:
            self._file.execute(f"INSERT OR REPLACE INTO result VALUES ({','.join('?' * len(values))})", values)
        except sqlite3.Error as error:
            raise GemmsimError(f"cannot keep results in '{self._name}': {error}") from None

    def _check(self, new: bool) -> None:
        if new:
            self._file.execute("BEGIN IMMEDIATE")  # of two sweeps that start at once, one makes the table
            if not self._file.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._file.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._file.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                self._file.execute(_SCHEMA)
            self._file.execute("COMMIT")
        (found,) = self._file.execute("PRAGMA application_id").fetchone()
        if found != APPLICATION_ID:
            raise GemmsimError(f"'{self._name}' is a database, but not one of gemmsim sweep: name another file")
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise GemmsimError(
                f"'{self._name}' has results of form {version}; this gemmsim writes {SCHEMA_VERSION}: name another file"
            )


def _result(text: str) -> SweepResult:
    data = json.loads(text)
    prediction = data["prediction"]
    return SweepResult(
        key=data["key"],
        point=Point(**data["point"]),
        status=Status(data["status"]),
        prediction=Prediction(**prediction) if prediction else None,
        reason=data["reason"],
        seconds=data["seconds"],
    )
