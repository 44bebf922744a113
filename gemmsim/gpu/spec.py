"""A GPU as numbers: every field has its unit in its name; where each value comes from is in the preset's TOML."""

from __future__ import annotations

from dataclasses import dataclass, replace

STATUSES = (
    "vendor",
    "measured",
    "calibrated",
    "copied",
    "estimated",
)  # of a value in a file (see __init__.py)


@dataclass(frozen=True, slots=True)
class Sm:
    """Streaming multiprocessors and what limits the blocks resident on one."""

    count: int
    sub_partitions: int
    max_warps: int
    max_blocks: int
    max_threads_per_block: int
    max_barriers_per_block: int  # named barriers, BAR.SYNC 0 to 15
    registers: int
    max_registers_per_thread: int
    register_allocation_unit: int  # registers, a warp
    warp_allocation_granularity: int  # warps are allocated to a block in multiples of this
    gpc_sms: tuple[int, ...]  # SMs of each GPC; 0 where unknown
    early_sms: int  # of the first GPC, to which blocks go before all others (memory/grid/placement.py)
    early_first_gpcs: int  # GPCs whose SMs get a block each before the early SMs get their second one
    early_next_gpcs: int  # and before each further one


@dataclass(frozen=True, slots=True)
class Clock:
    sm_base_hz: float
    sm_boost_hz: float
    sm_load_hz: float  # under a GEMM's load: what the time prediction uses
    sm_tensor_load_hz: float  # the same of a kernel that executes tensor-core instructions


@dataclass(frozen=True, slots=True)
class Shared:
    """Shared memory; the data array is one with L1's."""

    max_bytes_per_sm: int
    max_bytes_per_block: int  # opt-in limit
    default_max_bytes_per_block: int  # static limit, without opting in: 48 KiB
    reserved_bytes_per_block: int
    allocation_unit_bytes: int
    carveouts_bytes: tuple[int, ...]  # configurable sizes, ascending
    banks: int
    bank_bytes: int
    load_latency_cycles: tuple[float, float, float]  # load to use, 32-, 64-, 128-bit, of one wavefront
    wavefronts_per_cycle: float  # of the data stage that shared and global accesses use, a SM
    request_interval_cycles: float = 1.0  # at least, between two requests (shared or global) to that stage, a SM
    wavefront_latency_cycles: float = 2.0  # that each further wavefront of a load adds to its own latency
    carveout_headroom: float = 1.0  # room that the driver leaves, over the resident blocks (memory/caches/carveout.py)
    carveout_few_blocks: int = 2  # where no more than these fit by their threads, it leaves none


@dataclass(frozen=True, slots=True)
class L1:
    unified_bytes: int  # L1 and shared memory together
    line_bytes: int
    sector_bytes: int
    tag_lines_per_cycle: int  # as many as there are tag banks, each of which looks up one line
    tag_bank_flips: tuple[int, ...]  # for each bit of a line's number, lowest first: bits of its bank's that it inverts
    ways: int
    hit_latency_cycles: tuple[float, float, float]  # load to use: 32-, 64-, 128-bit
    miss_bytes_per_cycle: float  # L2 to L1, a SM
    fill_bytes_per_cycle: float  # into the data array, out of the data stage's time
    tagged_request_cycles: float  # of the data stage, more, by a request to global memory beside ones to shared
    tagged_after_shared_requests: int  # how many requests to global memory after one to shared take that much more
    store_bytes_per_cycle: float  # out to L2, a SM
    partial_line_cycles: float  # that a line takes more, on that way, where sectors are written in part


@dataclass(frozen=True, slots=True)
class L2:
    size_bytes: int
    partitions: int  # 2 where each SM has a near and a far half
    line_bytes: int
    sector_bytes: int
    ways: int
    fetch_bytes: int  # aligned, that DRAM is read in for a sector that misses
    merged_requests: int  # of SMs of one GPC for the same sectors, that become one on their way; 1: none merge
    read_bytes_per_s: float  # all SMs together
    hit_latency_cycles: float  # load to use, near partition
    far_latency_cycles: float


@dataclass(frozen=True, slots=True)
class Dram:
    peak_bytes_per_s: float
    achievable_fraction: float  # of the peak, in a large copy
    latency_cycles: float  # load to use, SM cycles
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Pipe:
    """One execution pipe of a sub-partition: cycles between two warp instructions, and result latency in cycles."""

    issue_interval_cycles: float
    latency_cycles: float
    warps_take_turns: bool  # whether the warp whose last instruction for it is longest ago issues first
    passes_barrier: bool  # whether its instructions issue while their warp waits at a barrier (BAR.SYNC)


@dataclass(frozen=True, slots=True)
class Mma:
    """Tensor-core instructions that take another time than HMMA.16816, whose times are those of the pipe "tensor"."""

    half_work_share: float  # of its issue interval: HMMA.1688 in fp16, HMMA.1684 in TF32, IMMA.16816
    half_work_latency_cycles: float
    imma_interval_cycles: float  # IMMA.16832
    imma_latency_cycles: float
    dmma_interval_cycles: float  # DMMA.884
    dmma_latency_cycles: float


@dataclass(frozen=True, slots=True)
class Mio:
    """The way of memory instructions from issue to the data stage."""

    queue_entries: int  # a sub-partition, the address unit's included
    shared_entries: int  # a SM, between the address units and the stages that they share; 0: they hand over directly
    issue_to_address_cycles: float
    shared_load_interval_cycles: float  # of a sub-partition's address unit; for others it is the issue interval of lsu


@dataclass(frozen=True, slots=True)
class SourcesRead:
    """Cycles from issue until an instruction of variable latency has read its registers, on an idle SM.

    Those of memory instructions are for accesses of 32, 64 and 128 bits a thread.
    """

    global_load_cycles: tuple[int, int, int]
    global_store_cycles: tuple[int, int, int]
    shared_load_cycles: tuple[int, int, int]
    shared_store_cycles: tuple[int, int, int]
    copy_cycles: tuple[int, int, int]  # LDGSTS, from global to shared memory
    other_cycles: int  # of instructions that do not access memory


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """Read and write ports of the register file of a sub-partition."""

    read_window_cycles: int  # within which an instruction of fixed latency reads its registers
    second_pass_cycles: int  # more, for an instruction that passes the multiplier twice (IMAD.WIDE)
    uniform_row_registers: int  # uniform registers that are read together in one cycle
    uniform_read_window_cycles: int  # within which an instruction of the uniform datapath reads its registers
    uniform_operand_window_cycles: int  # within which a vector instruction reads its uniform register
    result_write_cycles: int  # from issue to the write of a result of fixed latency
    load_write_to_use_cycles: int  # from the write of a loaded register to the first issue that may use it
    load_write_most_wait_cycles: int  # that loaded data waits for a free write port before it stops the issue
    load_write_hold_cycles: int  # for which nothing issues then


@dataclass(frozen=True, slots=True)
class Barrier:
    """A SM counts the warps that arrive at barriers one after another."""

    arrival_cycles: float  # each
    release_cycles: float  # from the last one counted to the next instruction of the warps that wait
    flush_cycles: float  # of the data stage, taken by a barrier that opens after memory accesses
    flush_store_cycles: float  # more for each wavefront of stores since the last flush
    flush_most_store_cycles: float  # and at most for all of them
    flush_interval_cycles: float  # a barrier that opens sooner than this after a flush causes no other


@dataclass(frozen=True, slots=True)
class Fetch:
    """Instruction caches. Code in the first level is fetched as fast as it issues."""

    line_bytes: int
    first_level_bytes: int  # a SM
    second_level_bytes: int
    near_line_cycles: float  # a line from the second level
    far_line_cycles: float  # a line from L2


@dataclass(frozen=True, slots=True)
class LaunchCost:
    overhead_us: float  # device time of an empty kernel, as event pairs or the profiler see it
    block_start_cycles: float  # from a block's dispatch to its first instruction


@dataclass(frozen=True, slots=True)
class Peak:
    """Arithmetic peaks at sm_boost_hz, operations a second (a fused multiply-add counts two); 0 where none."""

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
    """Where one number comes from.

    key       in full: "l2.size_bytes"
    status    "vendor", "measured", "calibrated", "copied" or "estimated" (gemmsim/gpu/__init__.py); "set" by --set
    found_on  the architectures on which it was found; empty: on whichever the file is about
    records   of a calibrated value: what it was fitted to
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
        """This value as a GPU of `arch` has it: copied where it was found on other architectures only."""
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
    mio: Mio
    sources_read: SourcesRead
    register_file: RegisterFile
    barrier: Barrier
    fetch: Fetch
    pipes: dict[str, Pipe]  # keys: see gemmsim/sm/pipes.py
    launch: LaunchCost
    peak: Peak
    provenance: dict[str, Value]  # by key
    sha256: str  # of the file (and of --set overrides)

    @property
    def fitted_keys(self) -> tuple[str, ...]:
        """Keys of the numbers that were fitted to times of launches: with any of them, predicted times are calibrated.

        Numbers that no calibration of times may move (not `calibratable`) do not count: those were fitted to other
        records, such as loops of one instruction.
        """
        return tuple(key for key, one in self.provenance.items() if one.status == "calibrated" and one.calibratable)
