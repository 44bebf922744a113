"""Changes the code in small ways, and counts by folder how many changes the tests notice: `make mutants MUTANTS=20`.

cosmic-ray makes the changes, in a copy of the tree, and runs the tests of the folder after each. Of each folder as many
are drawn as the argument says, by the seed that SEED names, which is the same each time without it. What survives is
printed as a diff.
"""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Folder of gemmsim/ -> the tests that are run after each change, what is quickest first
FOLDERS = {
    "memory": "tests/hand/memory",
    "isa": "tests/hand/isa tests/hand/trace",
    "trace/blocks": "tests/hand/trace tests/flow/test_block_classes.py tests/flow/test_apart.py "
    "tests/flow/test_launches.py tests/flow/test_cluster_launches.py tests/compile/test_sampling.py",
    "trace/steady": "tests/hand/trace/test_steady_parts.py tests/hand/trace/test_steady_waits.py tests/hand/trace "
    "tests/flow/test_steady_loops.py tests/flow/test_steady_tiles.py",
    "trace/engine/bulk_copies.py": "tests/hand/trace/test_bulk_requests.py tests/compile/test_bulk_copies.py "
    "tests/flow/test_multicast_addresses.py tests/flow/test_clusters.py",
    "sm/units": "tests/hand/sm",
    "analysis": "tests/hand/analysis tests/hand/checks tests/hand/report",
    "sweeps": "tests/hand/sweeps tests/flow/test_sweep_run.py",
}
# These operators make what is the same, or no code.
_LEFT_OUT = ("core/RemoveDecorator", "core/AddNot")
_LONGEST_S = 300.0  # after which a run counts as noticed: the tests of no folder take half of it
SEED = int(os.environ.get("SEED", "1"))
_PACKAGES = {"gemmsim": "gemmsim", "gemmsim_kernels": "kernels", "gemmsim_validate": "validate"}


def tests_of(place: str) -> str:
    """Return the tests of a folder or file of the package: those of the nearest folder above it that is listed."""
    return next(FOLDERS[str(at)] for at in (Path(place), *Path(place).parents) if str(at) in FOLDERS)


def config(folder: str, tests: str) -> str:
    """Return the configuration of cosmic-ray for a folder of the package."""
    command = f"{sys.executable} -m pytest -q -x -p no:cacheprovider {tests}"
    return (
        f'[cosmic-ray]\nmodule-path = "gemmsim/{folder}"\ntimeout = {_LONGEST_S}\nexcluded-modules = []\n'
        f'test-command = "{command}"\n[cosmic-ray.distributor]\nname = "local"\n'
    )


def annotations(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where the annotations of a module begin and end, (line, column) each. A change to one changes nothing."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for one in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(one, ast.expr) and one.end_lineno is not None and one.end_col_offset is not None:
                found.append(((one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset)))
    return found


def drawn(session: Path, count: int) -> None:
    """Leave only `count` of the changes of a session."""
    ask = "SELECT job_id, module_path, start_pos_row, start_pos_col FROM mutation_specs WHERE {} ORDER BY 2, 3, 4, {}"
    left_out = " AND ".join(f"operator_name NOT LIKE '{name}%'" for name in _LEFT_OUT)
    spans: dict[str, list[tuple[tuple[int, int], tuple[int, int]]]] = {}
    with sqlite3.connect(session) as file:
        jobs = []
        for job, module, row, column in file.execute(ask.format(left_out, "operator_name, occurrence")).fetchall():
            if module not in spans:
                spans[module] = annotations(session.parent / module)
            if not any(begin <= (row, column) < end for begin, end in spans[module]):
                jobs.append(job)
        kept = random.Random(SEED).sample(jobs, min(count, len(jobs)))
        others = f"job_id NOT IN ({','.join('?' * len(kept))})"
        for table in ("mutation_specs", "work_items"):
            file.execute(f"DELETE FROM {table} WHERE {others}", kept)


def run(folder: str, tests: str, count: int, tree: Path, environment: dict[str, str]) -> tuple[int, int]:
    """Return how many changes of a folder were made, and how many were noticed; print the others."""
    name = folder.replace("/", "-")
    (tree / f"{name}.toml").write_text(config(folder, tests))
    session = tree / f"{name}.sqlite"

    def cosmic_ray(*words: str) -> str:
        command = [sys.executable, "-m", "cosmic_ray.cli", *words]
        return subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True).stdout

    cosmic_ray("init", f"{name}.toml", session.name)
    drawn(session, count)
    cosmic_ray("exec", f"{name}.toml", session.name)
    made = noticed = 0
    for line in cosmic_ray("dump", session.name).splitlines():
        _, result = json.loads(line)
        if result is None or result["worker_outcome"] != "normal":
            continue
        made += 1
        noticed += result["test_outcome"] != "survived"
        if result["test_outcome"] == "survived":
            print(f"{result['diff']}\n", flush=True)  # noqa: T201
    return made, noticed


def main(count: int, folders: list[str]) -> int:
    """Run `count` changes of each folder, and print a table."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", ".pp", "build", "__pycache__", "*.sqlite")
        )
        kept = tree / "gemmsim" / "__pycache__"  # machine code of our loops, which need not be compiled anew
        kept.mkdir()
        for code in (ROOT / "gemmsim" / "__pycache__").glob("gemmsim-*"):
            shutil.copy2(code, kept)
        packages = Path(place) / "packages"
        packages.mkdir()
        for name, folder in _PACKAGES.items():
            (packages / name).symlink_to(tree / folder)
        path = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH", ""))))
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "GEMMSIM_PROGRESS": "0"}
        for folder in (name.rstrip("/") for name in folders or FOLDERS):
            made, noticed = run(folder, tests_of(folder), count, tree, environment)
            rows.append(f"| `{folder}` | {made} | {noticed} | {100 * noticed / max(made, 1):.0f} % |")
            print(rows[-1], flush=True)  # noqa: T201
    print("| folder | changes | noticed | |\n|---|---|---|---|", *rows, sep="\n")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
