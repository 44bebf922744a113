// What issues beside matrix multiplications, of one SM. Timed on a GPU: tests/records/h200_beside_multiplications.json.
// Each warp logs the cycles of all its steps.
__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
enum { FADD, FFMA, LOP, IMAD, NOTHING };

template <int OP> __device__ void one(float& f, int& q, float u, float v, int a, int b) {
  if (OP == FADD) asm volatile("add.f32 %0, %0, %1;" : "+f"(f) : "f"(u));
  if (OP == FFMA) asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(f) : "f"(u), "f"(v));
  if (OP == LOP) asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(q) : "r"(a), "r"(b));
  if (OP == IMAD) asm volatile("mad.lo.s32 %0, %1, %2, %0;" : "+r"(q) : "r"(a), "r"(b));
}

// Eight HMMA.16816 or IMMA.16832 a step with N other instructions among them.
template <int OP, int N, bool INTEGERS> __device__ void beside_mma(int steps, float u, float v, int a, int b, float* out, unsigned* log) {
  unsigned m[8][4], A[2][4], B[4][2];
  float f[8];
  int q[8];
  for (int j = 0; j < 8; j++) { f[j] = q[j] = threadIdx.x + j; for (int i = 0; i < 4; i++) m[j][i] = 0; }
  for (int j = 0; j < 2; j++) for (int i = 0; i < 4; i++) A[j][i] = a * i + threadIdx.x;
  for (int j = 0; j < 4; j++) for (int i = 0; i < 2; i++) B[j][i] = b * i + j;
  __syncthreads();
  unsigned begin = clock();
  for (int s = 0; s < steps; s++)
#pragma unroll
    for (int j = 0; j < 8; j++) {
      if (INTEGERS)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+r"(m[j][0]), "+r"(m[j][1]), "+r"(m[j][2]), "+r"(m[j][3])
          : "r"(A[j % 2][0]), "r"(A[j % 2][1]), "r"(A[j % 2][2]), "r"(A[j % 2][3]), "r"(B[j / 2][0]), "r"(B[j / 2][1]));
      else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
          : "+f"(*(float*)&m[j][0]), "+f"(*(float*)&m[j][1]), "+f"(*(float*)&m[j][2]), "+f"(*(float*)&m[j][3])
          : "r"(A[j % 2][0]), "r"(A[j % 2][1]), "r"(A[j % 2][2]), "r"(A[j % 2][3]), "r"(B[j / 2][0]), "r"(B[j / 2][1]));
#pragma unroll
      for (int n = N * j / 8; n < N * (j + 1) / 8; n++) one<OP>(f[n % 8], q[n % 8], u, v, a, b);
    }
  unsigned end = clock();
  float sum = 0;
  for (int j = 0; j < 8; j++) { sum += f[j] + q[j]; for (int i = 0; i < 4; i++) sum += m[j][i]; }
  out[threadIdx.x] = sum;
  if (threadIdx.x % 32 == 0) log[threadIdx.x / 32] = end - begin;
}

// Four wgmma of 64 x 128 x 16 a step by four warps, with N other instructions and COPIES copies of 16 bytes a lane a warp
// while they multiply.
template <int OP, int N, int COPIES> __device__ void beside_wgmma(const char* data, int row, int steps, float u, float v, int a, int b, float* out, unsigned* log) {
  extern __shared__ __align__(1024) char room[];
  int warp = threadIdx.x / 32, at = threadIdx.x % 32 * 16;
  unsigned base = shared_address(room), to = base + 65536 + threadIdx.x * 16;
  const char* from = data + (size_t)warp * (512 / row) * 16384 + (size_t)(at / row) * 16384 + at % row;
  size_t next = (size_t)4 * (512 / row) * 16384;
  unsigned long long of_a = (base & 0x3ffff) >> 4 | 8ull << 16 | 16ull << 32, of_b = of_a + 1024;
  float d[64], f[8];
  int q[8];
  for (int j = 0; j < 64; j++) d[j] = 0;
  for (int j = 0; j < 8; j++) f[j] = q[j] = threadIdx.x + j;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  __syncthreads();
  unsigned begin = clock();
  for (int s = 0; s < steps; s++) {
#define D(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#pragma unroll
    for (int k = 0; k < 4; k++)
      asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,"
        "%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,"
        "%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, 1, 1, 1, 0, 0;"
        : D(0), D(8), D(16), D(24), D(32), D(40), D(48), D(56) : "l"(of_a), "l"(of_b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
    for (int n = 0; n < COPIES; n++)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + (n + (s & 1) * COPIES) * 2048), "l"(from + n * next + (s * row & 16383)) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
#pragma unroll
    for (int n = 0; n < N; n++) one<OP>(f[n % 8], q[n % 8], u, v, a, b);
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  unsigned end = clock();
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  float sum = 0;
  for (int j = 0; j < 64; j++) sum += d[j];
  for (int j = 0; j < 8; j++) sum += f[j] + q[j];
  out[threadIdx.x] = sum;
  if (threadIdx.x % 32 == 0) log[warp] = end - begin;
}

#define MMA(name, op, n, integers) extern "C" __global__ void name(const char* data, int row, int steps, float u, float v, int a, int b, float* out, unsigned* log) { beside_mma<op, n, integers>(steps, u, v, a, b, out, log); }
#define WGMMA(name, op, n, copies) extern "C" __global__ void __launch_bounds__(128) name(const char* data, int row, int steps, float u, float v, int a, int b, float* out, unsigned* log) { beside_wgmma<op, n, copies>(data, row, steps, u, v, a, b, out, log); }
MMA(mma_alone, NOTHING, 0, false)
MMA(mma_fadd_8, FADD, 8, false)
MMA(mma_fadd_16, FADD, 16, false)
MMA(mma_fadd_32, FADD, 32, false)
MMA(mma_ffma_32, FFMA, 32, false)
MMA(mma_lop_16, LOP, 16, false)
MMA(mma_lop_32, LOP, 32, false)
MMA(mma_imad_32, IMAD, 32, false)
MMA(imma_lop_32, LOP, 32, true)
MMA(imma_fadd_32, FADD, 32, true)
WGMMA(wgmma_alone, NOTHING, 0, 0)
WGMMA(wgmma_lop_64, LOP, 64, 0)
WGMMA(wgmma_lop_96, LOP, 96, 0)
WGMMA(wgmma_lop_128, LOP, 128, 0)
WGMMA(wgmma_imad_128, IMAD, 128, 0)
WGMMA(wgmma_fadd_128, FADD, 128, 0)
WGMMA(wgmma_copies_4, NOTHING, 0, 4)
WGMMA(wgmma_copies_8, NOTHING, 0, 8)
