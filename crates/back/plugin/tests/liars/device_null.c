/* It cannot allocate. */
#include "device.h"

DEVICE_LIAR("device-null", device.allocate = NULL)
