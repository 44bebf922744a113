// A GEMM on tensor cores whose blocks take their tiles in groups of eight rows, as Triton's tutorial does: C = A * B,
// A and B fp16, C fp32, row-major. M and N are multiples of 128, K of 32.
//
// 256 threads compute 128 x 128 elements of C: 8 warps of 64 x 32 each, with mma.sync.m16n8k16.
#include <cuda_fp16.h>

static const int SIZE = 128, STEP = 32, PAD = 8;

__device__ void load_matrices(unsigned (&to)[4], const half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from)));
}

__device__ void load_transposed(unsigned (&to)[4], const half* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((unsigned)__cvta_generic_to_shared(from)));
}

__device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b_0, unsigned b_1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1));
}

extern "C" __global__ void __launch_bounds__(256)
    grouped_mma(const half* A, const half* B, float* C, int M, int N, int K) {
    __shared__ __align__(16) half a[SIZE][STEP + PAD], b[STEP][SIZE + PAD];
    const int across = N / SIZE, down = M / SIZE, number = blockIdx.x;
    const int first = number / (8 * across) * 8, rows = min(down - first, 8), within = number % (8 * across);
    const int row_0 = (first + within % rows) * SIZE, col_0 = within / rows * SIZE;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int warp_row = warp / 4 * 64, warp_col = warp % 4 * 32;
    float acc[4][4][4] = {};
    for (int k_0 = 0; k_0 < K; k_0 += STEP) {
        for (int i = 0; i < 2; i++) {  // 8 elements at once: 4 threads a row of A's tile, 16 a row of B's
            const int a_row = thread / 4 + 64 * i, a_k = thread % 4 * 8, b_k = thread / 16 + 16 * i, b_col = thread % 16 * 8;
            *(uint4*)&a[a_row][a_k] = *(const uint4*)&A[(row_0 + a_row) * K + k_0 + a_k];
            *(uint4*)&b[b_k][b_col] = *(const uint4*)&B[(k_0 + b_k) * N + col_0 + b_col];
        }
        __syncthreads();
        for (int k = 0; k < STEP; k += 16) {
            unsigned left[4][4], right[2][4];
            for (int i = 0; i < 4; i++) load_matrices(left[i], &a[warp_row + 16 * i + lane % 16][k + lane / 16 * 8]);
            for (int j = 0; j < 2; j++) load_transposed(right[j], &b[k + lane % 16][warp_col + 16 * j + lane / 16 * 8]);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) multiply(acc[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            for (int half_row = 0; half_row < 2; half_row++) {
                const int row = row_0 + warp_row + 16 * i + 8 * half_row + lane / 4;
                const int col = col_0 + warp_col + 8 * j + lane % 4 * 2;
                *(float2*)&C[row * N + col] = make_float2(acc[i][j][2 * half_row], acc[i][j][2 * half_row + 1]);
            }
}
