/* Its table of devices ends before its functions. */
#include "device.h"

DEVICE_LIAR("device-small", device.struct_size = 16)
