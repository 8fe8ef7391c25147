/* It does not want us. */
#include "honest.h"

const lw_plugin *loopwright_plugin(uint32_t abi_version, const lw_host *host) {
    (void)abi_version, (void)host;
    return NULL;
}
