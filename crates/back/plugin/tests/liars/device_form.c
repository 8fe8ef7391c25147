/* It has devices, and wants whole programs. */
#include "device.h"

DEVICE_LIAR("device-form", plugin.form = LW_FORM_PROGRAM)
