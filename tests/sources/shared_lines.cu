// One thread of each block reads n lines, `stride` bytes apart, one after another: each address depends on the last
// value, which is 0. Timed on an H100: tests/records/h100_shared_lines.json.
extern "C" __global__ void shared_lines(const char *lines, long stride, int n, unsigned *sink) {
    unsigned value = 0;
    for (int i = 0; i < n; i++) value += *(const unsigned *)(lines + i * stride + value);
    sink[blockIdx.x] = value;
}
