// Which lines an L1 holds after a sequence of loads and stores: what tests/records/h100_l1_sets.json was measured with.
// One warp runs a sequence and looks for one line; there is a launch for each line that is looked for. Between two
// launches another kernel takes all of shared memory, after which the hand that goes round the sets begins anew.
//
// An element is a line's number and, from bit 29 on, what is done: 0 a load of the line, 1 and 2 of its first and second
// sector, 3 a store of the line, 4 of its first sector, 5 of half a sector. Stores are followed by 600 cycles of nothing.
#include <cstddef>
#define CLOCK(t) asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory")
__constant__ unsigned order[15000];

__global__ void resize(int* sink) {  // with 220 KiB of dynamic shared memory, or 1 KiB if probe has more than 100 KB
    extern __shared__ int words[];
    words[threadIdx.x] = 1;
    __syncthreads();
    if (words[0] == 3) *sink = 1;
}

// found: the cycles that the last element took; below 120 it hit.
__global__ void probe(char* lines, int count, unsigned* found, int* sink) {
    int lane = threadIdx.x, sum = 0, v;
    for (int i = 0; i < count; i++) {
        unsigned what = order[i] >> 29;
        char* a = lines + (size_t)(order[i] & 0x1fffffff) * 128 + lane * 4;
        long long begin = 0, end = 0, now;
        v = 0;
        if (what == 0 || (what == 1 && lane < 8) || (what == 2 && lane >= 8 && lane < 16)) {
            CLOCK(begin);
            asm volatile("ld.global.ca.b32 %0, [%1];\n\tadd.s32 %0, %0, 1;" : "=r"(v) : "l"(a) : "memory");
            CLOCK(end);
        }
        if (what == 3 || (what == 4 && lane < 8) || (what == 5 && lane < 4)) asm volatile("st.global.b32 [%0], %1;" :: "l"(a), "r"(0) : "memory");
        if (what >= 3) { CLOCK(begin); do CLOCK(now); while (now - begin < 600); }
        sum += v;
        if (i == count - 1 && lane == 0) *found = end - begin + (v == 12345);
    }
    if (sum == 12345) *sink = sum;
}
