// SPDX-License-Identifier: Apache-2.0
// The library beside the job file brought.so.
int brought_number(void);

int brought_number(void)
{
    return 4711;
}
