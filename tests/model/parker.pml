// SPDX-License-Identifier: Apache-2.0
// A parker over a futex: the permit that the other models treat as one step. Two threads unpark; the
// owner parks until it has seen what both of them had published before.

bit permit, in_kernel;
bit published[2];

// C: leati_unpark
active [2] proctype unparker()
{
    bit before;
#ifdef UNPARK_BEFORE_PUBLISHING
    d_step { before = permit; permit = 1; }
#endif
    published[_pid] = 1;
#ifndef UNPARK_BEFORE_PUBLISHING
    d_step { before = permit; permit = 1; }
#endif
    // C: leati_futex_wake
    if
#ifdef NO_WAKE_OF_PARKED
    :: !before
#else
    :: !before -> in_kernel = 0
#endif
    :: else
    fi
}

// C: leati_park
active proctype owner()
{
    bit before;
    do
    :: published[0] && published[1] -> break
    :: else ->
        do
        :: d_step { before = permit; permit = 0; }
            if
            :: before -> break
            :: else
            fi;
            // C: leati_futex_wait
#ifdef PARK_WITHOUT_EXPECTED
            in_kernel = 1;
            !in_kernel
#else
            if
            :: atomic { permit == 0 -> in_kernel = 1; }
                !in_kernel
            :: atomic { permit != 0 -> skip; }
            fi
#endif
        od
    od
}
