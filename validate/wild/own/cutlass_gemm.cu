// Makes a GEMM of CUTLASS 2.x and prints how it is launched: grid, block, shared memory, and its one parameter, a struct.
//
// Macros that begin with GEMM_ say which: A, B, C and SUM are types; ROW_A and ROW_B say whether A and B are row-major;
// OPERATION is OpClassSimt or OpClassTensorOp; MADE_FOR is Sm50, Sm75 or Sm80; TILE, WARP_TILE and INSTRUCTION are three
// sizes each; ALIGN and ALIGN_C are in elements; then STAGES, SWIZZLE and SPLIT_K. The program takes M, N and K. The address
// of an array is stood for by 0x7A00 in the two upper bytes and the array's number in the byte below them.

#include <cstdio>
#include <cstdlib>

#include "cutlass/cutlass.h"
#include "cutlass/gemm/device/gemm.h"

#ifndef GEMM_SPLIT_K
#define GEMM_SPLIT_K 1
#endif
#ifndef GEMM_SCALE
#define GEMM_SCALE GEMM_SUM
#endif

template <bool row> struct Order { using Layout = cutlass::layout::ColumnMajor; };
template <> struct Order<true> { using Layout = cutlass::layout::RowMajor; };
using LayoutA = Order<GEMM_ROW_A>::Layout;
using LayoutB = Order<GEMM_ROW_B>::Layout;
using LayoutC = cutlass::layout::RowMajor;
using Swizzle = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<GEMM_SWIZZLE>;
using Epilogue = cutlass::epilogue::thread::LinearCombination<GEMM_C, GEMM_ALIGN_C, GEMM_SUM, GEMM_SCALE>;
using Gemm = cutlass::gemm::device::Gemm<
    GEMM_A, LayoutA, GEMM_B, LayoutB, GEMM_C, LayoutC, GEMM_SUM, cutlass::arch::GEMM_OPERATION,
    cutlass::arch::GEMM_MADE_FOR, cutlass::gemm::GemmShape<GEMM_TILE>, cutlass::gemm::GemmShape<GEMM_WARP_TILE>,
    cutlass::gemm::GemmShape<GEMM_INSTRUCTION>, Epilogue, Swizzle, GEMM_STAGES, GEMM_ALIGN, GEMM_ALIGN, (GEMM_SPLIT_K > 1)>;
using Kernel = Gemm::GemmKernel;

template <class T> T* address(unsigned long long number) {
    return reinterpret_cast<T*>(0x7A00000000000000ull | number << 40);
}

int main(int count, char** words) {
    if (count != 4) return 2;
    int m = atoi(words[1]), n = atoi(words[2]), k = atoi(words[3]);
    cutlass::gemm::GemmCoord problem(m, n, k);
    cutlass::TensorRef<GEMM_A, LayoutA> a(address<GEMM_A>(0), LayoutA(GEMM_ROW_A ? k : m));
    cutlass::TensorRef<GEMM_B, LayoutB> b(address<GEMM_B>(1), LayoutB(GEMM_ROW_B ? n : k));
    cutlass::TensorRef<GEMM_C, LayoutC> c(address<GEMM_C>(2), LayoutC(n)), d(address<GEMM_C>(3), LayoutC(n));
    Swizzle swizzle;
    auto tiles = swizzle.get_tiled_shape(problem, cutlass::gemm::GemmCoord(GEMM_TILE), GEMM_SPLIT_K);
    Epilogue::Params epilogue(GEMM_SCALE(1.5f), GEMM_SCALE(0.5f));
    Kernel::Params parameters(problem, tiles, a, b, c, d, epilogue, GEMM_SPLIT_K > 1 ? address<int>(4) : nullptr);
    dim3 grid = swizzle.get_grid_shape(tiles);
    std::printf("grid %u %u %u\n", grid.x, grid.y, grid.z);
    std::printf("block %d 1 1\n", int(Kernel::kThreadCount));
    std::printf("shared %d\n", int(sizeof(Kernel::SharedStorage)));
    std::printf("parameter ");
    for (size_t i = 0; i < sizeof(parameters); ++i)
        std::printf("%02x", reinterpret_cast<unsigned char const*>(&parameters)[i]);
    std::printf("\n");
    // The kernel must be in this program; a launch that never happens puts it there.
    if (m < 0) cutlass::Kernel<Kernel><<<grid, Kernel::kThreadCount, sizeof(Kernel::SharedStorage)>>>(parameters);
    return 0;
}
