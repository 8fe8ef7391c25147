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

static __attribute__((noinline)) void kernel_control(int32_t *p, int64_t n);

static __attribute__((noinline)) void kernel_control(int32_t *p, int64_t n) {
    int32_t v4 = p[0];
    p[0] = p[1];
    p[1] = v4;
    int64_t count;
    count = 0;
    while (count < n) {
        if (lw_stop()) break;
        int64_t v9 = count;
        count = v9 + 1;
        int32_t v11 = p[v9];
        if (v11 < 0) {
            break;
        } else {
            int32_t table[4] __attribute__((aligned(64)));
            int64_t v16 = v9 & 3;
            table[v16] = v11;
            int32_t v17 = table[v16];
            p[v9] = v17 + v17;
        }
    }
}

void lw_kernel_control(void *const *args, const lw_runtime *rt) {
    kernel_control((int32_t *)args[0], *(int64_t *)args[1]);
}
