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
typedef struct { float at[8]; } f32x8;
static inline f32x8 lw_load_f32x8(const float *p) { f32x8 r; for (int i = 0; i < 8; i++) r.at[i] = p[i]; return r; }
typedef struct { f16 at[8]; } f16x8;
static inline f16x8 lw_load_f16x8(const f16 *p) { f16x8 r; for (int i = 0; i < 8; i++) r.at[i] = p[i]; return r; }
static inline float lw_f32_bits_of_u32(uint32_t a) { float r; memcpy(&r, &a, sizeof r); return r; }
static inline float lw_f32_from_f16(f16 a) { uint32_t m = a & 0x7fff; float r = m >= 0x7c00 ? lw_f32_bits_of_u32(0x7f800000u | m << 13) : m >> 10 ? lw_f32_bits_of_u32((m << 13) + (112u << 23)) : m * 0x1p-24f; return a & 0x8000 ? -r : r; }
static inline f32x8 lw_f32_from_f16x8(f16x8 a) { f32x8 r; for (int i = 0; i < 8; i++) r.at[i] = lw_f32_from_f16(a.at[i]); return r; }
typedef struct { uint8_t at[8]; } u8x8;
static inline u8x8 lw_lt_f32x8(f32x8 a, f32x8 b) { u8x8 r; for (int i = 0; i < 8; i++) r.at[i] = a.at[i] < b.at[i]; return r; }
static inline uint8_t lw_is_finite_f32(float a) { return fabsf(a) < INFINITY; }
static inline u8x8 lw_is_finite_f32x8(f32x8 a) { u8x8 r; for (int i = 0; i < 8; i++) r.at[i] = lw_is_finite_f32(a.at[i]); return r; }
static inline u8x8 lw_and_boolx8(u8x8 a, u8x8 b) { u8x8 r; for (int i = 0; i < 8; i++) r.at[i] = a.at[i] & b.at[i]; return r; }
static inline f32x8 lw_select_f32x8(u8x8 a, f32x8 b, f32x8 c) { f32x8 r; for (int i = 0; i < 8; i++) r.at[i] = a.at[i] ? b.at[i] : c.at[i]; return r; }
static inline float lw_round_f32(float a) { return rintf(a); }
static inline f32x8 lw_round_f32x8(f32x8 a) { f32x8 r; for (int i = 0; i < 8; i++) r.at[i] = lw_round_f32(a.at[i]); return r; }
typedef struct { int32_t at[8]; } i32x8;
static inline int32_t lw_i32_from_f32(float a) { return a >= -0x1p31f ? a < 0x1p31f ? (int32_t)a : INT32_MAX : a != a ? 0 : INT32_MIN; }
static inline i32x8 lw_i32_from_f32x8(f32x8 a) { i32x8 r; for (int i = 0; i < 8; i++) r.at[i] = lw_i32_from_f32(a.at[i]); return r; }
static inline int32_t lw_popcount_i32(int32_t a) { int n = 0; for (uint32_t u = (uint32_t)a; u; u &= u - 1) n++; return n; }
static inline i32x8 lw_popcount_i32x8(i32x8 a) { i32x8 r; for (int i = 0; i < 8; i++) r.at[i] = lw_popcount_i32(a.at[i]); return r; }
static inline int32_t lw_add_i32(int32_t a, int32_t b) { return (uint32_t)a + (uint32_t)b; }
static inline int32_t lw_reduce_sum_i32x8(i32x8 a) { int32_t r = a.at[0]; for (int i = 1; i < 8; i++) r = lw_add_i32(r, a.at[i]); return r; }
static inline f32x8 lw_insert_f32x8(f32x8 a, int lane, float b) { a.at[lane] = b; return a; }
static inline f32x8 lw_shuffle_f32x8_0_8_1_9_2_10_3_11(f32x8 a, f32x8 b) { f32x8 r = {{a.at[0], b.at[0], a.at[1], b.at[1], a.at[2], b.at[2], a.at[3], b.at[3]}}; return r; }
static inline void lw_store_f32x8(float *p, f32x8 a) { for (int i = 0; i < 8; i++) p[i] = a.at[i]; }
static inline float lw_sqrt_f32(float a) { return sqrtf(a); }
static uint32_t lw_encode(double a, int exponent_bits, int mantissa_bits, int infinities) {
    uint32_t sign_bit = 1u << (exponent_bits + mantissa_bits);
    uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    uint32_t nan = infinities ? infinity | 1u << (mantissa_bits - 1) : sign_bit - 1;
    uint32_t largest = infinities ? infinity - 1 : sign_bit - 2;
    uint32_t overflow = infinities ? infinity : nan;
    if (a != a) return nan;
    uint64_t word;
    memcpy(&word, &a, sizeof word);
    uint32_t sign = word >> 63 ? sign_bit : 0;
    int exponent = (int)(word >> 52 & 0x7ff) - 1023;
    if (exponent > 1 << (exponent_bits - 1)) return sign | overflow;
    int smallest = 2 - (1 << (exponent_bits - 1));
    if (exponent < smallest) exponent = smallest;
    uint64_t scale_bits = (uint64_t)(mantissa_bits - exponent + 1023) << 52;
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    uint32_t units = (uint32_t)rint(fabs(a) * scale);
    uint32_t bits = ((uint32_t)(exponent - smallest) << mantissa_bits) + units;
    return sign | (bits > largest ? overflow : bits);
}
static inline f16 lw_f16_from_f32(float a) { return lw_encode(a, 5, 10, 1); }
static inline f16 lw_sqrt_f16(f16 a) { return lw_f16_from_f32(lw_sqrt_f32(lw_f32_from_f16(a))); }
static inline f16x8 lw_sqrt_f16x8(f16x8 a) { f16x8 r; for (int i = 0; i < 8; i++) r.at[i] = lw_sqrt_f16(a.at[i]); return r; }
static inline void lw_store_f16x8(f16 *p, f16x8 a) { for (int i = 0; i < 8; i++) p[i] = a.at[i]; }

static void kernel_blend(float *restrict p, f16 *restrict h);

static void kernel_blend(float *restrict p, f16 *restrict h) {
    f32x8 v3 = lw_load_f32x8(p);
    f16x8 v4 = lw_load_f16x8(h);
    f32x8 v5 = lw_f32_from_f16x8(v4);
    f32x8 v9 = lw_select_f32x8(lw_and_boolx8(lw_lt_f32x8(v3, v5), lw_is_finite_f32x8(v5)), v3, v5);
    int32_t v13 = lw_reduce_sum_i32x8(lw_popcount_i32x8(lw_i32_from_f32x8(lw_round_f32x8(v9))));
    f32x8 v16 = lw_shuffle_f32x8_0_8_1_9_2_10_3_11(lw_insert_f32x8(v9, 3, (float)v13), v5);
    lw_store_f32x8(p, v16);
    lw_store_f16x8(h, lw_sqrt_f16x8(v4));
}

void lw_kernel_blend(void *const *args, const lw_runtime *rt) {
    kernel_blend((float *)args[0], (f16 *)args[1]);
}
