"""Describes GPUs as data: `spec.py` has the classes, `presets/` the files of the shipped GPUs, `load.py` the reader.

Adding a GPU
------------
1. `gemmsim gpu new <name> --like <preset> ... -o presets/<name>.toml` writes a file from a data sheet. What is not in
   it follows from the preset by the rules of `rules.py`. Or copy the preset of its nearest relative. The GPU has the
   name of the file. Nothing is registered anywhere else.
2. `extends = "sm_90"` takes what depends on the compute capability alone from `presets/arch/sm_90.toml`, which extends
   `presets/arch/base.toml`, which holds the values that all architectures share. A preset may restate any of these
   values. Where the architecture is new, write its file first. `like = "h100"` takes the architecture of that GPU where
   nothing is extended.
3. Every value is `key = { value = 40, unit = "MiB", source = "...", status = "vendor" }`. The key is a field of
   `spec.py` with or without the unit at its end. Status is
     vendor      NVIDIA says so (name the document, or the database of data sheets);
     measured    somebody measured it on this GPU (name repository and commit, or paper);
     calibrated  it was fitted so that predictions meet measurements: `records = ["..."]`, of the value or of the whole
                 file, names the measurements;
     copied      it was found on another GPU and is taken to be alike on this one (say on which);
     scaled      it follows from another GPU's by a rule (say from which and by which);
     estimated   anything else (say of what).
   A source may use the short names of `presets/sources.toml`.
   `found_on = ["sm_90"]` names the architectures on which a value of `base.toml` was found: on others its status is
   `copied`.
   `calibratable = true` marks what a calibration may fit: latencies, achievable rates, the clock under load.
4. `load_gpu("<name>")` refuses a file with a value missing or one that cannot be (`check.py` has the rules), and
   tests/hand/gpu/test_gpu_presets.py reads every preset.

A GPU that does not exist needs no preset: `--gpu my.toml` reads the same format from anywhere (`extends = "h200"` and
the one line that differs is enough), and `--set l2.size=25MiB` changes one value.

There is no V100 preset: CUDA 13's NVRTC, nvJitLink and nvdisasm have no sm_70, so no kernel could be compiled or
decoded for it, and a preset that no command can use helps nobody.
"""

from gemmsim.gpu.load import DEFAULT_GPU, aliases, load_gpu, preset_names
from gemmsim.gpu.spec import GpuSpec, Value

__all__ = ["DEFAULT_GPU", "GpuSpec", "Value", "aliases", "load_gpu", "preset_names"]
