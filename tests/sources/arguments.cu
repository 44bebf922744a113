// Kernels that take their arguments in the forms that docs/howto/arguments.md explains.
#include <cuda_fp16.h>

struct Operand {
    const void* data;
    int ld;
};

struct Params {
    int m, n, k;
    Operand a, b;
    float alpha, beta;
    float* c;
    long long ldc;
};

// C = alpha A B + beta C; A row-major, B column-major, each with its own pitch.
extern "C" __global__ void by_struct(const __grid_constant__ Params p) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= p.m || col >= p.n) return;
    const __half* a = static_cast<const __half*>(p.a.data) + row * p.a.ld;
    const __half* b = static_cast<const __half*>(p.b.data) + col * p.b.ld;
    float total = 0;
    for (int k = 0; k < p.k; ++k) total += __half2float(a[k]) * __half2float(b[k]);
    float* c = p.c + row * p.ldc + col;
    *c = p.alpha * total + p.beta * *c;
}

// The generic address of a parameter.
extern "C" __global__ void address_of_parameter(const __grid_constant__ Params p, const Params* other, float* out) {
    const Params* chosen = threadIdx.x & 1 ? &p : other;
    out[threadIdx.x] = chosen->alpha + chosen->m;
}

// C[z] = max(A[z] B[z] + bias, 0): a batch of square matrices by their addresses.
extern "C" __global__ void batched(const float* const* a, const float* const* b, const float* bias, float* const* c, int n) {
    const float *A = a[blockIdx.z], *B = b[blockIdx.z];
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float total = bias[col];
    for (int k = 0; k < n; ++k) total += A[row * n + k] * B[k * n + col];
    c[blockIdx.z][row * n + col] = fmaxf(total, 0.0f);
}

__device__ float from_e4m3(unsigned char bits) {
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    float size = exponent ? ldexpf(8 + fraction, exponent - 10) : ldexpf(fraction, -9);
    return bits & 128 ? -size : size;
}

// y = W x, W of fp8 (e4m3), one thread a row.
extern "C" __global__ void fp8_rows(const unsigned char* w, const float* x, float* y, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float total = 0;
    for (int k = 0; k < columns; ++k) total += from_e4m3(w[row * columns + k]) * x[k];
    y[row] = total;
}

// C = A B of signed 4-bit integers, two a byte, the first in the low bits; B is given transposed.
extern "C" __global__ void int4_product(const unsigned char* a, const unsigned char* b, int* c, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    int total = 0;
    for (int i = 0; i < k / 2; ++i) {
        signed char x = a[row * (k / 2) + i], y = b[col * (k / 2) + i];
        total += static_cast<signed char>(x << 4) / 16 * (static_cast<signed char>(y << 4) / 16) + (x >> 4) * (y >> 4);
    }
    c[row * n + col] = total;
}

// Short types by value and in arrays.
extern "C" __global__ void short_types(const short* a, const unsigned short* b, const bool* mask, long long* out, short add,
                                       unsigned short times, unsigned long long large, bool on) {
    int i = threadIdx.x;
    out[i] = on && mask[i] ? (a[i] + add) * (long long)(b[i] * times) + (long long)(large >> 40) : -1;
}

// Parameters of more than 4 KiB, which lie elsewhere in the constant bank.
struct Large {
    int x[1200];
    int* out;
};

extern "C" __global__ void large_parameter(const __grid_constant__ Large p) {
    p.out[threadIdx.x] = p.x[threadIdx.x * 37] + blockDim.x;
}
