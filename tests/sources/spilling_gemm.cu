// C = A B, square, n a multiple of 128: tiles of 128 x 128 x 8 by 64 threads with 16 x 16 results each, which do not fit
// into registers beside the operands. What tests/records/h200_local_memory.json was measured with.
constexpr int BM = 128, BN = 128, BK = 8, TM = 16, TN = 16;

extern "C" __global__ void __launch_bounds__(64) spilling_gemm(const float* A, const float* B, float* C, int n) {
  __shared__ float As[BK][BM], Bs[BK][BN];
  const int row = threadIdx.x / (BN / TN) * TM, column = threadIdx.x % (BN / TN) * TN;
  A += blockIdx.y * BM * n;
  B += blockIdx.x * BN;
  C += blockIdx.y * BM * n + blockIdx.x * BN;
  float sums[TM][TN] = {}, a[TM], b[TN];
  for (int k = 0; k < n; k += BK) {
    for (int i = threadIdx.x; i < BM * BK; i += 64) As[i % BK][i / BK] = A[i / BK * n + i % BK];
    for (int i = threadIdx.x; i < BN * BK; i += 64) Bs[i / BN][i % BN] = B[i / BN * n + i % BN];
    __syncthreads();
    A += BK;
    B += BK * n;
#pragma unroll
    for (int j = 0; j < BK; j++) {
#pragma unroll
      for (int i = 0; i < TM; i++) a[i] = As[j][row + i];
#pragma unroll
      for (int i = 0; i < TN; i++) b[i] = Bs[j][column + i];
#pragma unroll
      for (int r = 0; r < TM; r++)
#pragma unroll
        for (int c = 0; c < TN; c++) sums[r][c] += a[r] * b[c];
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < TM; r++)
#pragma unroll
    for (int c = 0; c < TN; c++) C[(row + r) * n + column + c] = sums[r][c];
}
