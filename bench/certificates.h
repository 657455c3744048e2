// SPDX-License-Identifier: Apache-2.0
// Certificates for a bench, made when it runs: an authority, and one member that it has signed, by
// libcrypto alone.
#ifndef LEATI_BENCH_CERTIFICATES_H
#define LEATI_BENCH_CERTIFICATES_H

#include "network/nng/auth.h"

enum { CERTIFICATES_FOLDER = 64 };

// Makes a folder with the files, and gives its path. 0, or -1 after saying why.
int certificates_make(char folder[CERTIFICATES_FOLDER]);
void certificates_remove(const char *folder);

typedef struct certificate_paths {
    char cert[CERTIFICATES_FOLDER + 16], key[CERTIFICATES_FOLDER + 16],
        ca[CERTIFICATES_FOLDER + 16];
} certificate_paths;

// The names of the files in it, which point to `paths`.
leati_auth_files certificates_files(const char *folder, certificate_paths *paths);

#endif
