"""MODEL_VERSION is raised where predictions change."""

from __future__ import annotations

import json
from pathlib import Path

from gemmsim_validate import predictions
from gemmsim_validate.predictions import digests, problem

from gemmsim.support.version import MODEL_VERSION


def test_predictions_are_those_of_the_model_version() -> None:
    assert problem(digests(), MODEL_VERSION) == ""


def test_what_must_be_done_where_they_are_not(tmp_path: Path) -> None:
    held = tmp_path / "predictions.json"
    held.write_text(json.dumps({"model_version": 2, "sha256": {"tiled": "a", "naive": "b"}}))
    assert problem({"tiled": "a", "naive": "b"}, 2, held) == ""
    line = problem({"tiled": "a", "naive": "c"}, 2, held)
    assert line.startswith("predictions changed (naive): raise MODEL_VERSION") and "\n" not in line
    assert "predictions to renew" in problem({"tiled": "a", "naive": "c"}, 3, held)
    assert "predictions to renew" in problem({"tiled": "a", "naive": "b"}, 3, held)
    assert "predictions to renew" in problem({"tiled": "a", "naive": "b", "new": "c"}, 2, held)


def test_the_command_refuses_until_the_version_is_raised(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(predictions, "FILE", tmp_path / "predictions.json")
    monkeypatch.setattr(predictions, "digests", lambda: {"tiled": "a"})
    assert predictions.main() == 0
    assert json.loads(predictions.FILE.read_text()) == {"model_version": MODEL_VERSION, "sha256": {"tiled": "a"}}
    monkeypatch.setattr(predictions, "digests", lambda: {"tiled": "b"})
    assert predictions.main() == 2 and "raise MODEL_VERSION" in capsys.readouterr().err
    monkeypatch.setattr(predictions, "MODEL_VERSION", MODEL_VERSION + 1)
    assert predictions.main() == 0
    assert json.loads(predictions.FILE.read_text()) == {"model_version": MODEL_VERSION + 1, "sha256": {"tiled": "b"}}
