/* It allocates and gives no memory. */
#include "device.h"

static uint32_t no_memory(lw_device *of, uint64_t bytes, lw_memory **memory, const lw_writer *error) {
    (void)of, (void)bytes, (void)memory, (void)error;
    return LW_OK;
}

DEVICE_LIAR("device-no-memory", device.allocate = no_memory)
