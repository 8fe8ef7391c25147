/* It opens its device and gives none. */
#include "device.h"

static uint32_t no_handle(uint32_t number, lw_device **opened, const lw_writer *error) {
    (void)number, (void)opened, (void)error;
    return LW_OK;
}

DEVICE_LIAR("device-no-handle", device.open = no_handle)
