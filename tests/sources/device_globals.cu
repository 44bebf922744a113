// Variables of the module in all their forms, indirect calls, and calls of the device runtime.
typedef float (*Function)(float);
__device__ float bias[8] = {1.5f, 2.5f, -1.0f};
__device__ int counter;
__device__ double sums[4];
__device__ float* first = bias;
__device__ float* const tables[2] = {bias + 1, bias};
__constant__ float factors[4] = {3.0f, 5.0f, 7.0f, 11.0f};
__constant__ float* constant_tables[2] = {bias + 2, bias};
__constant__ int scale;

extern "C" __global__ void variables(float* out, int n) {
    int i = threadIdx.x;
    out[i] = bias[i & 1] + 10.0f * factors[i & 3] + 100.0f * *first + 1000.0f * tables[n & 1][i & 1] +
             10000.0f * constant_tables[n & 1][0] + 1e6f * scale;
    atomicAdd(&counter, 1);
    if (i < 4) sums[i] += i + 0.5;
}

__device__ __noinline__ float total(const float* values, int n) {
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += values[i];
    return sum;
}

extern "C" __global__ void pointers(float* out, int n) {
    __shared__ float tile[32];
    float own[4] = {1.0f, 2.0f, 3.0f, out[threadIdx.x]};
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const float* where = n == 0 ? factors : n == 1 ? tile : n == 2 ? own : bias;
    out[threadIdx.x] = total(where, 4);
}

__device__ __noinline__ float twice_and_one(float x) { return 2.0f * x + 1.0f; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ Function functions[2] = {twice_and_one, square};
__constant__ Function constant_functions[2] = {square, twice_and_one};

extern "C" __global__ void calls(float* out, int n) {
    int i = threadIdx.x;
    out[i] = functions[(i + n) & 1](i) + 1000.0f * constant_functions[n & 1](i);
}

__device__ Function missing;
extern "C" __global__ void stray_call(float* out, int n) { out[0] = (n ? missing : functions[0])(1.0f); }

struct Shape {
    __device__ virtual float area() const { return 0.0f; }
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Bar : Shape {
    float length;
    __device__ explicit Bar(float l) : length(l) {}
    __device__ float area() const override { return 0.5f * length; }
};

extern "C" __global__ void virtual_calls(float* out, int n) {
    Square square(threadIdx.x);
    Bar bar(threadIdx.x);
    const Shape* shape = (threadIdx.x + n) & 1 ? static_cast<const Shape*>(&square) : &bar;
    out[threadIdx.x] = shape->area();
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void recursion(float* out, int n) { out[threadIdx.x] = fibonacci(threadIdx.x % n); }

__device__ __noinline__ int depth(int n) { return n == 0 ? 0 : 1 + depth(n - 1) + (n < 0); }
extern "C" __global__ void deep(float* out, int n) { out[threadIdx.x] = depth(n); }

extern "C" __global__ void asserted(float* out, int n) {
    assert(n < 100 && "too large");
    out[threadIdx.x] *= 2.0f;
}

extern "C" __global__ void printed(float* out, int n) {
    int i = threadIdx.x;
    if (i < n) printf("thread %d: %.2f %s|%5u|%lld%%\n", i, out[i], "text", 7u, 1ll << 40);
    out[i] *= 2.0f;
}

extern "C" __global__ void printed_much(float* out, int n) {
    for (int i = 0; i < n; ++i) printf("%1000d\n", i);
}

extern "C" __global__ void allocated(float* out, int n) {
    float* memory = static_cast<float*>(malloc(4 * n));
    out[threadIdx.x] = memory[threadIdx.x];
    free(memory);
}
