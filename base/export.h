// SPDX-License-Identifier: Apache-2.0
// What the library's own modules (libleat-cluster, libleat-client) may call beside the public
// interface.
#ifndef LEATI_BASE_EXPORT_H
#define LEATI_BASE_EXPORT_H

// Before a declaration of a leati_ function: it is exported, under the version LEAT_PRIVATE, which
// changes with every release and which nobody else may use.
#define LEATI_SHARED __attribute__((visibility("default")))

#endif
