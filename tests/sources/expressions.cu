// Expressions whose value CUDA C++ defines; test_expressions.py holds the same ones in Python, name by name. Each kernel
// reads one tuple of operands a thread and stores the results: out[result * threads + thread].
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define OUT(expression) out[slot++ * threads + i] = (expression)
#define START const int threads = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x; int slot = 0

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

extern "C" __global__ void integer32(const u32* in, u32* out) {
    START;
    const u32 a = in[i], b = in[threads + i], c = in[2 * threads + i];
    const int x = a, y = b, z = c, n = c & 31;
    OUT(a + b + c);
    OUT(a - b);
    OUT(a - b - c);
    OUT(-x - y);
    OUT(x * y + z);
    OUT(x * y - z);
    OUT(z - x * y);
    OUT(-(x * 24) + y);
    OUT(x * 9);
    OUT(__umulhi(a, b));
    OUT(__mulhi(x, y));
    OUT(b ? a / b : 7u);
    OUT(b ? a % b : 7u);
    OUT(y && !(x == -2147483647 - 1 && y == -1) ? x / y : 7);
    OUT(y && !(x == -2147483647 - 1 && y == -1) ? x % y : 7);
    OUT(a / 7);
    OUT(a % 10);
    OUT(x / 7);
    OUT(x % 24);
    OUT(x / 8);
    OUT(x / -5);
    OUT(a << n);
    OUT(a >> n);
    OUT(x >> n);
    OUT(__funnelshift_l(a, b, c));
    OUT(__funnelshift_r(a, b, c));
    OUT(__funnelshift_lc(a, b, c));
    OUT(__funnelshift_rc(a, b, c));
    OUT(a & b);
    OUT(a | b);
    OUT(a ^ b);
    OUT(~a & b | c);
    OUT((a & b) | (a & c) | (b & c));
    OUT(a ^ b ^ c);
    OUT((a & 0xff00) | (b & ~0xff00));
    OUT(min(x, y));
    OUT(max(x, y));
    OUT(min(a, b));
    OUT(max(a, b));
    OUT(min(max(x, y), z));
    OUT(max(x + y, z));
    OUT(min(a + b, c));
    OUT(max(min(x, y), z));
    OUT(abs(x));
    OUT(__popc(a));
    OUT(__clz(a));
    OUT(__ffs(a));
    OUT(__brev(a));
    OUT(__byte_perm(a, b, c));
    OUT(__byte_perm(a, b, 0x9d3a));
    OUT(__byte_perm(a, 0, 0x4140));
    OUT(__dp4a(x, y, z));
    OUT(__dp4a(a, b, c));
    OUT(__sad(x, y, c));
    OUT(__usad(a, b, c));
    OUT((int)(signed char)a);
    OUT((int)(short)a);
    OUT(a & 0xffff);
    OUT((x << 11) >> 15);
    OUT((a << 3) >> 7);
    OUT(__hadd(x, y));
    OUT(__rhadd(x, y));
    OUT((a + (b << 2)));
    OUT((a - (b << 5)));
    OUT((a << 4) - b);
    OUT(((u64)a << 33 >> 32) + b);
    OUT(x < y);
    OUT(a <= b);
    OUT(x > y && b != c);
    OUT((x < y) != (y < z));
    OUT(x == y ? b : c);
    OUT(a > b ? (b > c ? 1 : 2) : (b > c ? 3 : 4));
    OUT((a & 1) ? b : c);
    OUT(((a & 4) != 0) + ((b & 8) != 0) + ((c & 16) != 0));
    OUT((x < 0) | (y < 0) << 1 | (z < 0) << 2 | (x < y) << 3 | (y < z) << 4);
    OUT(a == b || b == c);
    OUT((u32)((u64)a * b >> 13));
    OUT(__mul24(x, y));
    OUT(__umul24(a, b));
    OUT(a * 0x10001u + 0xdeadbeefu);
    OUT(1u << (c & 31));
    OUT((1u << (c & 31)) - 1);
}

extern "C" __global__ void integer64(const u64* in, u64* out) {
    START;
    const u64 a = in[i], b = in[threads + i], c = in[2 * threads + i];
    const s64 x = a, y = b, z = c;
    const int n = c & 63;
    OUT(a + b);
    OUT(a - b);
    OUT(a + b + c);
    OUT(a - b - c);
    OUT(-x);
    OUT(a * b);
    OUT(a * b + c);
    OUT(__umul64hi(a, b));
    OUT(__mul64hi(x, y));
    OUT((u64)(u32)a * (u32)b);
    OUT((s64)(int)a * (int)b);
    OUT((s64)(int)a * (int)b + z);
    OUT((u64)(u32)a * (u32)b + c);
    OUT(z - (s64)(int)a * (int)b);
    OUT(b ? a / b : 7);
    OUT(b ? a % b : 7);
    OUT(y && !(x == (s64)(1ull << 63) && y == -1) ? x / y : 7);
    OUT(y && !(x == (s64)(1ull << 63) && y == -1) ? x % y : 7);
    OUT(a / 1000000007ull);
    OUT(x / 24);
    OUT(a << n);
    OUT(a >> n);
    OUT(x >> n);
    OUT(a << 7);
    OUT(a >> 39);
    OUT(x >> 33);
    OUT(a + (b << 3));
    OUT(a + (s64)(int)c * 4);
    OUT(a + (u64)(u32)c * 16);
    OUT(a - (b << 2));
    OUT(a & b);
    OUT(a | b);
    OUT(a ^ ~b);
    OUT(min(x, y));
    OUT(max(x, y));
    OUT(min(a, b));
    OUT(max(a, b));
    OUT(llabs(x));
    OUT(x < y);
    OUT(x <= y);
    OUT(x > y);
    OUT(x >= y);
    OUT(a < b);
    OUT(a <= b);
    OUT(a > b);
    OUT(a >= b);
    OUT(a == b);
    OUT(a != b);
    OUT(x < y && a > c);
    OUT(x == y || a >= c);
    OUT(x < 0 ? b : c);
    OUT(x < y ? b : c);
    OUT(__popcll(a));
    OUT(__clzll(a));
    OUT(__ffsll(a));
    OUT(__brevll(a));
    OUT((s64)(int)a);
    OUT((u64)(u32)a);
    OUT((u32)(a >> 20));
}

// Results are bit patterns.
extern "C" __global__ void single(const float* in, u32* out) {
    START;
    const float a = in[i], b = in[threads + i], c = in[2 * threads + i];
    OUT(__float_as_uint(a + b));
    OUT(__float_as_uint(a - b));
    OUT(__float_as_uint(__fmul_rn(a, b)));
    OUT(__float_as_uint(__fmaf_rn(a, b, c)));
    OUT(__float_as_uint(__fmaf_rn(-a, b, c)));
    OUT(__float_as_uint(__fmaf_rn(a, b, -c)));
    OUT(__float_as_uint(__fmaf_rn(a, 0.3f, 1.7f)));
    OUT(__float_as_uint(fabsf(a) - fabsf(b)));
    OUT(__float_as_uint(-fabsf(a)));
    OUT(__float_as_uint(fminf(a, b)));
    OUT(__float_as_uint(fmaxf(a, b)));
    OUT(__float_as_uint(fmaxf(fabsf(a), -b)));
    OUT(__float_as_uint(fmaxf(fminf(a, b), c)));
    OUT(__float_as_uint(__saturatef(a)));
    OUT(__float_as_uint(__saturatef(a * b + c)));
    OUT(__float_as_uint(a / b));
    OUT(__float_as_uint(1.f / a));
    OUT(__float_as_uint(sqrtf(a)));
    OUT(__float_as_uint(floorf(a)));
    OUT(__float_as_uint(ceilf(a)));
    OUT(__float_as_uint(truncf(a)));
    OUT(__float_as_uint(rintf(a)));
    OUT(__float_as_uint(a < b ? a : c));
    OUT(a < b);
    OUT(a <= b);
    OUT(a > b);
    OUT(a >= b);
    OUT(a == b);
    OUT(a != b);
    OUT(!(a < b));
    OUT(!(a <= b));
    OUT(!(a > b));
    OUT(!(a >= b));
    OUT(a < b && b < c);
    OUT(a < b || b != c);
    OUT(isnan(a) || isnan(b));
    OUT(isinf(a));
    OUT(signbit(a) != 0);
    OUT(__float_as_uint(copysignf(a, b)));
    OUT(__float_as_uint(__fmaf_rz(a, b, c)));
}

extern "C" __global__ void dbl(const double* in, u64* out) {
    START;
    const double a = in[i], b = in[threads + i], c = in[2 * threads + i];
    OUT(__double_as_longlong(a + b));
    OUT(__double_as_longlong(a - b));
    OUT(__double_as_longlong(__dmul_rn(a, b)));
    OUT(__double_as_longlong(__fma_rn(a, b, c)));
    OUT(__double_as_longlong(__fma_rn(-a, b, -c)));
    OUT(__double_as_longlong(__fma_rn(a, 0.75, fabs(c))));
    OUT(a < b);
    OUT(a >= b);
    OUT(a == b);
    OUT(!(a > b));
    OUT(a != b && b < c);
    OUT(__double_as_longlong(a < b ? a : c));
}

// From float32 bits, float64 is made of them.
extern "C" __global__ void conversions(const u32* in, u64* out) {
    START;
    const u32 a = in[i], b = in[threads + i];
    const float f = __uint_as_float(a);
    const u64 w = (u64)b << 32 | a;
    const double d = __longlong_as_double(w);
    OUT(__float_as_uint((float)a));
    OUT(__float_as_uint((float)(int)a));
    OUT(__float_as_uint(__uint2float_rz(a)));
    OUT(__float_as_uint(__int2float_ru((int)a)));
    OUT(__float_as_uint(__int2float_rd((int)a)));
    OUT(__float_as_uint(__ull2float_rn(w)));
    OUT(__float_as_uint(__ll2float_rn((s64)w)));
    OUT(__float_as_uint(__ull2float_ru(w)));
    OUT(__float_as_uint((float)(unsigned short)a));
    OUT(__float_as_uint((float)(signed char)(a >> 8)));
    OUT(__double_as_longlong((double)a));
    OUT(__double_as_longlong((double)(int)a));
    OUT(__double_as_longlong((double)w));
    OUT(__double_as_longlong((double)(s64)w));
    OUT((u32)__float2int_rz(f));
    OUT((u32)__float2int_rn(f));
    OUT((u32)__float2int_rd(f));
    OUT((u32)__float2int_ru(f));
    OUT(__float2uint_rz(f));
    OUT(__float2uint_rn(f));
    OUT(__float2ll_rz(f));
    OUT(__float2ull_rz(f));
    OUT((u32)__double2int_rz(d));
    OUT(__double2uint_rn(d));
    OUT(__double2ll_rz(d));
    OUT(__double2ull_rd(d));
    OUT(__float_as_uint((float)d));
    OUT(__double_as_longlong((double)f));
    OUT((u32)__half_as_ushort(__float2half_rn(f)));
    OUT(__float_as_uint(__half2float(__ushort_as_half((unsigned short)a))));
    OUT(__float_as_uint(__half2float(__ushort_as_half((unsigned short)(a >> 16)))));
    OUT((u32)__bfloat16_as_ushort(__float2bfloat16_rn(f)));
    OUT(__float_as_uint(__bfloat162float(__ushort_as_bfloat16((unsigned short)a))));
    OUT((u32)__half_as_ushort(__int2half_rn((int)a)));
    OUT((u32)__half2int_rn(__ushort_as_half((unsigned short)a)));
}

extern "C" __global__ void halves(const u32* in, u32* out) {
    START;
    const u32 a = in[i], b = in[threads + i], c = in[2 * threads + i];
    const __half2 x = *(const __half2*)&a, y = *(const __half2*)&b, z = *(const __half2*)&c;
    __half2 r;
    __half s;
    r = __hadd2_rn(x, y); OUT(*(u32*)&r);
    r = __hsub2(x, y); OUT(*(u32*)&r);
    r = __hmul2_rn(x, y); OUT(*(u32*)&r);
    r = __hfma2(x, y, z); OUT(*(u32*)&r);
    r = __hfma2(__low2half2(x), y, z); OUT(*(u32*)&r);
    r = __hfma2(__high2half2(x), y, __hneg2(z)); OUT(*(u32*)&r);
    r = __hfma2(x, __lowhigh2highlow(y), z); OUT(*(u32*)&r);
    r = __hadd2_rn(x, __floats2half2_rn(0.25f, -3.f)); OUT(*(u32*)&r);
    s = __hfma(__low2half(x), __high2half(y), __low2half(z)); OUT((u32)*(unsigned short*)&s);
    s = __hadd_rn(__high2half(x), __low2half(y)); OUT((u32)*(unsigned short*)&s);
    OUT(__hlt(__low2half(x), __low2half(y)));
    OUT(__hge(__high2half(x), __low2half(y)));
    OUT(__hequ(__high2half(x), __high2half(y)));
#if __CUDA_ARCH__ >= 800
    const __nv_bfloat162 p = *(const __nv_bfloat162*)&a, q = *(const __nv_bfloat162*)&b, w = *(const __nv_bfloat162*)&c;
    __nv_bfloat162 t;
    r = __hmax2(x, y); OUT(*(u32*)&r);
    r = __hmin2(x, y); OUT(*(u32*)&r);
    t = __hadd2_rn(p, q); OUT(*(u32*)&t);
    t = __hmul2_rn(p, q); OUT(*(u32*)&t);
    t = __hfma2(p, q, w); OUT(*(u32*)&t);
#endif
}

// Blocks of one warp.
extern "C" __global__ void warp(const u32* in, u32* out) {
    START;
    const u32 a = in[i], b = in[threads + i], all = 0xffffffff;
    const int lane = threadIdx.x;
    OUT(__shfl_sync(all, a, b));
    OUT(__shfl_sync(all, a, 5));
    OUT(__shfl_sync(all, a, b, 8));
    OUT(__shfl_up_sync(all, a, 3));
    OUT(__shfl_up_sync(all, a, b & 31, 16));
    OUT(__shfl_down_sync(all, a, 7));
    OUT(__shfl_down_sync(all, a, b & 31, 4));
    OUT(__shfl_xor_sync(all, a, 9));
    OUT(__shfl_xor_sync(all, a, b & 31, 8));
    OUT(__ballot_sync(all, a & 1));
    OUT(__any_sync(all, a > b));
    OUT(__all_sync(all, a > 3));
    OUT(__uni_sync(all, a & 1));
    OUT(__match_any_sync(all, b & 3));
    int same;
    OUT(__match_all_sync(all, b & 3, &same));
    OUT(same);
    OUT(lane % 3 == 0 ? __ballot_sync(0x49249249, a & 2) : __ballot_sync(~0x49249249, a & 4));
    if (lane < 10) {
        OUT(__activemask());
    } else {
        OUT(__activemask() ^ 1);
    }
    OUT(__popc(__ballot_sync(all, a & 1) & ((1u << lane) - 1)));
#if __CUDA_ARCH__ >= 800
    OUT(__reduce_add_sync(all, a));
    OUT(__reduce_min_sync(all, a));
    OUT(__reduce_max_sync(all, (int)a));
    OUT(__reduce_and_sync(all, a));
    OUT(__reduce_or_sync(all, a & b));
    OUT(__reduce_xor_sync(all, a));
#endif
}

// Shared and global memory of every width; blocks of 64 threads. `bytes` is a scratch array of 64 bytes a thread.
__constant__ u32 table[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5};
extern "C" __global__ void memory(const u32* in, u32* out, unsigned char* bytes) {
    __shared__ __align__(16) unsigned char tile[64 * 20];
    START;
    const u32 a = in[i], b = in[threads + i], c = in[2 * threads + i];
    const int t = threadIdx.x, u = (t * 13 + 5) % 64;
    tile[t] = a;
    __syncthreads();
    OUT(tile[u]);
    OUT((u32)(int)((signed char*)tile)[u]);
    __syncthreads();
    ((unsigned short*)tile)[t] = b;
    __syncthreads();
    OUT(((unsigned short*)tile)[u]);
    OUT((u32)(int)((short*)tile)[u]);
    __syncthreads();
    ((uint2*)tile)[t] = make_uint2(a, b);
    __syncthreads();
    OUT(((uint2*)tile)[u].y);
    OUT(((u32*)tile)[2 * u]);
    __syncthreads();
    ((uint4*)tile)[t] = make_uint4(a, b, c, a ^ c);
    __syncthreads();
    uint4 v = ((uint4*)tile)[u];
    OUT(v.x + 3 * v.y + 5 * v.z + 7 * v.w);
    unsigned char* mine = bytes + 64 * i;
    mine[0] = a, mine[1] = b;
    *(unsigned short*)(mine + 2) = c;
    *(uint2*)(mine + 8) = make_uint2(b, c);
    *(uint4*)(mine + 16) = make_uint4(c, a, b, b + c);
    __syncthreads();
    const unsigned char* other = bytes + 64 * (i / 64 * 64 + u);
    OUT(other[0]);
    OUT((u32)(int)((const signed char*)other)[1]);
    OUT((u32)(int)*(const short*)(other + 2));
    OUT(*(const u32*)other);
    OUT(((const uint2*)(other + 8))->y);
    uint4 w = *(const uint4*)(other + 16);
    OUT(w.x + 3 * w.y + 5 * w.z + 7 * w.w);
    OUT(table[a & 31]);
    OUT(table[blockIdx.x & 31]);
    u32 stack[16];
    for (int k = 0; k < 16; k++) stack[k] = a * k + b;
    for (u32 k = 0; k < (c & 15); k++) stack[(k * 5 + a) & 15] ^= stack[(k + b) & 15];
    OUT(stack[c & 15]);
    const u32* choice = (c & 1) ? (const u32*)tile + t : stack + (a & 15);
    OUT(*choice);
    const u32* generic = (c & 2) ? (const u32*)tile + u : in + i;
    OUT(*generic);
    unsigned char small[24];
    for (int k = 0; k < 24; k++) small[k] = a >> (k & 7);
    OUT(small[b % 24]);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(in));
}

// One address for all threads, or one for a few. `cells` are zero before.
extern "C" __global__ void atomics(const u32* in, u32* out, u32* cells, u64* wide, float* floats, double* doubles) {
    __shared__ u32 near[16];
    __shared__ u64 near_wide[4];
    __shared__ float near_float;
    START;
    const u32 a = in[i], b = in[threads + i];
    const int t = threadIdx.x;
    if (t < 16) near[t] = 0;
    if (t < 4) near_wide[t] = 0;
    if (t == 0) near_float = 0;
    __syncthreads();
    atomicAdd(cells, a);
    atomicAdd(cells + 1 + (a & 3), 1);
    atomicMax(cells + 5, a);
    atomicMin((int*)cells + 6, (int)a);
    atomicAnd(cells + 7, ~a);
    atomicOr(cells + 8, a);
    atomicXor(cells + 9, a);
    atomicSub(cells + 10, b);
    atomicMax((int*)cells + 11, (int)b);
    atomicMin(cells + 12, b);
    OUT(atomicAdd(cells + 13, 1) < (u32)threads);
    OUT(atomicExch(cells + 64 + i, a));
    OUT(atomicCAS(cells + 64 + i, a, b));
    OUT(atomicCAS(cells + 64 + i, b + 1, a));
    OUT(atomicInc(cells + 14, 1000000) < (u32)threads);
    atomicDec(cells + 15, 5);
    OUT(atomicAdd(cells + 16 + t % 2, 2) % 2);
    atomicAdd(wide, (u64)a << 20);
    atomicMax(wide + 1, (u64)a << 20 | b);
    OUT((u32)atomicCAS(wide + 8 + i, 0, (u64)a << 32 | b));
    OUT((u32)(atomicExch(wide + 8 + i, 7) >> 32));
    OUT((u32)atomicAdd(wide + 8 + i, a));
    atomicAdd(floats + t % 4, 1.f);
    OUT((u32)atomicAdd(floats + 8 + i, (float)(a & 255)));
    atomicAdd(doubles + t % 4, 0.5);
    atomicAdd(near, a);
    atomicAdd(near + 1, 1);
    atomicMax(near + 2, a);
    atomicMin((int*)near + 3, (int)a);
    atomicOr(near + 4, a);
    atomicXor(near + 5, b);
    atomicInc(near + 6, 20);
    OUT(atomicAdd(near + 8, 1) < blockDim.x);
    OUT(atomicExch(near + 9, t) < blockDim.x);
    atomicCAS(near + 10, 0, 77);
    atomicAdd(near_wide, (u64)a << 8);
    atomicMax((s64*)near_wide + 1, (s64)((u64)b << 32 | a));
    atomicAdd(&near_float, 2.f);
    __syncthreads();
    OUT(near[t % 7]);
    OUT(near[8]);
    OUT(near[10]);
    OUT((u32)(near_wide[0] >> 16));
    OUT((u32)(near_wide[1] >> 32));
    OUT((u32)near_float);
}

__device__ __noinline__ u32 collatz(u32 n, u32 limit) {
    u32 steps = 0;
    while (n != 1 && steps < limit) n = n % 2 ? 3 * n + 1 : n / 2, steps++;
    return steps;
}

__device__ __noinline__ u32 ackermann(u32 m, u32 n) {
    if (m == 0) return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

__device__ u32 twice(u32 x) { return 2 * x; }
__device__ u32 plus_five(u32 x) { return x + 5; }

extern "C" __global__ void control(const u32* in, u32* out) {
    START;
    const u32 a = in[i], b = in[threads + i], c = in[2 * threads + i];
    OUT(collatz((a & 1023) + 1, 200));
    OUT(ackermann(a & 1, b & 3));
    u32 r = 0;
    switch (a % 11) {
        case 0: r = b + c; break;
        case 1: r = b * c; break;
        case 2: r = b ^ c; r += __popc(b);
        case 3: r += b & ~c; break;
        case 4: r = collatz((b & 127) + 1, 50); break;
        case 5: r = __clz(c); break;
        case 6: for (u32 k = 0; k < (c & 7); k++) r += b >> k; break;
        case 7: r = b - c; break;
        case 8: r = b / (c | 1); break;
        case 9: r = b | c; break;
        default: r = 99;
    }
    OUT(r);
    r = 0;
    for (u32 k = a & 7; k < 20; k++) {
        if (k == (b & 15)) continue;
        for (u32 l = 0; l < k; l++) {
            if (l * k > (c & 63)) break;
            r += l ^ k;
            if (r > 500) goto done;
        }
    }
done:
    OUT(r);
    u32 (*function)(u32) = (a & 1) ? twice : plus_five;
    OUT(function(b));
    __syncthreads();
    OUT(__syncthreads_count(a & 1));
    OUT(__syncthreads_and(a != 1));
    OUT(__syncthreads_or(a == 12345));
    if (threadIdx.x >= blockDim.x - 5) {
        out[slot * threads + i] = 1;
        return;
    }
    OUT(2);
    __syncwarp(__activemask());
    asm volatile("bar.sync 1;");
    OUT(blockIdx.x + gridDim.x + threadIdx.x * blockDim.x);
}
