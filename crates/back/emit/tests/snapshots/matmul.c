// C by Loopwright; to be compiled without contraction of a * b + c.
#include <stdint.h>

typedef struct lw_runtime {
    void *context;
    void (*parallel_for)(void *context, int64_t count,
                         void (*task)(void *environment, int64_t begin, int64_t stop),
                         void *environment);
    int64_t global_size[3];
    int64_t local_size[3];
} lw_runtime;

static const volatile uint32_t lw_quiet;
const volatile uint32_t *lw_attention = &lw_quiet;
uint32_t (*lw_poll)(void);
static inline int lw_stop(void) {
    return __builtin_expect(*lw_attention != 0, 0) && lw_poll && lw_poll() != 0;
}
typedef float f32x8 __attribute__((vector_size(32)));
static inline f32x8 lw_splat_f32x8(float a) { return (f32x8){a, a, a, a, a, a, a, a}; }
typedef f32x8 f32x8_u __attribute__((aligned(4), may_alias));
static inline f32x8 lw_load_f32x8(const void *p) { return *(const f32x8_u *)p; }
typedef float f32x4 __attribute__((vector_size(16)));
static inline float lw_mul_add_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_fma)
#define LW_ELEMENTWISE_FMA
#endif
#endif
static inline f32x4 lw_mul_add_f32x4(f32x4 a, f32x4 b, f32x4 c) { 
#if defined(LW_ELEMENTWISE_FMA)
    return __builtin_elementwise_fma(a, b, c);
#elif defined(__FMA__) && !defined(__clang__)
    return __builtin_ia32_vfmaddps(a, b, c);
#elif defined(__aarch64__) && !defined(__clang__)
    return __builtin_aarch64_fmav4sf(a, b, c);
#else
    f32x4 r; for (int i = 0; i < 4; i++) r[i] = lw_mul_add_f32(a[i], b[i], c[i]); return r;
#endif
 }
static inline f32x8 lw_mul_add_f32x8(f32x8 a, f32x8 b, f32x8 c) { 
#if defined(LW_ELEMENTWISE_FMA)
    return __builtin_elementwise_fma(a, b, c);
#elif defined(__FMA__) && !defined(__clang__)
    return __builtin_ia32_vfmaddps256(a, b, c);
#else
    union { f32x8 whole; f32x4 halves[2]; } x = {a}, y = {b}, z = {c};
    for (int i = 0; i < 2; i++) z.halves[i] = lw_mul_add_f32x4(x.halves[i], y.halves[i], z.halves[i]);
    return z.whole;
#endif
 }
static inline void lw_store_f32x8(void *p, f32x8 a) { *(f32x8_u *)p = a; }

static __attribute__((noinline)) void kernel_matmul(float *restrict c, const float *restrict a, const float *restrict w, int64_t m, int64_t k, int64_t n, const lw_runtime *rt);

// The parallel loop i of matmul.
struct kernel_matmul_loop0 {
    int64_t n;
    int64_t k;
    const float *w;
    const float *a;
    float *c;
};

static __attribute__((noinline)) void kernel_matmul_loop0(int64_t n, int64_t k, const float *restrict w, const float *restrict a, float *restrict c, int64_t begin, int64_t stop) {
    for (int64_t iteration = begin; iteration < stop; iteration++) {
        int64_t i = iteration * 2;
        if (lw_stop()) break;
        for (int64_t j = 0; j < n; j += 8) {
            if (lw_stop()) break;
            f32x8 acc0;
            f32x8 acc1;
            acc0 = lw_splat_f32x8(0.0f);
            acc1 = lw_splat_f32x8(0.0f);
            #pragma GCC unroll 8
            for (int64_t l = 0; l < k; l++) {
                f32x8 v18 = lw_load_f32x8(w + (l * n + j));
                acc0 = lw_mul_add_f32x8(lw_splat_f32x8(a[i * k + l]), v18, acc0);
                acc1 = lw_mul_add_f32x8(lw_splat_f32x8(a[(i + 1) * k + l]), v18, acc1);
            }
            lw_store_f32x8(c + (i * n + j), acc0);
            lw_store_f32x8(c + ((i + 1) * n + j), acc1);
        }
    }
}

static void kernel_matmul_loop0_task(void *environment, int64_t begin, int64_t stop) {
    const struct kernel_matmul_loop0 *captured = environment;
    kernel_matmul_loop0(captured->n, captured->k, captured->w, captured->a, captured->c, begin, stop);
}

static __attribute__((noinline)) void kernel_matmul(float *restrict c, const float *restrict a, const float *restrict w, int64_t m, int64_t k, int64_t n, const lw_runtime *rt) {
    struct kernel_matmul_loop0 environment = {n, k, w, a, c};
    rt->parallel_for(rt->context, (m + 1) / 2, kernel_matmul_loop0_task, &environment);
}

void lw_kernel_matmul(void *const *args, const lw_runtime *rt) {
    kernel_matmul((float *)args[0], (const float *)args[1], (const float *)args[2], *(int64_t *)args[3], *(int64_t *)args[4], *(int64_t *)args[5], rt);
}
