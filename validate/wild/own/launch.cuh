// What programs have in common that print how a kernel is launched: see validate/wild/host.py, which reads the lines.
//
// No driver is here, so cuTensorMapEncodeTiled is a function of this file. It prints what it is asked for and leaves a word
// in the map, 0x7B in the upper byte and the number of the call below, in whose place the map comes later.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cuda.h>

// The address of an array, for which 0x7A in the upper byte stands, the array's number in bits 40 to 47.
template <class T> T* address(unsigned long long number) {
    return reinterpret_cast<T*>(0x7A00000000000000ull | number << 40);
}

inline void say_launch(dim3 grid, int threads, int shared, dim3 cluster, void const* parameter, size_t bytes) {
    std::printf("grid %u %u %u\n", grid.x, grid.y, grid.z);
    std::printf("block %d 1 1\n", threads);
    std::printf("shared %d\n", shared);
    std::printf("cluster %u %u %u\n", cluster.x, cluster.y, cluster.z);
    std::printf("parameter ");
    for (size_t i = 0; i < bytes; ++i) std::printf("%02x", static_cast<unsigned char const*>(parameter)[i]);
    std::printf("\n");
}

extern "C" CUresult cuGetErrorString(CUresult, char const** text) {
    *text = "";
    return CUDA_SUCCESS;
}

extern "C" CUresult cuTensorMapEncodeTiled(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* first, cuuint64_t const* sizes,
    cuuint64_t const* strides, cuuint32_t const* box, cuuint32_t const* steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    static unsigned long long calls = 0;
    if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return CUDA_ERROR_INVALID_VALUE;
    std::printf("map %llu type %d address %llu swizzle %d promotion %d fill %d sizes", calls, int(type),
                static_cast<unsigned long long>(reinterpret_cast<size_t>(first)), int(swizzle), int(promotion), int(fill));
    for (cuuint32_t i = 0; i < rank; ++i) std::printf(" %llu", static_cast<unsigned long long>(sizes[i]));
    std::printf(" strides");
    for (cuuint32_t i = 0; i + 1 < rank; ++i) std::printf(" %llu", static_cast<unsigned long long>(strides[i]));
    std::printf(" box");
    for (cuuint32_t i = 0; i < rank; ++i) std::printf(" %u", box[i]);
    std::printf(" steps");
    for (cuuint32_t i = 0; i < rank; ++i) std::printf(" %u", steps[i]);
    std::printf("\n");
    *map = CUtensorMap{};
    map->opaque[0] = 0x7B00000000000000ull | calls++;
    return CUDA_SUCCESS;
}
