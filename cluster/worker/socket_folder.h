// SPDX-License-Identifier: Apache-2.0
// Where a task manager has its socket file (leati_exchange_options.socket_path): a folder in its
// own, which nobody but its user may enter.
#ifndef LEATI_CLUSTER_WORKER_SOCKET_FOLDER_H
#define LEATI_CLUSTER_WORKER_SOCKET_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

// Makes it in `folder`, which is this process's alone, or takes it over, without the sockets that a
// process that was killed has left there. Its path goes to `made`, in full; false with a sentence.
bool leati_socket_folder_open(const char *folder, char *made, size_t size, char *why,
                              size_t why_size);
// Removes it if nothing else is in it.
void leati_socket_folder_close(const char *made);

#endif
