// SPDX-License-Identifier: Apache-2.0
// Messages to people, and the colours that they have on a terminal.
#ifndef LEATI_TOOLS_STYLE_H
#define LEATI_TOOLS_STYLE_H

#include "leat/base.h"

// Whether text to that descriptor may be coloured: it is a terminal that can, and the environment
// variable NO_COLOR is not set.
bool leati_style_wanted(int fd);

// Tells the user what is wrong, in one line on standard error: "leat: …", or "leat VERB: …".
void leati_complain(const char *verb, const char *format, ...) LEAT_PRINTF(2, 3);

#endif
