// One warp reads and stores lines in an order that constant memory holds, and keeps which reads hit L1: what
// tests/records/h200_l1_lines.json was measured with. An element of the order is a line's number and, from bit 24 on,
// what is done: 0 a load of the line, 1 and 2 of its first and second sector, 3 a store of the line, 4 of its first sector,
// 5 of half a sector, 7 two loads at once. Stores are followed by 400 cycles of nothing.
#include <cstddef>
#define CLOCK(t) asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory")
__constant__ int order[16000];
extern __shared__ unsigned hits[];  // a bit for each access
__global__ void probe(char* lines, int count, unsigned* out, int* sink) {
    int lane = threadIdx.x, sum = 0;
    unsigned word = 0;
    for (int i = 0; i < count; i++) {
        int element = order[i], what = (unsigned)element >> 24, v = 0, w;
        char* a = lines + (size_t)(element & 0xffffff) * 128 + lane * 4;
        long long begin = 0, end = 0, now;
        if (what == 0 || (what == 1 && lane < 8) || (what == 2 && lane >= 8 && lane < 16)) {
            CLOCK(begin);
            asm volatile("ld.global.ca.b32 %0, [%1];\n\tadd.s32 %0, %0, 1;" : "=r"(v) : "l"(a) : "memory");
            CLOCK(end);
        }
        if (what == 7) {
            asm volatile("ld.global.ca.b32 %0, [%2];\n\tld.global.ca.b32 %1, [%2];" : "=r"(v), "=r"(w) : "l"(a) : "memory");
            sum += w;
        }
        if (what == 3 || (what == 4 && lane < 8) || (what == 5 && lane < 4)) asm volatile("st.global.b32 [%0], %1;" :: "l"(a), "r"(0) : "memory");
        if (what >= 3 && what <= 5) { CLOCK(begin); do CLOCK(now); while (now - begin < 400); begin = 0; }
        sum += v;
        int timed = what == 2 ? 8 : 0;  // a lane that has read
        begin = __shfl_sync(~0u, begin, timed);
        end = __shfl_sync(~0u, end, timed);
        if (end - begin + (v == 12345) < 120) word |= 1u << (i & 31);
        if ((i & 31) == 31) { if (lane == 0) hits[i >> 5] = word; word = 0; }
    }
    if (lane == 0 && (count & 31)) hits[count >> 5] = word;
    __syncwarp();
    for (int i = lane; i < (count + 31) / 32; i += 32) out[i] = hits[i];
    if (sum == 12345) *sink = sum;
}
