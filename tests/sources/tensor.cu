// One warp, each matrix instruction once: a lane's registers come from and go to consecutive words.

#define MMA4(text, out, letter, a, b, c) \
    asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" \
        : "=" letter(out[0]), "=" letter(out[1]), "=" letter(out[2]), "=" letter(out[3]) \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), \
          letter(c[0]), letter(c[1]), letter(c[2]), letter(c[3]))
#define MMA2(text, out, letter, a, b, c) \
    asm volatile("mma.sync.aligned." text " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};" \
        : "=" letter(out[0]), "=" letter(out[1]), "=" letter(out[2]), "=" letter(out[3]) \
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), letter(c[0]), letter(c[1]), letter(c[2]), letter(c[3]))

// a [forms, 32, 4], b [forms, 32, 2], c and d [forms, 32, 4] words
extern "C" __global__ void multiply(const unsigned *all_a, const unsigned *all_b, const unsigned *all_c, unsigned *all_d) {
    int form = 0;
#define NEXT(type) \
    const unsigned *a = all_a + form * 128 + threadIdx.x * 4, *b = all_b + form * 64 + threadIdx.x * 2; \
    const type *c = (const type *)all_c + form * 128 + threadIdx.x * 4; \
    type *d = (type *)all_d + form * 128 + threadIdx.x * 4; \
    form++
    { NEXT(float); MMA4("m16n8k16.row.col.f32.f16.f16.f32", d, "f", a, b, c); }
    { NEXT(float); MMA4("m16n8k16.row.col.f32.bf16.bf16.f32", d, "f", a, b, c); }
    { NEXT(float); MMA4("m16n8k8.row.col.f32.tf32.tf32.f32", d, "f", a, b, c); }
    { NEXT(int); MMA4("m16n8k32.row.col.s32.s8.s8.s32", d, "r", a, b, c); }
    { NEXT(int); MMA4("m16n8k32.row.col.satfinite.s32.u8.s8.s32", d, "r", a, b, c); }
    { NEXT(float); MMA2("m16n8k8.row.col.f32.f16.f16.f32", d, "f", a, b, c); }
    { NEXT(float); MMA2("m16n8k8.row.col.f32.bf16.bf16.f32", d, "f", a, b, c); }
    { NEXT(float); MMA2("m16n8k4.row.col.f32.tf32.tf32.f32", d, "f", a, b, c); }
    { NEXT(int); MMA2("m16n8k16.row.col.s32.s8.s8.s32", d, "r", a, b, c); }
}

// a [32], b [32], c and d [32, 2]
extern "C" __global__ void multiply_double(const double *a, const double *b, const double *c, double *d) {
    int t = threadIdx.x;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
        : "=d"(d[2 * t]), "=d"(d[2 * t + 1]) : "d"(a[t]), "d"(b[t]), "d"(c[2 * t]), "d"(c[2 * t + 1]));
}

#if __CUDA_ARCH__ >= 900
// a [32, 8], b [32, 4], c and d [32, 4]
extern "C" __global__ void multiply_double_16(const double *all_a, const double *all_b, const double *all_c, double *all_d) {
    const double *a = all_a + threadIdx.x * 8, *b = all_b + threadIdx.x * 4, *c = all_c + threadIdx.x * 4;
    double *d = all_d + threadIdx.x * 4;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%16,%17,%18,%19};"
        : "=d"(d[0]), "=d"(d[1]), "=d"(d[2]), "=d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
          "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]), "d"(c[0]), "d"(c[1]), "d"(c[2]), "d"(c[3]));
}
#endif

// memory [1024] halves, row [32] byte offset that each lane gives; out [32, 14]: x1, x2, x4, then the same transposed.
extern "C" __global__ void load(const unsigned short *memory, const unsigned *row, unsigned *out) {
    __shared__ __align__(128) unsigned short tile[1024];
    for (int i = threadIdx.x; i < 1024; i += 32) tile[i] = memory[i];
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(tile) + row[threadIdx.x];
    unsigned *o = out + threadIdx.x * 14;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(o[0]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(o[1]), "=r"(o[2]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(o[3]), "=r"(o[4]), "=r"(o[5]), "=r"(o[6]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(o[7]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(o[8]), "=r"(o[9]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(o[10]), "=r"(o[11]), "=r"(o[12]), "=r"(o[13]) : "r"(at));
}
