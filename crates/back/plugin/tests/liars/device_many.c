/* It has more devices than there can be. */
#include "device.h"

static uint32_t many(void) {
    return UINT32_MAX;
}

DEVICE_LIAR("device-many", device.count = many)
