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

typedef float f32x4 __attribute__((vector_size(16)));
typedef f32x4 f32x4_u __attribute__((aligned(4), may_alias));
typedef struct lw_item {
    int64_t global_id[3], local_id[3], group_id[3];
    int64_t global_size[3], local_size[3], group_count[3];
} lw_item;
static inline float lw_f32_bits_of_u32(uint32_t a) { float r; __builtin_memcpy(&r, &a, sizeof r); return r; }
static inline uint32_t lw_u32_bits_of_f32(float a) { uint32_t r; __builtin_memcpy(&r, &a, sizeof r); return r; }
static inline float lw_atomic_add_f32(float *p, float a) {
    uint32_t *word = (uint32_t *)p, before = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    float old, new;
    do {
        old = lw_f32_bits_of_u32(before);
        new = old + a;
    } while (!__atomic_compare_exchange_n(word, &before, lw_u32_bits_of_f32(new), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return old;
}
static inline float lw_reduce_sum_f32x4(f32x4 a) { float r = a[0]; for (int i = 1; i < 4; i++) r = r + a[i]; return r; }
typedef struct { float at[16]; } lw_tile_f32_4x4;
static inline lw_tile_f32_4x4 lw_tile_f32_4x4_load(const float *p, int64_t stride) {
    lw_tile_f32_4x4 t;
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) t.at[r * 4 + c] = p[r * stride + c];
    return t;
}
static inline lw_tile_f32_4x4 lw_tile_f32_4x4_splat(float a) { lw_tile_f32_4x4 t; for (int i = 0; i < 16; i++) t.at[i] = a; return t; }
static inline float lw_mul_add_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline lw_tile_f32_4x4 lw_mma_f32_f32_f32_4x4x4(lw_tile_f32_4x4 l, lw_tile_f32_4x4 m, lw_tile_f32_4x4 t) {
    for (int r = 0; r < 4; r++)
        for (int k = 0; k < 4; k++)
            for (int c = 0; c < 4; c++) t.at[r * 4 + c] = lw_mul_add_f32(l.at[r * 4 + k], m.at[k * 4 + c], t.at[r * 4 + c]);
    return t;
}
static inline void lw_tile_f32_4x4_store(lw_tile_f32_4x4 t, float *p, int64_t stride) {
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) p[r * stride + c] = t.at[r * 4 + c];
}

typedef struct {
    float mass;
    f32x4_u at __attribute__((aligned(16)));
    int8_t tags[4];
} particle_t;


static float fn_square(float x);
static __attribute__((noinline)) void kernel_step(particle_t *restrict p, float *restrict total, const lw_item *item);

static float fn_square(float x) {
    return x * x;
}

static __attribute__((noinline)) void kernel_step(particle_t *restrict p, float *restrict total, const lw_item *item) {
    particle_t *v4 = p + item->global_id[0];
    f32x4_u *v5 = &v4->at;
    f32x4 v6 = v5[0];
    f32x4 v7 = v6 + v6;
    v5[0] = v7;
    float v10 = fn_square(v4->mass);
    lw_atomic_add_f32(total, v10);
    if (lw_reduce_sum_f32x4(v7) > 0.0f) {
        v4->tags[0] = -1;
    }
    lw_tile_f32_4x4 v22 = lw_mma_f32_f32_f32_4x4x4(lw_tile_f32_4x4_load(total, 4), lw_tile_f32_4x4_load(total, 4), lw_tile_f32_4x4_splat(0.0f));
    lw_tile_f32_4x4_store(v22, total, 4);
}

void lw_kernel_step(void *const *args, const lw_runtime *rt) {
    lw_item item;
    for (int axis = 0; axis < 3; axis++) {
        item.global_size[axis] = rt->global_size[axis];
        item.local_size[axis] = rt->local_size[axis];
        item.group_count[axis] = rt->global_size[axis] / rt->local_size[axis];
    }
    for (int64_t z = 0; z < item.global_size[2]; z++)
    for (int64_t y = 0; y < item.global_size[1]; y++)
    for (int64_t x = 0; x < item.global_size[0]; x++) {
        const int64_t id[3] = {x, y, z};
        for (int axis = 0; axis < 3; axis++) {
            item.global_id[axis] = id[axis];
            item.local_id[axis] = id[axis] % item.local_size[axis];
            item.group_id[axis] = id[axis] / item.local_size[axis];
        }
        kernel_step((particle_t *)args[0], (float *)args[1], &item);
    }
}
