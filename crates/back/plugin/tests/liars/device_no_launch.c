/* It prepares a kernel and gives no launch. */
#include "device.h"

static uint32_t no_launch(lw_device *of, lw_code *code, lw_text kernel, const lw_launch_argument *arguments,
                          size_t count, lw_launch **launch, const lw_writer *error) {
    (void)of, (void)code, (void)kernel, (void)arguments, (void)count, (void)launch, (void)error;
    return LW_OK;
}

DEVICE_LIAR("device-no-launch", device.prepare = no_launch)
