// C99 by Loopwright; to be compiled without contraction of a * b + c.
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct lw_runtime {
    void *context;
    void (*parallel_for)(void *context, int64_t count,
                         void (*task)(void *environment, int64_t begin, int64_t stop),
                         void *environment);
    int64_t global_size[3];
    int64_t local_size[3];
} lw_runtime;

typedef uint16_t f16;
static inline float lw_f32_bits_of_u32(uint32_t a) { float r; memcpy(&r, &a, sizeof r); return r; }
static inline float lw_f32_from_f16(f16 a) { uint32_t m = a & 0x7fff; float r = m >= 0x7c00 ? lw_f32_bits_of_u32(0x7f800000u | m << 13) : m >> 10 ? lw_f32_bits_of_u32((m << 13) + (112u << 23)) : m * 0x1p-24f; return a & 0x8000 ? -r : r; }
static inline float lw_max_f32(float a, float b) { return a > b || a != a ? a : b; }

static void kernel_relu(float *restrict int_1, const float *restrict x, const f16 *x_1, int64_t n);

static void kernel_relu(float *restrict int_1, const float *restrict x, const f16 *x_1, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int_1[i] = lw_max_f32(x[i] * 0.125f + lw_f32_from_f16(x_1[i]), 0.0f);
    }
}

void lw_kernel_relu(void *const *args, const lw_runtime *rt) {
    kernel_relu((float *)args[0], (const float *)args[1], (const f16 *)args[2], *(int64_t *)args[3]);
}
