/* It keeps its word. */
#include "device.h"

DEVICE_LIAR("device-honest", (void)0)
