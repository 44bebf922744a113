// C = A B in halves with sums in float, by one warpgroup a block with wgmma: 128 x 128 x 64 tiles that ordinary stores
// stage in shared memory, in the layout of the 128-byte swizzle. A [m, k] and B [k, n] are row-major; m, n and k are
// multiples of a tile. To be compiled for sm_90a.

#include <cuda_fp16.h>

constexpr int TILE_M = 128, TILE_N = 128, TILE_K = 64, THREADS = 128;
constexpr int CHUNK = 8;  // halves that one load moves: 16 bytes

using Words = unsigned long long;

// A matrix descriptor of the 128-byte swizzle; offsets in bytes.
__device__ Words descriptor(const __half* start, int leading, int stride)
{
    Words at = static_cast<Words>(__cvta_generic_to_shared(start)) >> 4 & 0x3FFF;
    return at | static_cast<Words>(leading >> 4) << 16 | static_cast<Words>(stride >> 4) << 32 | 1ull << 62;
}

// The place of a chunk in a tile with rows of 64 halves, which is 128 bytes: eight rows are one repetition of the swizzle.
__device__ int swizzled(int row, int chunk)
{
    return row * 64 + (chunk ^ row % 8) * CHUNK;
}

// d += A B for 64 rows of A and 128 columns of B, 16 deep; B is stored along n.
__device__ void multiply(float (&d)[64], Words a, Words b)
{
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, 1, 1, 1, 0, 1;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(THREADS)
wgmma_gemm(const __half* a, const __half* b, float* c, int m, int n, int k)
{
    __shared__ __align__(1024) __half a_tile[TILE_M * TILE_K];
    __shared__ __align__(1024) __half b_tile[2 * TILE_K * 64];  // 64 columns, then the other 64
    const int thread = threadIdx.x, first_row = blockIdx.y * TILE_M, first_column = blockIdx.x * TILE_N;
    float upper[64] = {}, lower[64] = {};
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        for (int i = thread; i < TILE_M * 8; i += THREADS) {
            const int row = i / 8, chunk = i % 8;
            const uint4* from = reinterpret_cast<const uint4*>(a + (first_row + row) * k + k0 + chunk * CHUNK);
            *reinterpret_cast<uint4*>(a_tile + swizzled(row, chunk)) = *from;
        }
        for (int i = thread; i < TILE_K * 16; i += THREADS) {
            const int row = i / 16, chunk = i % 16;
            const uint4* from = reinterpret_cast<const uint4*>(b + (k0 + row) * n + first_column + chunk * CHUNK);
            *reinterpret_cast<uint4*>(b_tile + chunk / 8 * TILE_K * 64 + swizzled(row, chunk % 8)) = *from;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int step = 0; step < TILE_K; step += 16) {
            const Words b_at = descriptor(b_tile + step * 64, TILE_K * 128, 1024);
            multiply(upper, descriptor(a_tile + step, 16, 1024), b_at);
            multiply(lower, descriptor(a_tile + 64 * 64 + step, 16, 1024), b_at);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    const int row = first_row + thread / 32 * 16 + thread % 32 / 4, column = first_column + thread % 4 * 2;
    for (int i = 0; i < 64; i += 2) {
        const int at = (row + i / 2 % 2 * 8) * n + column + i / 4 * 8;
        *reinterpret_cast<float2*>(c + at) = make_float2(upper[i], upper[i + 1]);
        *reinterpret_cast<float2*>(c + at + 64 * n) = make_float2(lower[i], lower[i + 1]);
    }
}
