// SPDX-License-Identifier: Apache-2.0
// The library beside the job file brought.so.
__attribute__((visibility("default"))) int brought_number(void);

int brought_number(void)
{
    return 4711;
}
