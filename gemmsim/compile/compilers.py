"""Knows the compilers of CUDA C++, NVRTC and nvcc, and their versions here."""

from __future__ import annotations

from gemmsim.compile.toolchain import HEADER_PACKAGES, versions_of

COMPILERS = ("nvrtc", "nvcc")


def compiler_versions(compiler: str) -> dict[str, str]:
    """Return {tool: version} of what compiles and decodes CUDA C++ here, by its compiler, one of `COMPILERS`.

    Raises GemmsimError where nvcc is wanted and is not installed.
    """
    if compiler == "nvcc":
        from gemmsim.compile.nvcc import nvcc_version  # imports pyelftools

        versions = {"nvcc": nvcc_version()}
    else:
        found = versions_of(("nvidia-cuda-nvrtc", *HEADER_PACKAGES))
        versions = {"NVRTC": found.pop("nvidia-cuda-nvrtc", "of unknown version")} | found
    return versions | versions_of(("nvidia-cuda-nvdisasm",))
