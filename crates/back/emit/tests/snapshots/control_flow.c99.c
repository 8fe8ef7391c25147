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

static inline int64_t lw_add_i64(int64_t a, int64_t b) { return (uint64_t)a + (uint64_t)b; }
static inline int32_t lw_add_i32(int32_t a, int32_t b) { return (uint32_t)a + (uint32_t)b; }

static void kernel_control(int32_t *p, int64_t n);

static void kernel_control(int32_t *p, int64_t n) {
    int32_t v4 = p[0];
    p[0] = p[1];
    p[1] = v4;
    int64_t count;
    count = 0;
    while (count < n) {
        int64_t v9 = count;
        count = lw_add_i64(v9, 1);
        int32_t v11 = p[v9];
        if (v11 < 0) {
            break;
        } else {
            int32_t table[4];
            int64_t v16 = v9 & 3;
            table[v16] = v11;
            int32_t v17 = table[v16];
            p[v9] = lw_add_i32(v17, v17);
        }
    }
}

void lw_kernel_control(void *const *args, const lw_runtime *rt) {
    kernel_control((int32_t *)args[0], *(int64_t *)args[1]);
}
