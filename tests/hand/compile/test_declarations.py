"""What stands in a C++ source is found by its brackets, and what is for the host can be taken out."""

from __future__ import annotations

import pytest

from gemmsim.compile.declarations import declarations, device_macros, removable_at, without

SOURCE = r"""
#include <vector>
#define CHECK(call) do { if (call) { abort(); } } while (0)
#define DEV __device__ __forceinline__
#define INLINE_DEV DEV inline
using namespace std;
namespace {
const char* text = "}; // no comment";
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
}
template <int N = (3 > 2)> struct alignas(16) Tile { float data[N]; };
struct Params {
  float *a, *b;
  uint n;
  Params(int n_) : n{(uint)n_} { std::cout << n; }
  void print() const { std::cout << "{" << n << '}' << 1'000; }
  virtual void show();
  std::function<void(int)> call;
};
enum class Kind { one, two };
int table[] = {1, 2, 3};
INLINE_DEV float square(float x) { return x * x; }
template <typename T, int BM> __global__ void __launch_bounds__(BM * 2) kernel(Params p, T* out) {
  if (p.n) { out[0] = T{}; }
}
extern "C" {
void run(std::vector<float>& v) { kernel<float, 8><<<1, 2>>>(Params(1), v.data()); }
}
#if defined(A)
void both(int a) {
#else
void both(long a) {
#endif
  CHECK(a);
}
int main() { auto f = [&](int i) { return R"x(")}x)x"[i]; }; return f(0); /* } */ }
float last;
"""


def found_at(part: str, source: str = SOURCE) -> str | None:
    """The text that is taken out for an error at the first character of `part`."""
    found = declarations(source, device_macros([source]))
    one = removable_at(source, found, source.index(part), source.index(part) + 1)
    return one and source[one.start : one.stop]


@pytest.mark.parametrize(
    ("part", "begin", "end"),
    [
        ('text = "', "const char* text", 'comment";'),
        ("ceil_div", "constexpr int", "b; }"),
        ("float data", "template <int N", "};"),
        ('std::cout << "{"', "void print() const", "1'000; }"),
        ("two }", "enum class Kind", "};"),
        ("1, 2, 3", "int table[]", "};"),
        ("run(std", "void run(", "v.data()); }"),
        ("both(int", "void both(int", "CHECK(a);\n}"),
        ("auto f", "int main()", "*/ }"),
        ("last", "float last;", "float last;"),
    ],
)
def test_the_smallest_declaration_around_an_error_is_taken_out(part: str, begin: str, end: str) -> None:
    text = found_at(part)
    assert text is not None and text.startswith(begin) and text.endswith(end)


@pytest.mark.parametrize("part", ["uint n;", "Params(int n_)", "virtual void", "std::function<void"])
def test_a_class_is_taken_out_whole_for_what_decides_its_layout(part: str) -> None:
    text = found_at(part)
    assert text is not None and text.startswith("struct Params {") and text.endswith("};")


@pytest.mark.parametrize("part", ["square(float", "out[0] = T", "kernel(Params", "#include", "#define CHECK"])
def test_code_of_the_gpu_is_never_taken_out(part: str) -> None:
    """INLINE_DEV is a macro for a macro for __device__."""
    assert found_at(part) is None


def test_a_class_with_code_of_the_gpu_keeps_its_data() -> None:
    source = "struct A {\n  cudaEvent_t e;\n  void host() { x; }\n  __device__ int get() { return 1; }\n};\n"
    assert found_at("cudaEvent_t", source) is None
    assert found_at("x;", source) == "void host() { x; }"
    assert found_at("return", source) is None


def test_macros_of_libraries_mark_code_of_the_gpu_by_their_names() -> None:
    assert found_at("f()", "CUTLASS_HOST_DEVICE void f() {}") is None
    assert found_at("f()", "HOST_ONLY void f() {}") == "HOST_ONLY void f() {}"


def test_lines_and_directives_stay() -> None:
    source = "int a;\nvoid f() {\n#define TWO 2\n  g();\n}\nint b;\n"
    found = declarations(source, frozenset())
    assert without(source, [found[1]]) == "int a;\n          \n#define TWO 2\n      \n \nint b;\n"


def test_source_without_an_end_is_read_to_its_end() -> None:
    assert len(declarations("void f() { if (", frozenset())) == 1
    assert declarations("}", frozenset()) == ()
    assert declarations("", frozenset()) == ()
