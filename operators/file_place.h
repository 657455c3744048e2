// SPDX-License-Identifier: Apache-2.0
// Counts the lines of a file that is being read, for messages.
#ifndef LEATI_OPERATORS_FILE_PLACE_H
#define LEATI_OPERATORS_FILE_PLACE_H

#include "operators/file_reader.h"

// Moves the reader's mark to `offset`, which must not lie before it; a file that is read at
// positions is read again for what is not in the buffer.
void leati_file_count_lines(leati_file_reader *reader, int64_t offset);

#endif
