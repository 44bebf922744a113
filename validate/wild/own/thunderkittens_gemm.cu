// Prints how a GEMM of ThunderKittens is launched. GEMM_FILE is the file that holds it, with a program of its own around;
// GEMM_GLOBALS is the type of its parameter, GEMM_KERNEL its kernel, GEMM_THREADS, GEMM_GRID and GEMM_SHARED its launch, by
// formulas of m, n, k and sms. GEMM_ELEMENT is the type of the matrices. GEMM_LAST, where there is one, is the parameter's last
// member, and GEMM_COLUMN_B says that B is [N, K]. The program takes M, N, K and SMs.

#include "launch.cuh"

#define main main_of_the_file
#include GEMM_FILE
#undef main

#ifdef GEMM_COLUMN_B
#define GEMM_SIZES_B n, k
#else
#define GEMM_SIZES_B k, n
#endif
#ifndef GEMM_LAST
#define GEMM_LAST
#endif

int main(int count, char** words) {
    if (count != 5) return 2;
    size_t m = atoi(words[1]), n = atoi(words[2]), k = atoi(words[3]), sms = atoi(words[4]);
    GEMM_GLOBALS parameter{{address<GEMM_ELEMENT>(0), nullptr, nullptr, m, k},
                           {address<GEMM_ELEMENT>(1), nullptr, nullptr, GEMM_SIZES_B},
                           {address<GEMM_ELEMENT>(2), nullptr, nullptr, m, n} GEMM_LAST};
    dim3 grid(GEMM_GRID);
    say_launch(grid, GEMM_THREADS, GEMM_SHARED, dim3(1, 1, 1), &parameter, sizeof(parameter));
    // The kernel must be in this program; a launch that never happens puts it there.
    if (sms == 0) GEMM_KERNEL<<<grid, GEMM_THREADS, GEMM_SHARED>>>(parameter);
    return 0;
}
