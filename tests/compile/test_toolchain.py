"""What is installed, as folders say it."""

from __future__ import annotations

import importlib.metadata

from gemmsim.compile.toolchain import versions_of


def test_folders_and_metadata_agree() -> None:
    """For every distribution of this environment, however its name is spelt."""
    known = {one.name: one.version for one in importlib.metadata.distributions() if one.name}
    first = {name: importlib.metadata.version(name) for name in known}
    assert versions_of(list(first)) == first
    assert versions_of([name.upper().replace("-", "_") for name in first]) == {
        name.upper().replace("-", "_"): version for name, version in first.items()
    }


def test_what_is_not_installed_is_left_out() -> None:
    assert versions_of(["gemmsim-is-not-called-so", "numpy"]) == {"numpy": importlib.metadata.version("numpy")}
