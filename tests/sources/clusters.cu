// Kernels whose blocks form thread block clusters. The cluster is given at launch, so that one kernel serves many sizes.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ unsigned block_number() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

#define READ(name) asm volatile("mov.u32 %0, " name ";" : "=r"(value[n++]))

// What PTX's special registers say of the cluster: 15 words for each block.
extern "C" __global__ void numbers(unsigned* out) {
    unsigned value[15], n = 0;
    READ("%cluster_ctaid.x"); READ("%cluster_ctaid.y"); READ("%cluster_ctaid.z");
    READ("%cluster_nctaid.x"); READ("%cluster_nctaid.y"); READ("%cluster_nctaid.z");
    READ("%clusterid.x"); READ("%clusterid.y"); READ("%clusterid.z");
    READ("%nclusterid.x"); READ("%nclusterid.y"); READ("%nclusterid.z");
    READ("%cluster_ctarank"); READ("%cluster_nctarank");
    asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(value[14]));
    for (int i = 0; i < 15; ++i) out[block_number() * 15 + i] = value[i];
}

// The same from a kernel that names its cluster.
extern "C" __global__ void __cluster_dims__(2, 2, 1) compiled_in(unsigned* out) {
    out[block_number()] = cg::this_cluster().block_rank() + 100 * cg::this_cluster().num_blocks();
}

// At most four blocks may form a cluster.
extern "C" __global__ void __launch_bounds__(256, 1, 4) bounded(unsigned* out) { out[block_number()] = 1; }

// Block b of the grid sums x[b * blockDim.x ...]; the first block of each cluster adds up what the others hold.
extern "C" __global__ void reduce(const float* x, float* sums) {
    __shared__ float partial;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) partial = 0;
    __syncthreads();
    atomicAdd(&partial, x[blockIdx.x * blockDim.x + threadIdx.x]);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        float sum = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) sum += *cluster.map_shared_rank(&partial, rank);
        sums[blockIdx.x / cluster.num_blocks()] = sum;
    }
    cluster.sync();  // the others stay until their sums have been read
}

// y[i] = x[i - 1] + x[i] + x[i + 1] inside each cluster's part of x, a ring. Edges come from the neighbours' memory.
extern "C" __global__ void halo(const float* x, float* y) {
    __shared__ float own[64];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), blocks = cluster.num_blocks(), i = threadIdx.x;
    unsigned at = blockIdx.x * 64 + i;
    own[i] = x[at];
    cluster.sync();
    const float* before = cluster.map_shared_rank(own, (rank + blocks - 1) % blocks);
    const float* after = cluster.map_shared_rank(own, (rank + 1) % blocks);
    float left = i == 0 ? before[63] : own[i - 1];
    float right = i == 63 ? after[0] : own[i + 1];
    y[at] = left + own[i] + right;
    cluster.sync();
}

// Each cluster of four transposes a tile of 128 x 128: a block loads 32 rows and stores them, transposed, to all four.
// The grid is (4 * tiles, tiles) and the cluster (4, 1): tile (cx, cy) goes to tile (cy, cx) of a square matrix.
extern "C" __global__ void transposed(const float* a, float* b, int n) {
    __shared__ float columns[32][132];  // 32 columns of the tile: columns[c][r] is element (r, 32 * rank + c)
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), tile = blockIdx.x / 4;
    for (unsigned r = threadIdx.y; r < 32; r += blockDim.y) {
        for (unsigned part = 0; part < 4; ++part) {
            float* there = cluster.map_shared_rank(&columns[0][0], part);
            there[threadIdx.x * 132 + 32 * rank + r] =
                a[(blockIdx.y * 128 + 32 * rank + r) * n + tile * 128 + 32 * part + threadIdx.x];
        }
    }
    cluster.sync();
    for (unsigned c = threadIdx.y; c < 32; c += blockDim.y)
        for (unsigned part = 0; part < 4; ++part)
            b[(tile * 128 + 32 * rank + c) * n + blockIdx.y * 128 + 32 * part + threadIdx.x] =
                columns[c][32 * part + threadIdx.x];
}

// A histogram of `bins` values that is spread over the shared memory of the cluster's blocks.
extern "C" __global__ void histogram(const int* x, int* counts, int bins, int n) {
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();
    int each = bins / cluster.num_blocks();
    for (int i = threadIdx.x; i < each; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(cluster.map_shared_rank(own, x[i] / each) + x[i] % each, 1);
    cluster.sync();
    int* mine = counts + cluster.block_rank() * each;
    for (int i = threadIdx.x; i < each; i += blockDim.x) atomicAdd(mine + i, own[i]);
}

// A value goes round the ring of blocks `rounds` times, a step at each barrier; each block adds its rank + 1 to it.
// The barrier is split, arrive and wait; each thread does its own part, and the buffer alternates.
extern "C" __global__ void ring(unsigned* out, int rounds) {
    __shared__ unsigned box[2][32];
    unsigned rank, blocks, here = (unsigned)__cvta_generic_to_shared(&box[0][threadIdx.x]), there;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"((rank + 1) % blocks));
    box[0][threadIdx.x] = threadIdx.x;
    asm volatile("barrier.cluster.arrive.relaxed;\n\tbarrier.cluster.wait;" ::: "memory");
    for (int i = 0; i < rounds; ++i) {
        unsigned value = box[i & 1][threadIdx.x] + rank + 1;
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there + 128 * ((i + 1) & 1)), "r"(value) : "memory");
        asm volatile("barrier.cluster.arrive.release;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    }
    out[blockIdx.x * 32 + threadIdx.x] = box[rounds & 1][threadIdx.x];
}

// Reads, writes and combines in the memory of block `target` by PTX: 32 threads, six words for each.
extern "C" __global__ void instructions(unsigned* out, unsigned target) {
    __shared__ __align__(16) unsigned box[128];
    unsigned here = (unsigned)__cvta_generic_to_shared(box), there, rank, owner, owner64;
    unsigned long long far;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    for (int i = 0; i < 4; ++i) box[32 * i + threadIdx.x] = 1000 * rank + 32 * i + threadIdx.x;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(target));
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(far) : "l"(box), "r"(target));
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(owner) : "r"(there));
    asm volatile("getctarank.u64 %0, %1;" : "=r"(owner64) : "l"(far));
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    uint4 four;
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w) : "r"(there + 16 * (threadIdx.x & 7)));
    unsigned generic = reinterpret_cast<unsigned*>(far)[64 + threadIdx.x];
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    unsigned old;
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(old) : "r"(there + 4 * 100) : "memory");
    asm volatile("red.shared::cluster.max.u32 [%0], %1;" ::"r"(there + 4 * 101), "r"(5000 + rank) : "memory");
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    unsigned* mine = out + (blockIdx.x * 32 + threadIdx.x) * 6;
    mine[0] = four.x + four.y + four.z + four.w + (old == 77);
    mine[1] = generic;
    mine[2] = owner;
    mine[3] = owner64;
    mine[4] = box[100];
    mine[5] = box[101];
}

// What isspacep says of a pointer to the block's own shared memory, to another block's, and to global memory.
extern "C" __global__ void spaces(unsigned* out, unsigned target) {
    __shared__ unsigned box[32];
    unsigned long long far;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(far) : "l"(box), "r"(target));
    unsigned long long at[3] = {(unsigned long long)box, far, (unsigned long long)out};
    if (threadIdx.x == 0)
        for (int i = 0; i < 3; ++i) {
            unsigned cta, cluster;
            asm volatile("{ .reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(cta) : "l"(at[i]));
            asm volatile("{ .reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p; }"
                         : "=r"(cluster) : "l"(at[i]));
            out[blockIdx.x * 6 + 2 * i] = cta;
            out[blockIdx.x * 6 + 2 * i + 1] = cluster;
        }
    box[threadIdx.x] = 0;
}

// C = A B, a tile of 16 x 16 a block. The two blocks of a cluster lie in one row of tiles and need the same tile of A:
// each loads half of its rows and reads the other half from its neighbour. n must be a multiple of 32.
extern "C" __global__ void shared_gemm(const float* a, const float* b, float* c, int n) {
    __shared__ float rows[8][16], columns[16][16];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), x = threadIdx.x, y = threadIdx.y;
    unsigned row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    const float* holds = cluster.map_shared_rank(&rows[0][0], y / 8) + (y % 8) * 16;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        if (y < 8) rows[y][x] = a[(blockIdx.y * 16 + 8 * rank + y) * n + k + x];
        columns[y][x] = b[(k + y) * n + column];
        cluster.sync();
        for (int i = 0; i < 16; ++i) sum += holds[i] * columns[i][x];
        cluster.sync();
    }
    c[row * n + column] = sum;
}

// A cluster whose blocks do not touch each other: y = 2 x, and the cluster's number tells which part.
extern "C" __global__ void apart(const float* x, float* y) {
    cg::cluster_group cluster = cg::this_cluster();
    unsigned first = (blockIdx.x / cluster.num_blocks() * cluster.num_blocks() + cluster.block_rank()) * blockDim.x;
    y[first + threadIdx.x] = 2 * x[first + threadIdx.x];
}

// Block 0 waits for a flag in its own memory that block 1 sets through the cluster.
extern "C" __global__ void flagged(unsigned* out, int sets) {
    __shared__ volatile unsigned flag;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) flag = 0;
    cluster.sync();
    if (cluster.block_rank() == 1 && threadIdx.x == 0 && sets)
        *cluster.map_shared_rank(const_cast<unsigned*>(&flag), 0) = 7;
    if (cluster.block_rank() == 0 && threadIdx.x == 0)
        while (flag == 0) {}  // [flagged:wait]
    out[blockIdx.x * blockDim.x + threadIdx.x] = flag;
    cluster.sync();
}

// Block 0 waits for the whole cluster, while a warp of block 1 waits for the others of its block, which are gone on.
extern "C" __global__ void crossed(unsigned* out) {
    if (blockIdx.x % 2 == 1 && threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory");  // [crossed:block]
    } else {
        asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");  // [crossed:cluster]
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

// Block 1 ends at once; block 0 goes on alone and then reads what was block 1's memory, if `reads`.
extern "C" __global__ void left(unsigned* out, int reads) {
    __shared__ unsigned box[32];
    cg::cluster_group cluster = cg::this_cluster();
    box[threadIdx.x] = 40 + cluster.block_rank();
    cluster.sync();
    if (cluster.block_rank() == 1) return;
    cluster.sync();  // those that have ended are not waited for
    out[threadIdx.x] = reads ? cluster.map_shared_rank(box, 1)[threadIdx.x] : box[threadIdx.x];  // [left:read]
}

// Each thread stores to the next block's memory and arrives at its mbarrier, which expects `expected` threads.
extern "C" __global__ void arrivals(unsigned* out, int expected) {
    __shared__ unsigned box[32];
    __shared__ __align__(8) unsigned long long barrier;
    unsigned here = (unsigned)__cvta_generic_to_shared(&box[threadIdx.x]), there, far, rank, blocks, done = 0;
    unsigned near = (unsigned)__cvta_generic_to_shared(&barrier);
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(near), "r"(expected) : "memory");
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"((rank + 1) % blocks));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(near), "r"((rank + 1) % blocks));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(100 * rank + threadIdx.x) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(far) : "memory");
    while (!done)  // [arrivals:wait]
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(near)
                     : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = box[threadIdx.x];
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}

// Block 1 arrives at the mbarrier of block 0, which ends when it has arrived at the cluster's barrier.
extern "C" __global__ void late(unsigned* out) {
    __shared__ __align__(8) unsigned long long barrier;
    unsigned near = (unsigned)__cvta_generic_to_shared(&barrier), far, rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(near) : "memory");
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(far) : "r"(near));
    out[blockIdx.x * 32 + threadIdx.x] = rank + 5;
    if (rank == 0) return;
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(far) : "memory");  // [late:arrive]
}

// Programmatic dependent launch: there is no other kernel to wait for.
extern "C" __global__ void dependents(unsigned* out) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[blockIdx.x * blockDim.x + threadIdx.x] = 7;
}

// Each block sends numbers to the next one's memory, whose mbarrier waits for their bytes.
extern "C" __global__ void sends(unsigned* out) {
    __shared__ unsigned box[32];
    __shared__ __align__(8) unsigned long long barrier;
    unsigned here = (unsigned)__cvta_generic_to_shared(&box[threadIdx.x]), there, far, rank, blocks, done = 0;
    unsigned near = (unsigned)__cvta_generic_to_shared(&barrier);
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(near) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(near) : "memory");
    }
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"((rank + 1) % blocks));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(near), "r"((rank + 1) % blocks));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(there),
                 "r"(100 * rank + threadIdx.x), "r"(far)
                 : "memory");
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(near)
                     : "memory");
    out[blockIdx.x * 32 + threadIdx.x] = box[threadIdx.x];
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}
