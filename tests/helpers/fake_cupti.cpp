// Stands for libcuda.so.1 and libcupti.so, and for a program that uses them: it calls the capture library back as CUPTI
// does for a module, two distinct launches of which one is repeated, and a graph.
#include <cupti.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static CUpti_CallbackFunc callback;
static CUpti_BuffersCallbackCompleteFunc filled;
static CUpti_BuffersCallbackRequestFunc wanted;
static std::vector<CUpti_ActivityKernel3> records;
static const CUdeviceptr base = 0x7f0000000000;
static const size_t sizes[] = {8, 4, 128};  // of the kernel's parameters: a pointer, a number, a tensor map
static const size_t offsets[] = {0, 8, 64};

extern "C" {
CUptiResult cuptiGetVersion(uint32_t *version) { *version = 130000; return CUPTI_SUCCESS; }
CUptiResult cuptiGetResultString(CUptiResult, const char **text) { *text = "refused"; return CUPTI_SUCCESS; }
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *, CUpti_CallbackFunc function, void *) {
  callback = function;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  wanted = request;
  filled = complete;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record) {
  auto *next = *record ? reinterpret_cast<CUpti_ActivityKernel3 *>(*record) + 1
                       : reinterpret_cast<CUpti_ActivityKernel3 *>(buffer);
  if (reinterpret_cast<uint8_t *>(next) >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity *>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(uint32_t) {
  uint8_t *buffer;
  size_t size, most;
  wanted(&buffer, &size, &most);
  memcpy(buffer, records.data(), records.size() * sizeof records[0]);
  filled(nullptr, 0, buffer, size, records.size() * sizeof records[0]);
  return CUPTI_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction, size_t number, size_t *offset, size_t *size) {
  if (number >= 3) return CUDA_ERROR_INVALID_VALUE;
  *offset = offsets[number];
  *size = sizes[number];
  return CUDA_SUCCESS;
}
CUresult cuFuncGetModule(CUmodule *module, CUfunction) {
  *module = reinterpret_cast<CUmodule>(0x1000);
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute, CUfunction) {
  *value = 32;
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  if (pointer < base || pointer >= base + 4096) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) *static_cast<CUdeviceptr *>(data) = base;
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) *static_cast<size_t *>(data) = 4096;
  if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) *static_cast<int *>(data) = CU_MEMORYTYPE_DEVICE;
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *version) { *version = 13000; return CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr, size_t bytes) { memset(to, 7, bytes); return CUDA_SUCCESS; }
}

static uint32_t correlation;

static void call(CUpti_CallbackId id, const void *given, const char *symbol) {
  CUresult result = CUDA_SUCCESS;
  CUpti_CallbackData data{};
  data.functionParams = given;
  data.functionReturnValue = &result;
  data.symbolName = symbol;
  data.correlationId = ++correlation;
  data.callbackSite = CUPTI_API_ENTER;
  callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
  data.callbackSite = CUPTI_API_EXIT;
  callback(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
  CUpti_ActivityKernel3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.correlationId = correlation;
  record.start = 1000;
  record.end = 1000 + 100 * correlation;
  records.push_back(record);
}

int main(int, char **arguments) {
  FILE *file = fopen(arguments[2], "rb");
  std::vector<char> cubin(1 << 24);
  cubin.resize(fread(cubin.data(), 1, cubin.size(), file));
  fclose(file);
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (library == nullptr) return fprintf(stderr, "%s\n", dlerror()), 1;
  reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
  CUpti_ModuleResourceData module{1, cubin.size(), cubin.data()};
  CUpti_ResourceData resource{};
  resource.resourceDescriptor = &module;
  callback(nullptr, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &resource);
  CUdeviceptr pointer = base + 2048;
  int number = 5;
  alignas(64) CUtensorMap map{};
  map.opaque[0] = base;
  void *parameters[] = {&pointer, &number, &map};
  cuLaunchKernel_params plain{};
  plain.f = reinterpret_cast<CUfunction>(0x10);
  plain.gridDimX = 4, plain.gridDimY = plain.gridDimZ = 1;
  plain.blockDimX = 32, plain.blockDimY = plain.blockDimZ = 1;
  plain.sharedMemBytes = 16;
  plain.kernelParams = parameters;
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim.x = 2, cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
  CUlaunchConfig config{4, 1, 1, 32, 1, 1, 0, nullptr, &cluster, 1};
  cuLaunchKernelEx_params extended{&config, plain.f, parameters, nullptr};
  call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &plain, arguments[3]);
  call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &extended, arguments[3]);
  call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &plain, arguments[3]);
  cuGraphLaunch_params graph{};
  call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, &graph, nullptr);
  return 0;
}
