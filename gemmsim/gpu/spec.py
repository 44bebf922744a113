"""Defines `GpuSpec`, a GPU as numbers. A field's name ends with its unit; GPU files say where a value comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmsim.gpu.asynchronous import Mbarrier, MemoryFence, Tma
from gemmsim.gpu.caches import L1, L2, Dram
from gemmsim.gpu.power import Power

# The status of a value in a GPU file: see the docstring of this package. A value that is given with --set has "set".
STATUSES = ("vendor", "measured", "calibrated", "copied", "scaled", "estimated")


@dataclass(frozen=True, slots=True)
class Sm:
    """The number of streaming multiprocessors, and the limits on the blocks that are resident on one."""

    count: int
    sub_partitions: int
    max_warps: int
    max_blocks: int
    max_threads_per_block: int
    max_barriers_per_block: int  # named barriers
    registers: int
    max_registers_per_thread: int
    register_allocation_unit: int  # the number of registers that a warp takes is a multiple of this
    warp_allocation_granularity: int  # the number of warps that a block takes is a multiple of this
    gpc_sms: tuple[int, ...]  # number of SMs of each GPC (group of SMs); 0 where it is not known
    early_sms: int  # how many SMs of the first GPC get blocks before all others (memory/grid/placement.py)
    early_first_gpcs: int  # how many GPCs' SMs get a block each before the early SMs get their second one
    early_next_gpcs: int  # how many GPCs' SMs get a block each before the early SMs get each further one


@dataclass(frozen=True, slots=True)
class Clock:
    """Clocks of the SMs. Times are predicted for the clock under load."""

    sm_base_hz: float
    sm_boost_hz: float
    sm_load_hz: float  # while a GEMM runs
    sm_tensor_load_hz: float  # while tensor cores work, other than on FP64
    tensor_entry_us: float  # what their beginning costs
    tensor_exit_us: float  # how long their clock lasts after their last work


@dataclass(frozen=True, slots=True)
class Shared:
    """Shared memory. It lies in the same data array as L1, and the data stage of the SM serves accesses to both."""

    max_bytes_per_sm: int
    max_bytes_per_block: int  # for a kernel that opts in
    default_max_bytes_per_block: int  # for a kernel that does not
    reserved_bytes_per_block: int
    allocation_unit_bytes: int
    carveouts_bytes: tuple[int, ...]  # sizes that can be configured, ascending
    banks: int
    bank_bytes: int
    load_latency_cycles: tuple[float, float, float]  # from load to use, one wavefront; 32, 64, 128 bits a thread
    wavefronts_per_cycle: float  # rate of the data stage
    request_interval_cycles: float  # the data stage takes at most one request, shared or global, in so many cycles
    wavefront_latency_cycles: float  # from one wavefront of a load to the next one of its warp
    group_latency_cycles: float  # for which a load takes longer for each further group of lanes (half- or quarter-warp)
    shuffle_longer_cycles: float  # for which a shuffle takes longer than a 32-bit load
    remote_load_latency_cycles: float  # from load to use of another block's memory of the cluster, one wavefront
    carveout_headroom: float  # shared memory is sized for this many times the resident blocks (carveout.py)
    carveout_few_blocks: int  # no headroom where at most so many blocks fit by their threads


@dataclass(frozen=True, slots=True)
class Pipe:
    """One execution pipe of a sub-partition."""

    issue_interval_cycles: float  # least time from one instruction to the next, of whichever warps
    latency_cycles: float  # from issue to the result
    warps_take_turns: bool  # whether the warp that used the pipe longest ago issues to it first
    passes_barrier: bool  # whether its instructions issue while their warp waits at a barrier (BAR.SYNC)


@dataclass(frozen=True, slots=True)
class Mma:
    """Times of tensor-core instructions other than HMMA.16816, whose own times are in the `Pipe` "tensor".
    Instructions with half the work are HMMA.1688 in fp16, HMMA.1684 in TF32 and IMMA.16816.
    """

    half_accumulator_share: float  # issue interval with fp16 accumulators, over that with fp32 ones

    half_work_share: float  # issue interval of an instruction with half the work, over that of the whole
    half_work_latency_cycles: float
    imma_interval_cycles: float  # IMMA.16832
    imma_latency_cycles: float
    dmma_interval_cycles: float  # DMMA.884
    dmma_latency_cycles: float
    dmma_wide_interval_cycles: tuple[float, float, float]  # DMMA.16x8x4, .16x8x8 and .16x8x16
    dmma_wide_latency_cycles: tuple[float, float, float]  # of the same


@dataclass(frozen=True, slots=True)
class Warpgroup:
    """Times of a warpgroup's asynchronous multiplications (wgmma: HGMMA, QGMMA, IGMMA), which Hopper alone has.

    Each sub-partition multiplies 16 of the 64 rows of A. Whatever the type, a row of A and a column of B have 32 bytes.
    """

    queue_entries: int  # multiplications that a sub-partition holds whose work has not begun; then none can issue
    operand_bytes_per_cycle: float  # of A and B, read from shared memory for all four sub-partitions together
    columns_per_cycle: float  # of B, which a sub-partition's tensor pipe multiplies with its rows of A
    least_cycles: float  # from one multiplication to the next, however few columns they have
    start_cycles: float  # from issue until the tensor pipe begins, where it is idle and A is in registers
    finish_cycles: float  # from the tensor pipe's last cycle until a warp that waits goes on
    math_interval: float  # how many times as long the ALU and IMAD take their pipes while the tensor pipe multiplies


@dataclass(frozen=True, slots=True)
class Mio:
    """Queues and address units (MIO), one of each a sub-partition, between issue and the data stage of the SM."""

    queue_entries: int  # instructions that a sub-partition's queue and its address unit hold together
    shared_entries: int  # requests in the SM's queue behind the address units; 0: there is no such queue
    load_entries: int  # loads to registers that wait behind it for tags or data; 0: they wait in it
    copy_reads_behind: int  # requests before it in that queue at most when an asynchronous copy reads its registers
    issue_to_address_cycles: float
    shared_load_interval_cycles: float  # of the address unit; for other instructions: that of pipe "lsu"


@dataclass(frozen=True, slots=True)
class SourcesRead:
    """Cycles from issue until an instruction of variable latency has read its registers, on an idle SM; three numbers
    are for accesses of 32, 64 and 128 bits a thread."""

    global_load_cycles: tuple[int, int, int]
    global_store_cycles: tuple[int, int, int]
    shared_load_cycles: tuple[int, int, int]
    shared_store_cycles: tuple[int, int, int]
    copy_cycles: tuple[int, int, int]  # LDGSTS, from global to shared memory
    other_cycles: int  # of instructions that do not access memory


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """Read and write ports of the register file of a sub-partition."""

    read_window_cycles: int  # in how many cycles an instruction of fixed latency reads its registers
    second_pass_cycles: int  # added for an instruction that uses the multiplier twice (IMAD.WIDE)
    uniform_row_registers: int  # uniform registers that are read together in one cycle
    uniform_read_window_cycles: int  # in how many cycles a uniform instruction reads its registers
    uniform_operand_window_cycles: int  # in how many cycles a vector instruction reads its uniform register
    late_read_wait_cycles: int  # how long an instruction of variable latency waits for a free port; then issue stops
    result_write_cycles: int  # from issue to the write of a result of fixed latency
    load_write_to_use_cycles: int  # from the write of a loaded register to the first issue that may use it
    load_write_most_wait_cycles: int  # how long loaded data waits for a free write port; then issue stops
    load_write_hold_cycles: int  # how long nothing issues then
    load_write_slack_cycles: int  # how long what a load of shared words returns waits before others wait behind it
    load_write_blocking: float  # the part of what it waits then for which nothing takes the data stage
    load_write_spare_wavefronts: float  # how many that return no register of their own make up for that, at most


@dataclass(frozen=True, slots=True)
class Barrier:
    """Costs of block barriers. An SM counts the warps that arrive at a barrier one after another.

    A barrier that opens after memory accesses flushes the data stage. Barriers that open together share a flush.
    """

    arrival_cycles: float  # to count one warp
    release_cycles: float  # from the last warp counted to the next instruction of the warps that wait
    flush_cycles: float  # how long a flush occupies the data stage
    flush_store_cycles: float  # added to flush_cycles by each wavefront of stores since the last flush
    flush_most_store_cycles: float  # the most that all wavefronts of stores together add
    flush_interval_cycles: float  # a barrier that opens sooner than this after a flush causes no flush
    block_turn_cycles: int  # how long a scheduler stays with the block that issued last while it has nothing to issue
    cluster_cycles: float  # added to release_cycles by the barrier of a cluster


@dataclass(frozen=True, slots=True)
class Fetch:
    """Instruction caches. Code in the first level is fetched as fast as it issues."""

    line_bytes: int
    first_level_bytes: int  # of one SM
    first_level_ways: int
    second_level_bytes: int
    second_level_ways: int
    near_line_cycles: float  # to fetch a line from the second level, for the SM that is nearest to it
    near_line_spread_cycles: float  # from the SM that waits least for such a line to the one that waits longest
    far_line_cycles: float  # to fetch a line from L2
    ahead_lines: int  # how many lines behind one that is fetched are fetched, too
    launch_bytes: int  # so much of a kernel's code is in the second level when its launch begins


@dataclass(frozen=True, slots=True)
class LaunchCost:
    overhead_us: float  # device time of an empty kernel, as event pairs or the profiler see it
    activity_overhead_us: float  # the same as CUPTI's activity records see it, which Nsight Systems shows
    block_start_cycles: float  # from a block's dispatch to its first instruction
    block_interval_cycles: float  # least time from one block's dispatch to an SM to the next one's to the same SM
    dispatch_interval_us: float  # least time from one block's dispatch to the next one's, to whichever SM
    together_share: float  # blocks of an SM that end within so much of their time of each other leave it together


@dataclass(frozen=True, slots=True)
class Peak:
    """Arithmetic peaks at sm_boost_hz, in operations a second.

    A fused multiply-add counts as two operations. 0 means that the GPU has no such unit.
    """

    fp32_flops: float
    fp64_flops: float
    fp16_flops: float
    tensor_fp16_flops: float  # dense, fp32 accumulate
    tensor_bf16_flops: float
    tensor_tf32_flops: float
    tensor_fp64_flops: float
    tensor_int8_ops: float


@dataclass(frozen=True, slots=True)
class Value:
    """One number of a GPU, or a tuple of them, and where it comes from.

    key           the full key: "l2.size_bytes"
    value         in the unit of the field that the key names
    unit          as written in the file or after --set, "" where none was written
    source        text that says where the value comes from
    status        one of `STATUSES` (gemmsim/gpu/__init__.py says what they mean), or "set" by --set
    found_on      the architectures on which the value was found; empty: the one that the file is about
    records       names of the measurements that a calibrated value was fitted to; empty for other values
    calibratable  whether a calibration may fit the value
    """

    key: str
    value: object
    unit: str
    source: str
    status: str
    found_on: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    calibratable: bool = False

    def seen_from(self, arch: str) -> Value:
        """Return this value for a GPU of `arch`; its status is "copied" if it was found on other architectures only."""
        if not self.found_on or arch in self.found_on:
            return self
        return replace(self, status="copied", source=f"found on {', '.join(self.found_on)}: {self.source}")


@dataclass(frozen=True)
class GpuSpec:
    name: str  # "a100-80gb"
    title: str  # "NVIDIA A100 80GB SXM4"
    arch: str  # "sm_80"
    sm: Sm
    clock: Clock
    shared: Shared
    l1: L1
    l2: L2
    dram: Dram
    mma: Mma
    warpgroup: Warpgroup
    mbarrier: Mbarrier
    tma: Tma
    mio: Mio
    sources_read: SourcesRead
    register_file: RegisterFile
    barrier: Barrier
    memory_fence: MemoryFence
    fetch: Fetch
    pipes: dict[str, Pipe]  # keys: see gemmsim/sm/pipes.py
    launch: LaunchCost
    peak: Peak
    power: Power
    provenance: dict[str, Value]  # by key
    sha256: str  # of name, architecture and all values, those given with --set included

    @property
    def fitted_keys(self) -> tuple[str, ...]:
        """Return the keys of the numbers that were fitted to measured times of launches, not to microbenchmarks.

        If there are any, reports mark the predicted times of this GPU as calibrated. All of them are `calibratable`.
        """
        return tuple(key for key, one in self.provenance.items() if one.status == "calibrated" and one.calibratable)
