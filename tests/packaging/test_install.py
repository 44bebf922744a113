"""Three ways to have gemmsim: installed, installed editable, and run from the checkout. Each finds its ladder, and none
touches another package called `kernels` or `validate`, as PyPI has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from gemmsim.launch.ladder import kernel_infos

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = {"kernels/__init__.py": "OWNER = 'somebody else'\n", "validate/__init__.py": "OWNER = 'somebody else'\n"}
PROBE = """
import json, sys
from pathlib import Path
import gemmsim
from gemmsim.launch.ladder import kernel_infos, kernel_path
infos = kernel_infos()
import gemmsim_kernels
print(json.dumps({
    "gemmsim": str(Path(gemmsim.__file__).parent),
    "ladder": str(kernel_path(infos["tiled"]).parent),
    "names": list(infos),
    "foreign": "kernels" in sys.modules,
}))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment whose packages are its own and then, for the dependencies, those of the running tests."""

    python: Path
    site: Path

    def pip(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet", "--no-deps",
                   "--no-build-isolation", "--no-index", "--ignore-installed", *arguments]  # fmt: skip
        run = subprocess.run(command, capture_output=True, text=True, env=clean_environment())
        assert run.returncode == 0, run.stderr[-3000:]

    def run(self, *arguments: str, cwd: Path) -> str:
        command = [str(self.python), *arguments]
        run = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=clean_environment())
        assert run.returncode == 0, run.stderr[-3000:]
        return run.stdout


def clean_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}


def dependencies() -> Path:
    import click

    return Path(click.__file__).parents[1]


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """With foreign packages `kernels` and `validate` installed already."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    (site / "zz_dependencies.pth").write_text(f"{dependencies()}\n")
    for name, text in FOREIGN.items():
        (site / name).parent.mkdir()
        (site / name).write_text(text)
    return Environment(python, site)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the checkout, as building leaves files beside the sources."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    copy_sources(source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(out)]
    run = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    return next(out.glob("gemmsim-*.whl"))


def copy_sources(target: Path) -> None:
    import shutil

    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target / name)
    for name in ("gemmsim", "kernels", "validate"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))


def assert_foreign_untouched(environment: Environment) -> None:
    for name, text in FOREIGN.items():
        assert (environment.site / name).read_text() == text
        assert [path.name for path in (environment.site / name).parent.glob("*.py")] == ["__init__.py"]


def test_wheel_holds_every_package_under_our_names(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"gemmsim", "gemmsim_kernels", "gemmsim_validate"}
    for folder, installed in (("gemmsim", "gemmsim"), ("kernels", "gemmsim_kernels")):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".toml", ".json", ".gz", ".npz", ".xz") and "__pycache__" not in path.parts:
                assert f"{installed}/{path.relative_to(ROOT / folder).as_posix()}" in names


def test_installed(environment: Environment, wheel: Path, tmp_path: Path) -> None:
    environment.pip(str(wheel))
    found = json.loads(environment.run("-c", PROBE, cwd=tmp_path))
    assert found == {
        "gemmsim": str(environment.site / "gemmsim"),
        "ladder": str(environment.site / "gemmsim_kernels"),
        "names": list(kernel_infos()),
        "foreign": False,
    }
    command = str(environment.python.with_name("gemmsim"))
    listed = subprocess.run([command, "list", "kernels"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert listed.stdout.startswith("naive\n")
    assert_foreign_untouched(environment)


def test_editable(environment: Environment, tmp_path: Path) -> None:
    """The folders themselves are used, so that an edit shows; `kernels` on the path stays the foreign one."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    copy_sources(checkout)
    environment.pip("--editable", str(checkout))
    found = json.loads(environment.run("-c", PROBE, cwd=tmp_path))
    assert found["gemmsim"] == str(checkout / "gemmsim")
    assert found["ladder"] == str(checkout / "kernels")
    owners = environment.run("-c", "import kernels, validate; print(kernels.OWNER, validate.OWNER)", cwd=tmp_path)
    assert owners.split("somebody else") == ["", " ", "\n"]
    located = environment.run("-c", "import gemmsim_kernels; print(gemmsim_kernels.__file__)", cwd=tmp_path)
    assert located.strip() == str(checkout / "kernels" / "__init__.py")
    assert_foreign_untouched(environment)


def test_from_the_checkout_without_installation(environment: Environment) -> None:
    found = json.loads(environment.run("-c", PROBE, cwd=ROOT))
    assert found["gemmsim"] == str(ROOT / "gemmsim") and found["ladder"] == str(ROOT / "kernels")
    assert environment.run("-m", "gemmsim", "list", "kernels", cwd=ROOT).startswith("naive\n")


def test_a_checkout_prefers_its_own_ladder_to_an_installed_one(environment: Environment, wheel: Path) -> None:
    environment.pip(str(wheel))
    found = json.loads(environment.run("-c", PROBE, cwd=ROOT))
    assert found["ladder"] == str(ROOT / "kernels")


def test_package_list_is_complete() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {path.parent for path in (ROOT / "gemmsim").rglob("__init__.py")}
    wanted = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert {name for name in listed if not name.startswith("gemmsim_")} == wanted
