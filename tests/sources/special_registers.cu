// A special register read behind memory instructions of the same warp: what tests/records/h200_special_registers.json was measured
// with. All warps of a block take so many rounds, each of which begins at a barrier.
#define CLOCK(t) asm volatile("mov.u64 %0, %%clock64;" : "=l"(t) :: "memory")
enum { NONE, COPIES, LOADS, SHAREDS, STORES, MATRICES };
// WITH: 0 no special register, 1 it is waited for at once, 2 at the end of the round
template <int BEFORE, int N, int WITH> __global__ void rounds(const float4* g, int count, unsigned* out) {
    __shared__ __align__(128) float4 s[2048];
    int t = threadIdx.x;
    unsigned sum = 0, base = (unsigned)__cvta_generic_to_shared(s);
    long long begin, end;
    CLOCK(begin);
    for (int r = 0; r < count; r++) {
        float4 a[N > 0 ? N : 1];
        unsigned v = 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < N; i++) {
            unsigned to = base + 16 * ((t + 256 * i) & 2047);
            if (BEFORE == COPIES) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(g + t + 256 * i) : "memory");
            if (BEFORE == LOADS) asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(a[i].x), "=f"(a[i].y), "=f"(a[i].z), "=f"(a[i].w) : "l"(g + t + 256 * i) : "memory");
            if (BEFORE == SHAREDS) asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(a[i].x), "=f"(a[i].y), "=f"(a[i].z), "=f"(a[i].w) : "r"(to) : "memory");
            if (BEFORE == STORES) asm volatile("st.shared.v4.f32 [%0], {%1,%1,%1,%1};" :: "r"(to), "f"(1.f) : "memory");
            if (BEFORE == MATRICES) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=f"(a[i].x), "=f"(a[i].y), "=f"(a[i].z), "=f"(a[i].w) : "r"(to) : "memory");
        }
        if (WITH) asm volatile("mov.u32 %0, %%warpid;" : "=r"(v) :: "memory");
        if (WITH == 1) asm volatile("shf.r.wrap.b32 %0, %0, 0, 3;" : "+r"(v) :: "memory");
        if (BEFORE == COPIES) asm volatile("cp.async.wait_all;" ::: "memory");
        if (BEFORE == LOADS || BEFORE == SHAREDS || BEFORE == MATRICES)
            for (int i = 0; i < N; i++) sum += __float_as_uint(a[i].x) + __float_as_uint(a[i].y) + __float_as_uint(a[i].z) + __float_as_uint(a[i].w);
        sum += v;
    }
    CLOCK(end);
    if (t % 32 == 0) out[t / 32] = (unsigned)(end - begin);
    if (sum == 12345) out[100] = sum;
}
