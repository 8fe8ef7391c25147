/* Its statuses are none. */
#include "device.h"

static uint32_t garbage(lw_memory *memory, uint64_t offset, const void *from, uint64_t bytes,
                        const lw_writer *error) {
    (void)memory, (void)offset, (void)from, (void)bytes;
    say(error, "perhaps");
    return 77;
}

DEVICE_LIAR("device-garbage", device.write = garbage)
