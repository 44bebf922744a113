// Kernels that follow one another on the same arrays.

// The first pass of split-K: block z adds up its slice of K and leaves a part of its own.
extern "C" __global__ void partial(const float* A, const float* B, float* parts, int n, int slice) {
    const int T = 16;
    __shared__ float a[T][T], b[T][T];
    int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x, first = blockIdx.z * slice;
    float sum = 0.0f;
    for (int k = first; k < first + slice; k += T) {
        a[threadIdx.y][threadIdx.x] = A[row * n + k + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < T; ++i) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
        __syncthreads();
    }
    parts[(blockIdx.z * n + row) * n + column] = sum;
}

// The second pass: each thread adds the parts of one element.
extern "C" __global__ void reduce(const float* parts, float* C, int size, int slices) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int slice = 0; slice < slices; ++slice) sum += parts[slice * size + at];
    C[at] = sum;
}

// Stores where a second kernel is to read.
extern "C" __global__ void reverse(int* index, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    index[at] = n - 1 - at;
}

// Reads where the first kernel says: its addresses depend on what an array holds.
extern "C" __global__ void gather(const int* index, const float* in, float* out) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = in[index[at]];
}

// Adds one to each element, so that the number of launches can be read off.
extern "C" __global__ void increment(float* x) {
    x[blockIdx.x * blockDim.x + threadIdx.x] += 1.0f;
}

// A variable of the module: it keeps its value from launch to launch.
__device__ int launches = 5;

extern "C" __global__ void count_launches(int* out) {
    if (threadIdx.x == 0) {
        launches += 1;
        *out = launches;
    }
}

extern "C" __global__ void read_launches(int* out) {
    if (threadIdx.x == 0) out[1] = launches;
}
