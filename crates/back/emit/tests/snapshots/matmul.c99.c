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

typedef struct { float at[8]; } f32x8;
static inline f32x8 lw_splat_f32x8(float a) { f32x8 r; for (int i = 0; i < 8; i++) r.at[i] = a; return r; }
static inline int64_t lw_mul_i64(int64_t a, int64_t b) { return (uint64_t)a * (uint64_t)b; }
static inline int64_t lw_add_i64(int64_t a, int64_t b) { return (uint64_t)a + (uint64_t)b; }
static inline f32x8 lw_load_f32x8(const float *p) { f32x8 r; for (int i = 0; i < 8; i++) r.at[i] = p[i]; return r; }
static inline float lw_mul_add_f32(float a, float b, float c) { return fmaf(a, b, c); }
static inline f32x8 lw_mul_add_f32x8(f32x8 a, f32x8 b, f32x8 c) { f32x8 r; for (int i = 0; i < 8; i++) r.at[i] = lw_mul_add_f32(a.at[i], b.at[i], c.at[i]); return r; }
static inline void lw_store_f32x8(float *p, f32x8 a) { for (int i = 0; i < 8; i++) p[i] = a.at[i]; }

static void kernel_matmul(float *restrict c, const float *restrict a, const float *restrict w, int64_t m, int64_t k, int64_t n, const lw_runtime *rt);

// The parallel loop i of matmul.
struct kernel_matmul_loop0 {
    int64_t n;
    int64_t k;
    const float *w;
    const float *a;
    float *c;
};

static void kernel_matmul_loop0(int64_t n, int64_t k, const float *restrict w, const float *restrict a, float *restrict c, int64_t begin, int64_t stop) {
    for (int64_t iteration = begin; iteration < stop; iteration++) {
        int64_t i = iteration * 2;
        for (int64_t j = 0; j < n; j += 8) {
            f32x8 acc0;
            f32x8 acc1;
            acc0 = lw_splat_f32x8(0.0f);
            acc1 = lw_splat_f32x8(0.0f);
            for (int64_t l = 0; l < k; l++) {
                f32x8 v18 = lw_load_f32x8(w + lw_add_i64(lw_mul_i64(l, n), j));
                f32x8 v24 = lw_mul_add_f32x8(lw_splat_f32x8(a[lw_add_i64(lw_mul_i64(i, k), l)]), v18, acc0);
                acc0 = v24;
                f32x8 v31 = lw_mul_add_f32x8(lw_splat_f32x8(a[lw_add_i64(lw_mul_i64(lw_add_i64(i, 1), k), l)]), v18, acc1);
                acc1 = v31;
            }
            lw_store_f32x8(c + lw_add_i64(lw_mul_i64(i, n), j), acc0);
            lw_store_f32x8(c + lw_add_i64(lw_mul_i64(lw_add_i64(i, 1), n), j), acc1);
        }
    }
}

static void kernel_matmul_loop0_task(void *environment, int64_t begin, int64_t stop) {
    const struct kernel_matmul_loop0 *captured = environment;
    kernel_matmul_loop0(captured->n, captured->k, captured->w, captured->a, captured->c, begin, stop);
}

static void kernel_matmul(float *restrict c, const float *restrict a, const float *restrict w, int64_t m, int64_t k, int64_t n, const lw_runtime *rt) {
    struct kernel_matmul_loop0 environment = {n, k, w, a, c};
    rt->parallel_for(rt->context, (m + 1) / 2, kernel_matmul_loop0_task, &environment);
}

void lw_kernel_matmul(void *const *args, const lw_runtime *rt) {
    kernel_matmul((float *)args[0], (const float *)args[1], (const float *)args[2], *(int64_t *)args[3], *(int64_t *)args[4], *(int64_t *)args[5], rt);
}
