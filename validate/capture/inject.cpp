// Writes down a program's kernel launches. The CUDA driver loads this library into the program when it starts
// (CUDA_INJECTION64_PATH), and CUPTI calls it back: CUPTI documentation, "CUPTI Callback API" and "CUPTI Activity API".
//
// It writes to the folder GEMMSIM_CAPTURE a folder for each process: `log.jsonl`, an event a line, and `N.cubin` for
// each module that is loaded. `raw.py` reads them. GEMMSIM_CAPTURE_LIMIT is the largest number of distinct launches,
// GEMMSIM_CAPTURE_CONTENTS the bytes up to which a buffer's content is copied before its first launch (0: none).

#include <cupti.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <unordered_map>
#include <vector>

#include "launches.h"

namespace {

// No call of the driver is made while `lock` is held: the driver may wait for a thread that waits here.
std::mutex lock, times_lock;
FILE *out;
std::string folder;
int modules, launches, limit = 10000, dropped, graphs;
size_t contents_up_to;
std::unordered_map<std::string, int> known;      // what makes a launch distinct -> its number
std::unordered_map<uint32_t, int> launched_as;   // correlation id -> number
std::map<int, std::vector<uint64_t>> durations;  // number -> ns
thread_local std::vector<int> loaded;            // modules that this thread's call of the driver has loaded

void say(const std::string &line) {
  std::lock_guard<std::mutex> guard(lock);
  if (out == nullptr) return;
  fputs(line.c_str(), out);
  fputc('\n', out);
  fflush(out);
}

void checked(CUptiResult result, const char *what) {
  const char *why = "?";
  if (result == CUPTI_SUCCESS) return;
  cuptiGetResultString(result, &why);
  say(std::string("{\"event\":\"error\",\"what\":") + quoted(what) + ",\"why\":" + quoted(why) + "}");
}

void keep_module(const CUpti_ModuleResourceData *module) {
  lock.lock();
  const int number = modules++;
  lock.unlock();
  const std::string name = std::to_string(number) + ".cubin";
  if (FILE *file = fopen((folder + "/" + name).c_str(), "wb")) {
    fwrite(module->pCubin, 1, module->cubinSize, file);
    fclose(file);
  }
  loaded.push_back(number);
  say("{\"event\":\"module\",\"number\":" + std::to_string(number) + ",\"bytes\":" + std::to_string(module->cubinSize) +
      "}");
}

std::string key_of(const Launch &launch, const char *symbol, const std::vector<Bytes> &parameters) {
  std::ostringstream key;
  key << symbol << '|' << launch.function << '|' << listed(std::vector<unsigned>(launch.grid, launch.grid + 3))
      << listed(std::vector<unsigned>(launch.block, launch.block + 3)) << launch.shared << '|' << launch.cooperative;
  for (const auto &one : launch.attributes)
    if (one.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) key << '|' << one.value.clusterDim.x << ',' << one.value.clusterDim.y;
  for (const auto &one : parameters) key << '|' << std::string(one.begin(), one.end());
  return key.str();
}

void keep_contents(const Launch &launch, const char *symbol) {
  std::vector<size_t> offsets;
  const auto parameters = parameters_of(launch, offsets);
  lock.lock();
  const bool is_known = known.count(key_of(launch, symbol, parameters));
  const int number = launches;  // right where a program launches from one thread
  lock.unlock();
  if (is_known) return;
  driver.synchronize();
  for (const auto &one : buffers_of(parameters, offsets)) {
    if (one.size > contents_up_to) continue;
    const std::string name = std::to_string(number) + "-" + std::to_string(one.base) + ".bin";
    Bytes content(one.size);
    if (driver.copy_to_host(content.data(), one.base, one.size) != CUDA_SUCCESS) continue;
    if (FILE *file = fopen((folder + "/" + name).c_str(), "wb")) {
      fwrite(content.data(), 1, one.size, file);
      fclose(file);
    }
  }
}

// The number of a launch, and whether it is the first of its kind; -1 where there are too many.
std::pair<int, bool> numbered(const std::string &key) {
  std::lock_guard<std::mutex> guard(lock);
  const auto before = known.find(key);
  if (before != known.end()) return {before->second, false};
  if (launches >= limit) {
    ++dropped;
    return {-1, false};
  }
  known[key] = launches;
  return {launches++, true};
}

void keep_launch(const Launch &launch, const CUpti_CallbackData *call) {
  const char *symbol = call->symbolName ? call->symbolName : "?";
  std::vector<size_t> offsets;
  const auto parameters = parameters_of(launch, offsets);
  const auto [number, is_new] = numbered(key_of(launch, symbol, parameters));
  if (number < 0) return;
  {
    std::lock_guard<std::mutex> guard(times_lock);
    launched_as[call->correlationId] = number;
  }
  if (!is_new) return;
  CUmodule module = nullptr;
  CUfunction function = launch.function;
  if (driver.function_module(&module, function) != CUDA_SUCCESS && driver.kernel_function &&
      driver.kernel_function(&function, reinterpret_cast<CUkernel>(launch.function)) == CUDA_SUCCESS)
    driver.function_module(&module, function);
  int registers = -1, static_shared = -1, local = -1;
  driver.function_attribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  driver.function_attribute(&static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
  driver.function_attribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  std::vector<std::string> bytes, places;
  std::vector<int> kinds;
  bool cooperative = launch.cooperative;
  std::string cluster;
  for (const auto &one : parameters) bytes.push_back(hex(one));
  for (const auto &one : buffers_of(parameters, offsets)) {
    std::ostringstream place;
    place << "{\"parameter\":" << one.parameter << ",\"at\":" << one.at << ",\"address\":" << one.address
          << ",\"base\":" << one.base << ",\"size\":" << one.size << ",\"type\":" << one.type << '}';
    places.push_back(place.str());
  }
  for (const auto &one : launch.attributes) {
    kinds.push_back(one.id);
    if (one.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = cooperative || one.value.cooperative;
    if (one.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto &of = one.value.clusterDim;
      cluster = ",\"cluster\":" + listed(std::vector<unsigned>{of.x, of.y, of.z});
    }
  }
  std::ostringstream text;
  text << "{\"event\":\"launch\",\"number\":" << number << ",\"symbol\":" << quoted(symbol) << ",\"module\":\"" << module
       << "\",\"loaded\":" << listed(loaded) << ",\"grid\":" << listed(std::vector<unsigned>(launch.grid, launch.grid + 3))
       << ",\"block\":" << listed(std::vector<unsigned>(launch.block, launch.block + 3)) << ",\"shared\":" << launch.shared
       << ",\"cooperative\":" << (cooperative ? "true" : "false") << cluster << ",\"attributes\":" << listed(kinds)
       << ",\"registers\":" << registers << ",\"static_shared\":" << static_shared << ",\"local\":" << local
       << ",\"parameters\":" << listed(bytes) << ",\"offsets\":" << listed(offsets) << ",\"buffers\":" << listed(places)
       << ",\"callers\":" << callers() << '}';
  say(text.str());
}

// The launch that a call of the driver asks for; false where the call is none.
bool launch_of(CUpti_CallbackId id, const void *given, Launch &launch) {
  launch = Launch{};
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel || id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz) {
    const auto *p = static_cast<const cuLaunchKernel_params *>(given);
    launch = {p->f, {p->gridDimX, p->gridDimY, p->gridDimZ}, {p->blockDimX, p->blockDimY, p->blockDimZ},
              p->sharedMemBytes, {}, false, p->kernelParams, p->extra};
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx || id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) {
    const auto *p = static_cast<const cuLaunchKernelEx_params *>(given);
    const CUlaunchConfig &c = *p->config;
    launch = {p->f, {c.gridDimX, c.gridDimY, c.gridDimZ}, {c.blockDimX, c.blockDimY, c.blockDimZ}, c.sharedMemBytes,
              std::vector<CUlaunchAttribute>(c.attrs, c.attrs + c.numAttrs), false, p->kernelParams, p->extra};
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel ||
             id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz) {
    const auto *p = static_cast<const cuLaunchCooperativeKernel_params *>(given);
    launch = {p->f, {p->gridDimX, p->gridDimY, p->gridDimZ}, {p->blockDimX, p->blockDimY, p->blockDimZ},
              p->sharedMemBytes, {}, true, p->kernelParams, nullptr};
  } else {
    return false;
  }
  return true;
}

// Which modules a call has loaded, and the handle that it returned for them.
void keep_handle(CUpti_CallbackId id, const void *given) {
  const CUmodule *module = nullptr;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoad) module = static_cast<const cuModuleLoad_params *>(given)->module;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData) module = static_cast<const cuModuleLoadData_params *>(given)->module;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx)
    module = static_cast<const cuModuleLoadDataEx_params *>(given)->module;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary)
    module = static_cast<const cuModuleLoadFatBinary_params *>(given)->module;
  if (module == nullptr || loaded.empty()) return;
  std::ostringstream text;
  text << "{\"event\":\"handle\",\"module\":\"" << *module << "\",\"loaded\":" << listed(loaded) << '}';
  say(text.str());
}

void CUPTIAPI called(void *, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    const auto *resource = static_cast<const CUpti_ResourceData *>(data);
    if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED)
      keep_module(static_cast<const CUpti_ModuleResourceData *>(resource->resourceDescriptor));
    return;
  }
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  const auto *call = static_cast<const CUpti_CallbackData *>(data);
  const bool enters = call->callbackSite == CUPTI_API_ENTER;
  if (enters) loaded.clear();
  Launch launch;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch || id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz) {
    std::lock_guard<std::mutex> guard(lock);
    graphs += enters;
  } else if (launch_of(id, call->functionParams, launch)) {
    const bool succeeded = enters || *static_cast<CUresult *>(call->functionReturnValue) == CUDA_SUCCESS;
    if (enters && contents_up_to) keep_contents(launch, call->symbolName ? call->symbolName : "?");
    if (!enters && succeeded) keep_launch(launch, call);
  } else if (!enters) {
    keep_handle(id, call->functionParams);
  }
}

const size_t buffer_bytes = 1 << 20;

void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *records) {
  *buffer = static_cast<uint8_t *>(aligned_alloc(8, buffer_bytes));
  *size = buffer_bytes;
  *records = 0;
}

void CUPTIAPI buffer_filled(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  CUpti_Activity *record = nullptr;
  std::lock_guard<std::mutex> guard(times_lock);
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL) continue;
    // The first fields of all versions of the record stand at the same places since version 3.
    const auto *kernel = reinterpret_cast<const CUpti_ActivityKernel3 *>(record);
    const auto found = launched_as.find(kernel->correlationId);
    if (found == launched_as.end()) continue;
    durations[found->second].push_back(kernel->end - kernel->start);
    launched_as.erase(found);
  }
  free(buffer);
}

void ended() {
  cuptiActivityFlushAll(1);
  std::lock_guard<std::mutex> guard(times_lock);
  for (const auto &one : durations)
    say("{\"event\":\"times\",\"number\":" + std::to_string(one.first) + ",\"ns\":" + listed(one.second) + "}");
  say("{\"event\":\"end\",\"graph_launches\":" + std::to_string(graphs) + ",\"dropped\":" + std::to_string(dropped) + "}");
  if (out != nullptr) fclose(out);
  out = nullptr;
}

template <class Function> void find(void *library, Function &function, const char *name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

size_t number_of(const char *name, size_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char *where = getenv("GEMMSIM_CAPTURE");
  if (where == nullptr || out != nullptr) return 1;
  folder = std::string(where) + "/" + std::to_string(getpid());
  mkdir(folder.c_str(), 0777);
  out = fopen((folder + "/log.jsonl").c_str(), "w");
  limit = static_cast<int>(number_of("GEMMSIM_CAPTURE_LIMIT", limit));
  contents_up_to = number_of("GEMMSIM_CAPTURE_CONTENTS", 0);
  void *cuda = dlopen("libcuda.so.1", RTLD_LAZY);
  find(cuda, driver.function_parameter, "cuFuncGetParamInfo");
  find(cuda, driver.kernel_parameter, "cuKernelGetParamInfo");
  find(cuda, driver.kernel_function, "cuKernelGetFunction");
  find(cuda, driver.function_module, "cuFuncGetModule");
  find(cuda, driver.function_attribute, "cuFuncGetAttribute");
  find(cuda, driver.pointer_attribute, "cuPointerGetAttribute");
  find(cuda, driver.version, "cuDriverGetVersion");
  find(cuda, driver.synchronize, "cuCtxSynchronize");
  find(cuda, driver.copy_to_host, "cuMemcpyDtoH_v2");
  int version = 0;
  uint32_t cupti = 0;
  if (driver.version) driver.version(&version);
  cuptiGetVersion(&cupti);
  say("{\"event\":\"start\",\"driver_cuda\":" + std::to_string(version) + ",\"cupti\":" + std::to_string(cupti) + "}");
  CUpti_SubscriberHandle subscriber;
  checked(cuptiSubscribe(&subscriber, called, nullptr), "cuptiSubscribe");
  checked(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED), "module loads");
  for (CUpti_CallbackId id : {
           CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
           CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
           CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
           CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
           CUPTI_DRIVER_TRACE_CBID_cuModuleLoad, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
           CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary})
    checked(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id), "launches");
  checked(cuptiActivityRegisterCallbacks(buffer_wanted, buffer_filled), "cuptiActivityRegisterCallbacks");
  checked(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "times");
  atexit(ended);
  return 1;
}
