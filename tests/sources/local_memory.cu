// Local memory: what tests/records/h200_local_memory.json was measured with. Each thread has an array of its own, which
// volatile keeps in local memory; n is its length in words. Kernels end in the number of bytes of the array.
#define LOCAL(BYTES)                                                                                                   \
  extern "C" __global__ void write_##BYTES(float* out, int n, int passes) { /* stores alone, each pass the same */     \
    volatile float a[BYTES / 4];                                                                                       \
    _Pragma("unroll 1") for (int p = 0; p < passes; p++)                                                               \
      _Pragma("unroll 4") for (int i = 0; i < n; i++) a[i] = threadIdx.x + p;                                          \
    if (passes < 0) out[threadIdx.x] = a[n];                                                                           \
  }                                                                                                                    \
  extern "C" __global__ void read_##BYTES(float* out, int n, int passes) { /* stored once, then read */                \
    volatile float a[BYTES / 4];                                                                                       \
    float s = 0;                                                                                                       \
    _Pragma("unroll 4") for (int i = 0; i < n; i++) a[i] = threadIdx.x + i;                                            \
    _Pragma("unroll 1") for (int p = 0; p < passes; p++) {                                                             \
      _Pragma("unroll 4") for (int i = 0; i < n; i++) s += a[i];                                                       \
    }                                                                                                                  \
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;                                                                    \
  }                                                                                                                    \
  extern "C" __global__ void both_##BYTES(float* out, int n, int passes) { /* each pass reads and stores every word */ \
    volatile float a[BYTES / 4];                                                                                       \
    float s = 0;                                                                                                       \
    _Pragma("unroll 4") for (int i = 0; i < n; i++) a[i] = threadIdx.x + i;                                            \
    _Pragma("unroll 1") for (int p = 0; p < passes; p++) {                                                             \
      _Pragma("unroll 4") for (int i = 0; i < n; i++) {                                                                \
        s += a[i];                                                                                                     \
        a[i] = s;                                                                                                      \
      }                                                                                                                \
    }                                                                                                                  \
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;                                                                    \
  }
LOCAL(64)
LOCAL(256)
LOCAL(512)
LOCAL(1024)
LOCAL(2048)
LOCAL(4096)

// As both_, four words at a time.
#define WIDE(BYTES)                                                                                                    \
  extern "C" __global__ void wide_##BYTES(float* out, int n, int passes) {                                             \
    float4 a[BYTES / 16];                                                                                              \
    unsigned at = (unsigned)__cvta_generic_to_local((const void*)a);                                                   \
    float s = 0, x, y, z, w;                                                                                           \
    _Pragma("unroll 4") for (int i = 0; i < n; i += 4)                                                                 \
      asm volatile("st.local.v4.f32 [%0], {%1, %1, %1, %1};" ::"r"(at + 4 * i), "f"((float)threadIdx.x) : "memory");   \
    _Pragma("unroll 1") for (int p = 0; p < passes; p++) {                                                             \
      _Pragma("unroll 4") for (int i = 0; i < n; i += 4) {                                                             \
        asm volatile("ld.local.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(at + 4 * i));   \
        s += x + y + z + w;                                                                                            \
        asm volatile("st.local.v4.f32 [%0], {%1, %1, %1, %1};" ::"r"(at + 4 * i), "f"(s) : "memory");                  \
      }                                                                                                                \
    }                                                                                                                  \
    out[blockIdx.x * blockDim.x + threadIdx.x] = s + a[n & 1].x;                                                       \
  }
WIDE(1024)
WIDE(4096)
