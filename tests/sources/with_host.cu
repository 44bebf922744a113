// A kernel as people keep it: in one file with the host code that launches it.
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <iostream>
#include <sys/time.h>
#include <vector>

#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))
#define CHECK(call)                                                                     \
  do {                                                                                  \
    cudaError_t status = (call);                                                        \
    if (status != cudaSuccess) {                                                        \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));   \
      exit(EXIT_FAILURE);                                                               \
    }                                                                                   \
  } while (0)

using namespace std;
using Clock = std::chrono::steady_clock;
static std::vector<float> kept;
const int repeats = 10;

constexpr int half_of(int n) { return n / 2; }

struct Shape {
  uint rows, columns;
  void print() const { std::cout << rows << " x " << columns << std::endl; }
};

class Timer {
 public:
  Timer() { CHECK(cudaEventCreate(&start_)); }
  float stop() { return std::chrono::duration<float>(Clock::now() - begin_).count(); }

 private:
  cudaEvent_t start_;
  Clock::time_point begin_ = Clock::now();
};

template <int TILE>
__global__ void __launch_bounds__(TILE *TILE) tiled(Shape shape, const float *A, float *B) {
  __shared__ float tile[TILE][TILE];
  const uint column = blockIdx.x * TILE + threadIdx.x;
  const uint32_t row = blockIdx.y * TILE + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = A[std::min(row, shape.rows - 1) * shape.columns + column];
  __syncthreads();
  const float value = tile[threadIdx.x][half_of(TILE)];
  B[row * shape.columns + column] = std::max(value, 0.0f) + std::sqrt(value) + (float)M_PI;
}

static void check_blas(cublasStatus_t status, const char *file, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    std::cerr << file << ":" << line << std::endl;
    throw std::runtime_error("cuBLAS");
  }
}

template <typename T>
void fill(std::vector<T> &values, T value) {
  for (auto &one : values) one = value;
}

int main(int argc, char **argv) {
  std::vector<float> host(1024 * 1024);
  fill(host, 1.0f);
  float *a = nullptr, *b = nullptr;
  CHECK(cudaMalloc(&a, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&b, host.size() * sizeof(float)));
  CHECK(cudaMemcpy(a, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  Timer timer;
  Shape shape{1024, 1024};
  shape.print();
  for (int i = 0; i < repeats; ++i) tiled<16><<<dim3(CEIL_DIV(1024, 16), CEIL_DIV(1024, 16)), dim3(16, 16)>>>(shape, a, b);
  CHECK(cudaDeviceSynchronize());
  cublasHandle_t handle;
  check_blas(cublasCreate(&handle), __FILE__, __LINE__);
  auto seconds = [&]() { return timer.stop(); };
  printf("%f s\n", seconds());
  return argc > 1 ? EXIT_FAILURE : 0;
}
