// Loops of which iterations can be left out, and loops of which they cannot. Each has 64 threads a block.

// Steady: rows of an array, one after the other.
extern "C" __global__ void rows(const float *a, float *c, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) sum += a[i * 64 + threadIdx.x];
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// Steady, without accesses; it ends where its counter is equal to a number.
extern "C" __global__ void sums(float *c, int n, float x) {
    float sum = threadIdx.x;
#pragma unroll 1
    for (int i = n; i != 0; i--) sum = sum * x + 1.0f;
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// A rare iteration does more.
extern "C" __global__ void rare(const float *a, float *c, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        sum += a[i * 64 + threadIdx.x];
        if (i % 2048 == 1500) c[threadIdx.x] = sum;
    }
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// One iteration does more, which is another one in each block.
extern "C" __global__ void meets(const float *a, float *c, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        sum += a[i * 64 + threadIdx.x];
        if (i + (int)blockIdx.x * 7 == 15000) c[threadIdx.x] = sum;
    }
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// One iteration does more, the same one in each block.
extern "C" __global__ void once(const float *a, float *c, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        sum += a[i * 64 + threadIdx.x];
        if (i == 15000) c[threadIdx.x] = sum;
    }
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// What is loaded decides where the next load is.
extern "C" __global__ void chain(const int *a, int *c, int n) {
    int place = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < n; i++) place = a[place];
    c[blockIdx.x * 64 + threadIdx.x] = place;
}

// The same place again and again.
extern "C" __global__ void ring(const float *a, float *c, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) sum += a[(i & 255) * 64 + threadIdx.x];
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// Blocks run for different numbers of iterations.
extern "C" __global__ void stairs(const float *a, float *c, int n) {
    float sum = 0;
    int last = n - (int)blockIdx.x * 16;
#pragma unroll 1
    for (int i = 0; i < last; i++) sum += a[i * 64 + threadIdx.x];
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// Two places that come round after 256 and after 512 iterations, from another one on in each block.
extern "C" __global__ void rings(const float *a, float *c, int n) {
    float sum = 0;
    int begin = blockIdx.x * 5;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        sum += a[(i & 255) * 64 + threadIdx.x];
        sum += a[((i + begin) * 2 & 1023) * 16 + threadIdx.x];
    }
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// An index that is shifted to the right, of which the low bits are not known; another one in each block.
extern "C" __global__ void shifts(const float *a, float *c, int n, int low) {
    float sum = 0;
    int place = (int)blockIdx.x * 4 + low;
#pragma unroll 1
    for (int i = 0; i < n - 400; i++) {
        asm volatile("" : "+r"(place));  // else the compiler shifts before the loop
        sum += a[(place >> 3) * 65 + threadIdx.x];
        place += 8;
    }
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// Places that come round after 100 iterations, which is no power of two.
extern "C" __global__ void hundreds(const float *a, float *c, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) sum += a[i % 100 * 64 + threadIdx.x];
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}

// The same of a counter without a sign, from another place on in each block.
extern "C" __global__ void dozens(const float *a, float *c, unsigned n) {
    float sum = 0;
#pragma unroll 1
    for (unsigned i = 0; i < n; i++) sum += a[(i + blockIdx.x * 7) % 12 * 64 + threadIdx.x];
    c[blockIdx.x * 64 + threadIdx.x] = sum;
}
