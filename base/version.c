// SPDX-License-Identifier: Apache-2.0
#include "leat/base.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

const char *leat_version(void)
{
    return TEXT(LEAT_VERSION_MAJOR) "." TEXT(LEAT_VERSION_MINOR) "." TEXT(LEAT_VERSION_PATCH);
}
