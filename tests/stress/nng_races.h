// SPDX-License-Identifier: Apache-2.0
// For programs that run under ThreadSanitizer with a libnng that was not built for it: what it sees
// inside of libnng is not judged, as it does not see the atomics there. Include once a program.
#ifndef TESTS_STRESS_NNG_RACES_H
#define TESTS_STRESS_NNG_RACES_H

// ThreadSanitizer, which is a shared library, looks for it by its name.
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
    return "race:libnng.so\n";
}

#endif
