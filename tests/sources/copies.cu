// Copies to shared memory and loads of one SM, alone, beside matrix loads and beside wgmma. Timed on an H200: tests/records/h200_copies.json.
// A request has 16 bytes a lane, of rows of `row` bytes 16 KiB apart. Each warp logs the cycles of all its steps.
#define COPY(kind, to, from) asm volatile("cp.async." kind ".shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory")
#define CLOSE asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(left) asm volatile("cp.async.wait_group " left ";" ::: "memory")
#define MATRIX(r, a) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory")
enum { CG, CA, LOAD, NONE };
constexpr int PITCH = 16384, REQUESTS = 8;

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ const char* first_row(const char* data, int row, int warp) {
  int at = threadIdx.x % 32 * 16;
  return data + (size_t)warp * (512 / row) * PITCH + (size_t)(at / row) * PITCH + at % row;
}
template <int KIND> __device__ void request(unsigned to, const char* from, float4& r) {
  if (KIND == CG) COPY("cg", to, from);
  if (KIND == CA) COPY("ca", to, from);
  if (KIND == LOAD) asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(from) : "memory");
}

// Eight requests a warp, for which all wait at a barrier.
template <int KIND> __device__ void bursts(const char* data, int row, int steps, float* out, unsigned* log) {
  extern __shared__ __align__(1024) char room[];
  int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  size_t step = (size_t)warps * (512 / row) * PITCH;
  const char* from = first_row(data, row, warp);
  unsigned to = shared_address(room) + threadIdx.x * 16;
  float sum = 0;
  __syncthreads();
  unsigned begin = clock();
  for (int i = 0; i < steps; i++) {
    const char* here = from + (i * row & (PITCH - 1));
    float4 r[REQUESTS] = {};
#pragma unroll
    for (int n = 0; n < REQUESTS; n++) request<KIND>(to + n * blockDim.x * 16, here + n * step, r[n]);
    CLOSE;
    WAIT("0");
#pragma unroll
    for (int n = 0; n < REQUESTS; n++) sum += r[n].x + r[n].y + r[n].z + r[n].w;
    __syncthreads();
  }
  unsigned end = clock();
  out[threadIdx.x] = sum;
  if (threadIdx.x % 32 == 0) log[warp] = end - begin;
}

// Each of eight copies a warp with LOADS matrix loads behind it; steps overlap.
template <int KIND, int LOADS> __device__ void beside_loads(const char* data, int row, int steps, float* out, unsigned* log) {
  extern __shared__ __align__(1024) char room[];
  int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  size_t step = (size_t)warps * (512 / row) * PITCH;
  const char* from = first_row(data, row, warp);
  unsigned to = shared_address(room) + threadIdx.x * 16, matrix = to, none = row & 1;
  float sum = 0;
  float4 unused;
  unsigned r[4];
  __syncthreads();
  unsigned begin = clock();
  for (int i = 0; i < steps; i++) {
    const char* here = from + (i * row & (PITCH - 1));
#pragma unroll
    for (int n = 0; n < REQUESTS; n++) {
      request<KIND>(to + (n + (i & 1) * REQUESTS) * blockDim.x * 16, here + n * step, unused);
#pragma unroll
      for (int k = 0; k < LOADS; k++) {
        asm volatile("xor.b32 %0, %0, %1;" : "+r"(matrix) : "r"(none));
        MATRIX(r, matrix);
        sum += __uint_as_float(r[0]);
      }
    }
    CLOSE;
    WAIT("1");
  }
  unsigned end = clock();
  WAIT("0");
  out[threadIdx.x] = sum;
  if (threadIdx.x % 32 == 0) log[warp] = end - begin;
}

// 4 KiB a warp and step, of `width` bytes a lane: loads, or copies past L1 of 16 bytes.
template <int WIDTH, int KIND> __device__ void misses(const char* data, int steps, float* out, unsigned* log) {
  extern __shared__ __align__(1024) char room[];
  int warp = threadIdx.x / 32;
  unsigned to = shared_address(room) + threadIdx.x * 16, at = threadIdx.x * WIDTH;
  float sum = 0;
  __syncthreads();
  unsigned begin = clock();
  for (int i = 0; i < steps; i++) {
    float4 r[REQUESTS] = {};
#pragma unroll
    for (int n = 0; n < REQUESTS; n++, at += blockDim.x * WIDTH) {
      const char* from = data + (at & ((1 << 22) - 1));
      if (KIND == CG) COPY("cg", to + (n + (i & 1) * REQUESTS) * blockDim.x * 16, from);
      else if (WIDTH == 4) asm volatile("ld.global.f32 %0, [%1];" : "=f"(r[n].x) : "l"(from) : "memory");
      else if (WIDTH == 8) asm volatile("ld.global.v2.f32 {%0,%1}, [%2];" : "=f"(r[n].x), "=f"(r[n].y) : "l"(from) : "memory");
      else request<LOAD>(0, from, r[n]);
    }
    if (KIND == CG) { CLOSE; WAIT("1"); }
#pragma unroll
    for (int n = 0; n < REQUESTS; n++) sum += r[n].x + r[n].y + r[n].z + r[n].w;
  }
  unsigned end = clock();
  WAIT("0");
  out[threadIdx.x] = sum;
  if (threadIdx.x % 32 == 0) log[warp] = end - begin;
}

#define ENTRY(name, call) extern "C" __global__ void name(const char* data, int row, int steps, float* out, unsigned* log) { call; }
ENTRY(burst_cg, (bursts<CG>(data, row, steps, out, log)))
ENTRY(burst_ca, (bursts<CA>(data, row, steps, out, log)))
ENTRY(burst_load, (bursts<LOAD>(data, row, steps, out, log)))
ENTRY(loads_4, (beside_loads<NONE, 4>(data, row, steps, out, log)))
ENTRY(cg_0, (beside_loads<CG, 0>(data, row, steps, out, log)))
ENTRY(cg_4, (beside_loads<CG, 4>(data, row, steps, out, log)))
ENTRY(cg_8, (beside_loads<CG, 8>(data, row, steps, out, log)))
ENTRY(ca_4, (beside_loads<CA, 4>(data, row, steps, out, log)))
ENTRY(ca_8, (beside_loads<CA, 8>(data, row, steps, out, log)))
ENTRY(miss_4, (misses<4, LOAD>(data, steps, out, log)))
ENTRY(miss_8, (misses<8, LOAD>(data, steps, out, log)))
ENTRY(miss_16, (misses<16, LOAD>(data, steps, out, log)))
ENTRY(miss_copy, (misses<16, CG>(data, steps, out, log)))
