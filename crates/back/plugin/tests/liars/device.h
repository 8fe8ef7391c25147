/* A plug-in with one device that keeps its word, in the host's memory, and a way to have it break it in one place. It
 * launches nothing, and says so. */

#include "honest.h"

#include <stdlib.h>

struct lw_device {
    int nothing;
};

struct lw_memory {
    unsigned char *bytes;
};

struct lw_launch {
    int nothing;
};

static struct lw_device the_device;
static struct lw_launch the_launch;

static inline uint32_t honest_count(void) {
    return 1;
}

static inline uint32_t honest_open(uint32_t number, lw_device **device, const lw_writer *error) {
    (void)number, (void)error;
    *device = &the_device;
    return LW_OK;
}

static inline void honest_close(lw_device *device) {
    (void)device;
}

static inline void honest_limits(lw_device *device, lw_device_limits *limits, const lw_writer *description) {
    (void)device;
    limits->threads = 2;
    limits->memory = 4096;
    say(description, "a device for tests");
}

static inline uint32_t honest_allocate(lw_device *device, uint64_t bytes, lw_memory **memory, const lw_writer *error) {
    (void)device, (void)error;
    if (bytes > 4096) {
        return LW_OUT_OF_MEMORY;
    }
    *memory = malloc(sizeof(lw_memory));
    (*memory)->bytes = calloc(bytes + 1, 1);
    return LW_OK;
}

static inline void honest_free(lw_memory *memory) {
    free(memory->bytes);
    free(memory);
}

static inline uint32_t honest_write(lw_memory *memory, uint64_t offset, const void *from, uint64_t bytes,
                                    const lw_writer *error) {
    (void)error;
    memcpy(memory->bytes + offset, from, bytes);
    return LW_OK;
}

static inline uint32_t honest_read(lw_memory *memory, uint64_t offset, void *to, uint64_t bytes,
                                   const lw_writer *error) {
    (void)error;
    memcpy(to, memory->bytes + offset, bytes);
    return LW_OK;
}

static inline uint32_t honest_prepare(lw_device *device, lw_code *code, lw_text kernel,
                                      const lw_launch_argument *arguments, size_t count, lw_launch **launch,
                                      const lw_writer *error) {
    (void)device, (void)code, (void)kernel, (void)arguments, (void)count, (void)error;
    *launch = &the_launch;
    return LW_OK;
}

static inline uint32_t honest_launch(lw_launch *launch, const lw_launch_call *call, const lw_writer *error) {
    (void)launch, (void)call;
    say(error, "there is nothing to launch");
    return LW_FAILED;
}

static inline void honest_release_launch(lw_launch *launch) {
    (void)launch;
}

static inline lw_device_table honest_device(void) {
    lw_device_table made = {0};
    made.struct_size = sizeof made;
    made.count = honest_count;
    made.open = honest_open;
    made.close = honest_close;
    made.limits = honest_limits;
    made.allocate = honest_allocate;
    made.free = honest_free;
    made.write = honest_write;
    made.read = honest_read;
    made.prepare = honest_prepare;
    made.launch = honest_launch;
    made.release_launch = honest_release_launch;
    return made;
}

/* The plug-in of this name, with one thing changed in `plugin` or `device`. */
#define DEVICE_LIAR(name_, lie)            \
    static lw_device_table device;         \
    LIAR(name_, (device = honest_device(), plugin.run = NULL, plugin.device = &device, lie))
