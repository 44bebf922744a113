// Each kernel stores where an expression of the block's number says; tests/flow/test_block_classes.py.

#define KERNEL(name, expression)                                                    \
  extern "C" __global__ void name(float *y, unsigned d, int n) {                    \
    const unsigned b = blockIdx.x, t = threadIdx.x;                                 \
    y[(unsigned)(expression) & 4095u] = 1.0f;                                       \
  }

typedef unsigned long long wide;

KERNEL(funnel_right, (((wide)b << 40 | (wide)t << 20) >> 20))
KERNEL(funnel_wraps, (((wide)(b * 4u) << 32 | t) >> 2) + t)
KERNEL(funnel_signed, ((long long)((wide)b << 58) >> 49) + t)
KERNEL(funnel_left, (((wide)b * 0x12345678u << 9) >> 32) * 32u + t)
// The low word of what is shifted is the same for the least, the largest and the first number, but not for all.
KERNEL(funnel_comes_round, (unsigned)(((wide)((b + 3u) % 5u) << 32 | t) >> (n - 298)) >> 20)
KERNEL(hashed, (b * 2654435761u) >> 20)
KERNEL(quotient, b / d * 32u + b % d * 256u + t)
KERNEL(of_thread, (b * 64u + t) / d)
KERNEL(remainder_of_thread, (b * 64u + t) % d * 4u)
KERNEL(high_product, __umulhi(b * 123456789u + t, 987654321u))
KERNEL(signed_product, (wide)((long long)((int)b - 30) * ((int)t - 20)))
KERNEL(smallest, min((int)b * 17, n) + (int)t)
KERNEL(in_floats, (int)((float)b * 1.5f) * 32 + (int)t)
KERNEL(ones, __popc(b) * 32u + t)
KERNEL(exclusive_or, b ^ t)
KERNEL(either, (b & 1u) ? t : 63u - t)
KERNEL(reversed, (__brev(b) >> 20) + t)
KERNEL(carried, (((wide)(0xfffffff0u + b % d) + t + ((wide)b << 33)) >> 4))
KERNEL(shared_by_lanes, __shfl_xor_sync(0xffffffffu, b * 32u + t, 5))
KERNEL(packed, __byte_perm(b, t, 0x5410) + b * 128u)
KERNEL(compared, ((int)(b * 0x10000000u) < (int)(t * 0x01000000u) ? 64u : 0u) + t)

// A counter in the lower half of a word whose upper half is what an atomic found, of which no block knows in another. It
// goes up by 1, is copied, and is looked at, as a half or (WHOLE) with the other one.
#define COUNTER(name, WHOLE)                                                                                      \
  extern "C" __global__ void name(float *y, unsigned d, int n) {                                                  \
    const unsigned found = atomicAdd((unsigned *)y + threadIdx.x, 1u);                                            \
    unsigned word, half = 0;                                                                                      \
    asm volatile("prmt.b32 %0, %1, %2, 0x7610;" : "=r"(word) : "r"(0), "r"(found << 16));                         \
    while (half < d) {                                                                                            \
      y[blockIdx.x * 32u + half] = 1.0f;                                                                          \
      asm volatile("prmt.b32 %0, %1, %2, 0x7610;" : "=r"(word) : "r"(word + 1u), "r"(word));                      \
      asm volatile("and.b32 %0, %1, %2;" : "=r"(half) : "r"(word), "n"(WHOLE ? 0x1ffff : 0xffff));                \
    }                                                                                                             \
  }
COUNTER(counter_in_a_half, 0)
COUNTER(counter_with_more, 1)

// Two blocks each look up the same number; from block 32 on they look for it behind the array.
extern "C" __global__ void looked_up(float *y, unsigned d, int n) {
  const unsigned found = ((const unsigned *)y)[4080u + (blockIdx.x >> 1)];
  y[(found * 32u + threadIdx.x) & 4095u] = 1.0f;
}
