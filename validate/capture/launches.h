// What inject.cpp reads of a launch, by functions of the driver, and how it writes it as JSON.

#pragma once

#include <cuda.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

struct Driver {  // functions of libcuda.so.1, which is in the process already
  decltype(&cuFuncGetParamInfo) function_parameter;
  decltype(&cuKernelGetParamInfo) kernel_parameter;
  decltype(&cuKernelGetFunction) kernel_function;
  decltype(&cuFuncGetModule) function_module;
  decltype(&cuFuncGetAttribute) function_attribute;
  decltype(&cuPointerGetAttribute) pointer_attribute;
  decltype(&cuDriverGetVersion) version;
  decltype(&cuCtxSynchronize) synchronize;
  CUresult (*copy_to_host)(void *, CUdeviceptr, size_t);
} driver;

// A launch as the program asks for it.
struct Launch {
  CUfunction function;
  unsigned grid[3], block[3], shared;
  std::vector<CUlaunchAttribute> attributes;
  bool cooperative;
  void **parameters, **extra;
};

// A word of a parameter that is an address: where it stands, and the allocation that it lies in.
struct Buffer {
  int parameter;
  size_t at;
  uint64_t address, base;
  size_t size;
  int type;
};

// Text as JSON has it, and so the other two.
std::string quoted(const std::string &text) {
  std::string found = "\"";
  for (unsigned char one : text) {
    char escaped[8];
    if (one == '"' || one == '\\') {
      found += '\\';
      found += static_cast<char>(one);
    } else if (one < 0x20) {
      snprintf(escaped, sizeof escaped, "\\u%04x", one);
      found += escaped;
    } else {
      found += static_cast<char>(one);
    }
  }
  return found + '"';
}

std::string hex(const Bytes &bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string found = "\"";
  for (unsigned char one : bytes) {
    found += digits[one >> 4];
    found += digits[one & 15];
  }
  return found + '"';
}

template <class Items> std::string listed(const Items &items) {
  std::ostringstream text;
  text << '[';
  const char *comma = "";
  for (const auto &one : items) {
    text << comma << one;
    comma = ",";
  }
  text << ']';
  return text.str();
}

// The parameters' bytes, one by one. Where the launch gives them in one buffer, they are cut out of it.
std::vector<Bytes> parameters_of(const Launch &launch, std::vector<size_t> &offsets) {
  std::vector<Bytes> found;
  const unsigned char *buffer = nullptr;
  for (void **item = launch.extra; item != nullptr && *item != CU_LAUNCH_PARAM_END; item += 2)
    if (*item == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const unsigned char *>(item[1]);
  for (size_t number = 0; number < 4096; ++number) {
    size_t offset = 0, size = 0;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (driver.function_parameter) result = driver.function_parameter(launch.function, number, &offset, &size);
    if (result != CUDA_SUCCESS && driver.kernel_parameter)
      result = driver.kernel_parameter(reinterpret_cast<CUkernel>(launch.function), number, &offset, &size);
    if (result != CUDA_SUCCESS) break;
    const void *place = launch.parameters ? launch.parameters[number] : buffer ? buffer + offset : nullptr;
    if (place == nullptr) break;
    const unsigned char *bytes = static_cast<const unsigned char *>(place);
    found.emplace_back(bytes, bytes + size);
    offsets.push_back(offset);
  }
  return found;
}

// Every aligned word of the parameters that lies in an allocation.
std::vector<Buffer> buffers_of(const std::vector<Bytes> &parameters, const std::vector<size_t> &offsets) {
  std::vector<Buffer> found;
  for (size_t number = 0; number < parameters.size(); ++number)
    for (size_t at = (8 - offsets[number] % 8) % 8; at + 8 <= parameters[number].size(); at += 8) {
      uint64_t word, base = 0;
      size_t size = 0;
      int type = 0;
      memcpy(&word, &parameters[number][at], 8);
      if (word < 1 << 20 || word >> 57) continue;
      if (driver.pointer_attribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, word) != CUDA_SUCCESS || !base) continue;
      if (driver.pointer_attribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, word) != CUDA_SUCCESS) continue;
      if (word < base || word - base > size) continue;
      driver.pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word);
      found.push_back({static_cast<int>(number), at, word, base, size, type});
    }
  return found;
}

// The files of the functions on the stack, without those of the driver: whose code launched.
std::string callers() {
  void *frames[64];
  std::vector<std::string> found;
  const int count = backtrace(frames, 64);
  for (int number = 0; number < count; ++number) {
    Dl_info of;
    if (!dladdr(frames[number], &of) || of.dli_fname == nullptr) continue;
    const std::string name = of.dli_fname;
    if (name.find("libcuda.so") != std::string::npos || name.find("libcupti") != std::string::npos) continue;
    if (name.find("libgemmsim_capture") != std::string::npos) continue;
    const std::string text = quoted(name);
    bool is_new = true;
    for (const auto &one : found) is_new = is_new && one != text;
    if (is_new) found.push_back(text);
  }
  return listed(found);
}

}  // namespace
