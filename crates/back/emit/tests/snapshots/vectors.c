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

typedef uint16_t f16;
typedef float f32x8 __attribute__((vector_size(32)));
typedef f32x8 f32x8_u __attribute__((aligned(4), may_alias));
static inline f32x8 lw_load_f32x8(const void *p) { return *(const f32x8_u *)p; }
typedef f16 f16x8 __attribute__((vector_size(16)));
typedef f16x8 f16x8_u __attribute__((aligned(2), may_alias));
static inline f16x8 lw_load_f16x8(const void *p) { return *(const f16x8_u *)p; }
static inline float lw_f32_bits_of_u32(uint32_t a) { float r; __builtin_memcpy(&r, &a, sizeof r); return r; }
static inline float lw_f32_from_f16(f16 a) { 
#if defined(__F16C__)
    typedef short eight __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps((eight){(short)a, 0, 0, 0, 0, 0, 0, 0})[0];
#else
    uint32_t m = a & 0x7fff; float r = m >= 0x7c00 ? lw_f32_bits_of_u32(0x7f800000u | m << 13) : m >> 10 ? lw_f32_bits_of_u32((m << 13) + (112u << 23)) : m * 0x1p-24f;
    return a & 0x8000 ? -r : r;
#endif
 }
static inline f32x8 lw_f32_from_f16x8(f16x8 a) { 
#if defined(__F16C__)
    typedef short half __attribute__((vector_size(16)));
    return __builtin_ia32_vcvtph2ps256((half)a);
#else
    f32x8 r; for (int i = 0; i < 8; i++) r[i] = lw_f32_from_f16(a[i]); return r;
#endif
 }
typedef int32_t i32x8 __attribute__((vector_size(32)));
static inline float lw_abs_f32(float a) { return __builtin_fabsf(a); }
static inline f32x8 lw_abs_f32x8(f32x8 a) { f32x8 r; for (int i = 0; i < 8; i++) r[i] = lw_abs_f32(a[i]); return r; }
static inline i32x8 lw_is_finite_f32x8(f32x8 a) { return lw_abs_f32x8(a) < __builtin_inff(); }
static inline f32x8 lw_select_f32x8(i32x8 m, f32x8 a, f32x8 b) { return (f32x8)((m & (i32x8)a) | (~m & (i32x8)b)); }
static inline float lw_round_f32(float a) { return __builtin_rintf(a); }
static inline f32x8 lw_round_f32x8(f32x8 a) { f32x8 r; for (int i = 0; i < 8; i++) r[i] = lw_round_f32(a[i]); return r; }
static inline i32x8 lw_select_i32x8(i32x8 m, i32x8 a, i32x8 b) { return (i32x8)((m & (i32x8)a) | (~m & (i32x8)b)); }
static inline i32x8 lw_i32_from_f32x8(f32x8 a) {
    i32x8 below = a < -0x1p31f, beyond = a >= 0x1p31f;
    f32x8 inside = lw_select_f32x8((a >= -0x1p31f) & (a < 0x1p31f), a, (f32x8){0});
    i32x8 r = __builtin_convertvector(inside, i32x8);
    return lw_select_i32x8(below, (i32x8){0} + (INT32_MIN), lw_select_i32x8(beyond, (i32x8){0} + INT32_MAX, r));
}
static inline int32_t lw_popcount_i32(int32_t a) { return __builtin_popcountll((uint32_t)a); }
static inline i32x8 lw_popcount_i32x8(i32x8 a) { i32x8 r; for (int i = 0; i < 8; i++) r[i] = lw_popcount_i32(a[i]); return r; }
static inline int32_t lw_reduce_sum_i32x8(i32x8 a) { int32_t r = a[0]; for (int i = 1; i < 8; i++) r = r + a[i]; return r; }
static inline f32x8 lw_insert_f32x8_3(f32x8 a, float b) { return (f32x8){a[0], a[1], a[2], b, a[4], a[5], a[6], a[7]}; }
static inline f32x8 lw_shuffle_f32x8_0_8_1_9_2_10_3_11(f32x8 a, f32x8 b) { 
#if defined(__clang__)
    return (f32x8){a[0], b[0], a[1], b[1], a[2], b[2], a[3], b[3]};
#else
    return __builtin_shuffle(a, b, (i32x8){0, 8, 1, 9, 2, 10, 3, 11});
#endif
 }
static inline void lw_store_f32x8(void *p, f32x8 a) { *(f32x8_u *)p = a; }
static inline float lw_sqrt_f32(float a) { return __builtin_sqrtf(a); }
static inline f32x8 lw_sqrt_f32x8(f32x8 a) { f32x8 r; for (int i = 0; i < 8; i++) r[i] = lw_sqrt_f32(a[i]); return r; }
static __attribute__((noinline)) uint32_t lw_encode(double a, int exponent_bits, int mantissa_bits, int infinities) {
    uint32_t sign_bit = 1u << (exponent_bits + mantissa_bits);
    uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    uint32_t nan = infinities ? infinity | 1u << (mantissa_bits - 1) : sign_bit - 1;
    uint32_t largest = infinities ? infinity - 1 : sign_bit - 2;
    uint32_t overflow = infinities ? infinity : nan;
    if (a != a) return nan;
    uint64_t word;
    __builtin_memcpy(&word, &a, sizeof word);
    uint32_t sign = word >> 63 ? sign_bit : 0;
    int exponent = (int)(word >> 52 & 0x7ff) - 1023;
    if (exponent > 1 << (exponent_bits - 1)) return sign | overflow;
    int smallest = 2 - (1 << (exponent_bits - 1));
    if (exponent < smallest) exponent = smallest;
    uint64_t scale_bits = (uint64_t)(mantissa_bits - exponent + 1023) << 52;
    double scale;
    __builtin_memcpy(&scale, &scale_bits, sizeof scale);
    uint32_t units = (uint32_t)__builtin_rint(__builtin_fabs(a) * scale);
    uint32_t bits = ((uint32_t)(exponent - smallest) << mantissa_bits) + units;
    return sign | (bits > largest ? overflow : bits);
}
static inline f16 lw_f16_from_f32(float a) { 
#if defined(__F16C__)
    typedef float four __attribute__((vector_size(16)));
    typedef short eight __attribute__((vector_size(16)));
    eight r = (eight)__builtin_ia32_vcvtps2ph((four){a, 0, 0, 0}, 0);
    return (f16)r[0];
#else
    return lw_encode(a, 5, 10, 1);
#endif
 }
static inline f16x8 lw_f16_from_f32x8(f32x8 a) { 
#if defined(__F16C__)
    typedef short half __attribute__((vector_size(16)));
    return (f16x8)(half)__builtin_ia32_vcvtps2ph256(a, 0);
#else
    f16x8 r; for (int i = 0; i < 8; i++) r[i] = lw_f16_from_f32(a[i]); return r;
#endif
 }
static inline f16x8 lw_sqrt_f16x8(f16x8 a) { return lw_f16_from_f32x8(lw_sqrt_f32x8(lw_f32_from_f16x8(a))); }
static inline void lw_store_f16x8(void *p, f16x8 a) { *(f16x8_u *)p = a; }

static __attribute__((noinline)) void kernel_blend(float *restrict p, f16 *restrict h);

static __attribute__((noinline)) void kernel_blend(float *restrict p, f16 *restrict h) {
    f32x8 v3 = lw_load_f32x8(p);
    f16x8 v4 = lw_load_f16x8(h);
    f32x8 v5 = lw_f32_from_f16x8(v4);
    f32x8 v9 = lw_select_f32x8((v3 < v5) & lw_is_finite_f32x8(v5), v3, v5);
    int32_t v13 = lw_reduce_sum_i32x8(lw_popcount_i32x8(lw_i32_from_f32x8(lw_round_f32x8(v9))));
    f32x8 v16 = lw_shuffle_f32x8_0_8_1_9_2_10_3_11(lw_insert_f32x8_3(v9, (float)v13), v5);
    lw_store_f32x8(p, v16);
    lw_store_f16x8(h, lw_sqrt_f16x8(v4));
}

void lw_kernel_blend(void *const *args, const lw_runtime *rt) {
    kernel_blend((float *)args[0], (f16 *)args[1]);
}
