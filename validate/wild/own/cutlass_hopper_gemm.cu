// Makes a GEMM of CUTLASS 3 for sm_90 by its collective builders, and prints how it is launched.
//
// Macros that begin with GEMM_ say which: A, B, C and SUM are types; ROW_B says whether B is row-major (A, C and D are);
// ALIGN and ALIGN_C are in elements; TILE and CLUSTER are three sizes each; STAGES, SCHEDULE, EPILOGUE and ORDER are types
// of CUTLASS. The program takes M, N, K and the SMs that the grid is for.

#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL 1
#include "launch.cuh"

#include "cute/tensor.hpp"
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"

#ifndef GEMM_STAGES
#define GEMM_STAGES cutlass::gemm::collective::StageCountAutoCarveout<sizeof(typename Epilogue::SharedStorage)>
#endif
#ifndef GEMM_ORDER
#define GEMM_ORDER void
#endif

template <bool row> struct Order { using Layout = cutlass::layout::ColumnMajor; };
template <> struct Order<true> { using Layout = cutlass::layout::RowMajor; };
using LayoutA = cutlass::layout::RowMajor;
using LayoutB = Order<GEMM_ROW_B>::Layout;
using LayoutC = cutlass::layout::RowMajor;
template <int... sizes> using Sizes = cute::Shape<cute::Int<sizes>...>;
using Tile = Sizes<GEMM_TILE>;
using Cluster = Sizes<GEMM_CLUSTER>;
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
    GEMM_SUM, GEMM_SUM, GEMM_C, LayoutC, GEMM_ALIGN_C, GEMM_C, LayoutC, GEMM_ALIGN_C,
    cutlass::epilogue::GEMM_EPILOGUE>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, GEMM_A, LayoutA, GEMM_ALIGN, GEMM_B, LayoutB, GEMM_ALIGN,
    GEMM_SUM, Tile, Cluster, GEMM_STAGES, cutlass::gemm::GEMM_SCHEDULE>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue, GEMM_ORDER>;

int main(int count, char** words) {
    if (count != 5) return 2;
    int m = atoi(words[1]), n = atoi(words[2]), k = atoi(words[3]), sms = atoi(words[4]);
    auto a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1});
    auto b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1});
    auto c = cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, {m, n, 1});
    auto d = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {m, n, 1});
    typename Kernel::Arguments arguments{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k, 1},
        {address<GEMM_A>(0), a, address<GEMM_B>(1), b},
        {{}, address<GEMM_C>(2), c, address<GEMM_C>(3), d}};
    arguments.epilogue.thread.alpha = 1.5f;
    arguments.epilogue.thread.beta = 0.5f;
    arguments.hw_info.sm_count = sms;
    arguments.hw_info.max_active_clusters = sms / int(cute::size(Cluster{}));
    if (Kernel::get_workspace_size(arguments) || !Kernel::can_implement(arguments)) return 3;
    auto parameters = Kernel::to_underlying_arguments(arguments, nullptr);
    dim3 grid = Kernel::get_grid_shape(parameters), block = Kernel::get_block_shape();
    dim3 cluster(cute::size<0>(Cluster{}), cute::size<1>(Cluster{}), cute::size<2>(Cluster{}));
    say_launch(grid, block.x, Kernel::SharedStorageSize, cluster, &parameters, sizeof(parameters));
    // The kernel must be in this program; a launch that never happens puts it there.
    if (m < 0) cutlass::device_kernel<Kernel><<<grid, block, Kernel::SharedStorageSize>>>(parameters);
    return 0;
}
