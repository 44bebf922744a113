"""Measures a bundle on this machine's GPU and writes a file of records.

A run can be continued: a case that has a complete record in the file is not measured again.
"""

from __future__ import annotations

import copy
import datetime
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmsim.support.errors import GemmsimError

from ..ncu.profile import Profiler, profile, profiled
from ..records.files import read_records, write_records
from . import operands, timing
from .bundle import Bundle
from .dispatcher import dispatcher_check
from .options import Options
from .placement import placement

if TYPE_CHECKING:
    from .gpu import Gpu

CASES_PER_PROFILE = 32  # cases that one run of ncu profiles; where one of them hangs, none of them gets counters


def measure(bundle: Bundle, gpu: Gpu, output: Path, options: Options, child: Sequence[str]) -> list[dict[str, Any]]:
    """Time all cases of the bundle, then profile them; return the records.

    The records are written to the file `output` after each case. `child` is the command that launches cases once (see
    `launch_once`), without its last argument, the file of their ids. An error of one case is written to its record, and
    the other cases go on. Raises GemmsimError where the bundle is for another GPU.
    """
    wanted = bundle.arch.removeprefix("sm_")
    if f"{gpu.capability[0]}{gpu.capability[1]}" != wanted:
        raise GemmsimError(
            f"the bundle is for sm_{wanted}, this GPU ({gpu.name}) is sm_{''.join(map(str, gpu.capability))}"
        )
    records = {record["id"]: record for record in (read_records(output) if output.is_file() else [])}
    session = _Session(bundle, gpu, options)
    for number, case in enumerate(bundle.cases, 1):
        found = records.get(case["id"])
        if found and _finished(found, case):
            _say(f"[{number}/{len(bundle.cases)}] {case['id']}: measured already")
            continue
        record = session.one(case)
        records[case["id"]] = record
        write_records(output, records.values())
        _say(f"[{number}/{len(bundle.cases)}] {case['id']}: {_in_short(record)}")
    if not options.no_counters:
        _profile(bundle, records, output, options, child)
    return list(records.values())


class _Session:
    """Measures the cases of one run, which share loaded cubins, the placement probe and cuBLAS."""

    def __init__(self, bundle: Bundle, gpu: Gpu, options: Options) -> None:
        self.bundle, self.gpu, self.options = bundle, gpu, options
        self._functions: dict[str, Any] = {}
        self._library: Any = None
        self._placements: dict[str, dict[str, Any] | None] = {}

    def one(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Measure a case except its counters; return its record, whose `errors` say what could not be measured."""
        record = copy.deepcopy(dict(case))
        record |= {"date": datetime.date.today().isoformat(), "machine": self.gpu.machine, "errors": []}
        step = "set up"
        try:
            host = operands.host_operands(case["problem"], case.get("launch", {}))
            arrays = {name: self.gpu.upload(array) for name, array in host.arrays.items()}
            launch = self._launcher(record, arrays)
            step = "run"
            launch()
            self.gpu.synchronize()
            record["correctness"] = operands.check(case["problem"], host, arrays["C"].copy_to_host())
            step = "time"
            record["time"] = self._times(record, host, arrays, launch)
            if "launch" in case:
                step = "place"
                self._place(record)
                if self.options.jit and case["subject"]["rung"] and case["subject"]["abi"] == "numba":
                    step = "dispatch"
                    cubin = self.bundle.cubin(case["subject"]["cubin_sha256"])
                    record["dispatcher"] = dispatcher_check(case, cubin, host, arrays, self.gpu)
        except Exception as error:  # whatever it is, the other cases go on
            record["errors"].append(f"{step}: {type(error).__name__}: {' '.join(str(error).split())}"[:500])
        if not record["errors"]:
            del record["errors"]
        return record

    def _launcher(self, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> Callable[[], None]:
        subject = record["subject"]
        if subject["abi"] == "library":
            if self._library is None:
                from .library import Library

                self._library = Library(self.gpu)
            record["subject"]["library"] = self._library.version
            gemm: Callable[[], None] = self._library.gemm(subject["name"], record["problem"], arrays)
            return gemm
        return launcher(self.bundle, self.gpu, record, arrays, self._function(record))

    def _function(self, record: Mapping[str, Any]) -> Any:
        sha256, symbol = record["subject"]["cubin_sha256"], record["subject"]["symbol"]
        key = f"{sha256} {symbol}"  # a cubin may hold several kernels
        if key not in self._functions:
            self._functions[key] = self.gpu.load(self.bundle.cubin(sha256), symbol)
        function = self._functions[key]
        shared = record["launch"].get("dynamic_shared_bytes", 0)
        if shared:
            self.gpu.allow_shared(function, shared)
        return function

    def _times(
        self, record: Mapping[str, Any], host: operands.Host, arrays: Mapping[str, Any], launch: Callable[[], None]
    ) -> dict[str, Any]:
        times = {"back_to_back": timing.measure(self.gpu, [launch], self.options.samples)}
        free = int(self.gpu.context.get_memory_info().free)
        copies = timing.copies_beyond_cache(host.nbytes, self.gpu.l2_bytes, free)
        if copies > 1:
            sets = [arrays] + [
                {name: self.gpu.duplicate(array) for name, array in arrays.items()} for _ in range(copies - 1)
            ]
            launches = [launch, *(self._launcher(record, one) for one in sets[1:])]
            times["rotated"] = timing.measure(self.gpu, launches, self.options.samples)
        return times

    def _place(self, record: dict[str, Any]) -> None:
        launch = record["launch"]
        if record["subject"].get("tunables", {}).get("cluster", 1) > 1 or "cluster" in launch:
            return  # the probe's blocks are in no clusters, which are placed as a whole
        threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
        shared = launch.get("dynamic_shared_bytes", 0)
        resident = self.gpu.resident_blocks(self._function(record), threads, shared)
        key = f"{launch['grid']} {launch['block']} {resident}"
        if key not in self._placements:
            if "probe" not in self._functions:
                self._functions["probe"] = self.gpu.load(
                    (self.bundle.folder / self.bundle.probe).read_bytes(), "placement"
                )
            self._placements[key] = placement(self.gpu, self._functions["probe"], launch, resident)
        found = self._placements[key]
        if found:
            record["placement"] = found


def launcher(
    bundle: Bundle, gpu: Gpu, record: Mapping[str, Any], arrays: Mapping[str, Any], function: Any
) -> Callable[[], None]:
    """Return a function that enqueues the record's kernel, which is loaded as `function`, on the device arrays."""
    launch = record["launch"]
    if "parameters" in launch:
        values = []
        for one in launch["parameters"]:
            if isinstance(one, str):
                values += operands.parameters("c", [one], record["problem"], arrays, {})
            else:
                values.append(operands.packed_parameter(one, launch["arguments"], arrays, gpu.encoded_map))
    else:
        maps = {
            name: gpu.tensor_map(arrays[one["array"]], _dtype_of(record["problem"], one["array"]), one["box"])
            for name, one in launch.get("maps", {}).items()
        }
        values = operands.parameters(record["subject"]["abi"], launch["arguments"], record["problem"], arrays, maps)
    shared, cluster = launch.get("dynamic_shared_bytes", 0), launch.get("cluster")
    call = gpu.call(function, launch["grid"], launch["block"], shared, values, cluster)
    return lambda: gpu.launch(call)


def _dtype_of(problem: Mapping[str, Any], array: str) -> str:
    return problem["result_dtype" if array == "C" else "dtype"]


def launch_once(bundle: Bundle, gpu: Gpu, wanted: Path) -> None:
    """Launch each case that the file `wanted` names once, and append its id to the file `wanted`.launched.

    Nsight Compute profiles the process that calls this.
    """
    cases = {case["id"]: case for case in bundle.cases}
    log = Path(f"{wanted}.launched")
    for name in wanted.read_text().split():
        case = cases[name]
        try:
            host = operands.host_operands(case["problem"], case.get("launch", {}))
            arrays = {key: gpu.upload(array) for key, array in host.arrays.items()}
            subject = case["subject"]
            shared = case["launch"].get("dynamic_shared_bytes", 0)
            function = gpu.load(bundle.cubin(subject["cubin_sha256"]), subject["symbol"], shared)
            go = launcher(bundle, gpu, case, arrays, function)
            go()
        except Exception as error:
            _say(f"{name}: {error}")
            continue
        with log.open("a") as file:
            file.write(f"{name}\n")
        gpu.unload()


def _profile(
    bundle: Bundle, records: dict[str, dict[str, Any]], output: Path, options: Options, child: Sequence[str]
) -> None:
    waiting = [
        case["id"]
        for case in bundle.cases
        if case["id"] in bundle.counters_wanted and "counters" not in records[case["id"]]
    ]
    if not waiting:
        return
    profiler = Profiler.find()
    if profiler is None:
        _unavailable(records, waiting, "Nsight Compute (ncu) is not installed here, so there are only times")
    else:
        version = profiler.version()
        for start in range(0, len(waiting), CASES_PER_PROFILE):
            ids = waiting[start : start + CASES_PER_PROFILE]
            _say(f"profiling {start + 1} to {start + len(ids)} of {len(waiting)} cases")
            try:
                counters = profile(profiler, child, ids, options.profile_timeout_s)
            except GemmsimError as error:
                _unavailable(records, ids, str(error))
            else:
                for name in ids:
                    if counters.get(name):
                        records[name] |= {"counters": counters[name], "profile": profiled(profiler, version)}
                    else:
                        _unavailable(records, [name], "it did not run under ncu")
            write_records(output, records.values())
    write_records(output, records.values())


def _unavailable(records: dict[str, dict[str, Any]], names: Sequence[str], why: str) -> None:
    _say(f"no counters: {why}")
    for name in names:
        records[name]["profile"] = {"status": "unavailable", "why": why}


def _finished(record: Mapping[str, Any], case: Mapping[str, Any]) -> bool:
    """Whether the case's record needs no new run: its machine code is that of the case, and nothing in it failed."""
    same = all(record["subject"].get(key) == value for key, value in case["subject"].items())
    return same and "time" in record and not record.get("errors")


def _in_short(record: Mapping[str, Any]) -> str:
    if record.get("errors"):
        return f"FAILED {record['errors'][-1]}"
    problem, series = record["problem"], record["time"]["back_to_back"]
    rate = 2 * problem["m"] * problem["n"] * problem["k"] / series["median_us"] / 1e6
    text = f"{record['correctness']['status']}, {series['median_us']:.2f} us back to back ({rate:.2f} T/s)"
    if "rotated" in record["time"]:
        text += f", {record['time']['rotated']['median_us']:.2f} us rotated"
    if "dispatcher" in record:
        text += ", same code by numba" if record["dispatcher"]["same_code"] else ", OTHER code by numba"
    return text


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
