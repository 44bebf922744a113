// Kernels of which accesses from one shared array into the next cannot all be looked for, and one of which they can.

struct Tiles {
    float a[64];
    float b[64];
};

#define KERNEL extern "C" __global__ void

KERNEL two_arrays(const float* x, float* y) {
    __shared__ float a[64], b[64];
    const int t = threadIdx.x;
    a[t] = x[t];
    b[t] = x[t + 64];
    __syncthreads();
    y[t] = a[63 - t] + b[63 - t];
}

KERNEL no_room(const float* x, float* y) {
    __shared__ float a[6144], b[6140];
    const int t = threadIdx.x;
    a[t] = x[t];
    b[t] = x[t + 64];
    __syncthreads();
    y[t] = a[63 - t] + b[63 - t];
}

KERNEL dynamic(const float* x, float* y) {
    extern __shared__ float whole[];
    const int t = threadIdx.x;
    whole[t] = x[t];
    __syncthreads();
    y[t] = whole[63 - t];
}

KERNEL none(const float* x, float* y) {
    y[threadIdx.x] = x[threadIdx.x];
}
