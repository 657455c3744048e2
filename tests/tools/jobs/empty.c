// SPDX-License-Identifier: Apache-2.0
// A shared object that is no job file.
extern int leat_test_nothing;
int leat_test_nothing = 0;
