/* Its device cannot be opened. */
#include "device.h"

static uint32_t closed(uint32_t number, lw_device **opened, const lw_writer *error) {
    (void)number, (void)opened;
    say(error, "the lid is shut");
    return LW_FAILED;
}

DEVICE_LIAR("device-closed", device.open = closed)
