// SPDX-License-Identifier: Apache-2.0
// Where the calling thread has crashed: which task it works for, and which operator of that.
//
// Nothing is noted on the way of a record for this. Of the operators of a chain, the one that was
// running is guessed from what a crash leaves: its context, its operator or its output stands in a
// register, or in a frame of the stack. Who emits calls whom it emits to, so of several that are
// found the last in the chain has been reached. Only registers that calls preserve are trusted: the
// others may still hold what an operator has left that returned long ago. Everything here is
// async-signal-safe: plain reads of what cannot go away during the thread's turn, and of its own
// stack within its bounds.
#include <string.h>
#include <ucontext.h>

#include "runtime/placement_impl.h"
#include "runtime/scheduler_impl.h"

enum { STACK_BYTES = 64 * 1024 };

// It is no global state of the library: it only says for whom this thread works, if it is one that
// an operator has started.
static _Thread_local const leat_ctx *employer;

void leati_crash_works_for(const leat_ctx *ctx)
{
    employer = ctx;
}

// --- text, without stdio ---

typedef struct text {
    char *data;
    size_t size, length;
} text;

static void put_text(text *to, const char *from)
{
    while (*from && to->length + 1 < to->size)
        to->data[to->length++] = *from++;
    if (to->size)
        to->data[to->length] = '\0';
}

static void put_number(text *to, uint32_t number)
{
    char digits[11];
    char *at = &digits[sizeof digits - 1];
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put_text(to, at);
}

// --- guessing the operator ---

// The operator that a word points to, or UINT32_MAX.
static uint32_t operator_at(const leati_chain *chain, uintptr_t word)
{
    if (word >= (uintptr_t)chain->ctx && word < (uintptr_t)(chain->ctx + chain->count))
        return (uint32_t)((word - (uintptr_t)chain->ctx) / sizeof *chain->ctx);
    if (word >= (uintptr_t)chain->outs && word < (uintptr_t)(chain->outs + chain->count))
        return (uint32_t)((word - (uintptr_t)chain->outs) / sizeof *chain->outs);
    for (uint32_t i = 0; word && i < chain->count; i++)
        if (word == (uintptr_t)chain->ctx[i].op)
            return i;
    return UINT32_MAX;
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a == UINT32_MAX || (b != UINT32_MAX && b > a) ? b : a;
}

// The first operator on a stretch of the stack. The words are looked at as they are, whatever
// frames they belong to.
__attribute__((no_sanitize("address"))) static uint32_t
search_stack(const leati_chain *chain, const uintptr_t *from, const uintptr_t *end)
{
    uint32_t found = UINT32_MAX;
    for (; from < end && found == UINT32_MAX; from++)
        found = operator_at(chain, *from);
    return found;
}

typedef struct registers {
    uintptr_t sp;
    uint32_t count, preserved; // those first that calls preserve
    uintptr_t values[16];
} registers;

static void take_registers(const ucontext_t *context, registers *r)
{
#if defined(__x86_64__)
    static const int which[] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14,
                                REG_R15, REG_RDI, REG_RSI, REG_RDX};
    r->sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        r->values[r->count++] = (uintptr_t)context->uc_mcontext.gregs[which[i]];
    r->preserved = 6;
#elif defined(__aarch64__)
    r->sp = (uintptr_t)context->uc_mcontext.sp;
    for (uint32_t i = 19; i < 29; i++)
        r->values[r->count++] = (uintptr_t)context->uc_mcontext.regs[i];
    r->preserved = r->count;
    for (uint32_t i = 0; i < 4; i++)
        r->values[r->count++] = (uintptr_t)context->uc_mcontext.regs[i];
#endif
}

static uint32_t search_registers(const leati_chain *chain, const registers *r, uint32_t from,
                                 uint32_t end)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = from; i < end; i++)
        found = later(found, operator_at(chain, r->values[i]));
    return found;
}

// The nearest frame that tells. Where a deep recursion hides who has begun it, nothing does: the
// frames at the other end of the stack, the runtime's own among them, have room in which other
// calls have left their words, and no name is better than a wrong one.
static uint32_t search_frames(const leati_chain *chain, const leati_thread *thread, uintptr_t sp)
{
    uintptr_t low = thread->stack_low, high = thread->stack_high;
    uintptr_t from = (sp + sizeof sp - 1) & ~(uintptr_t)(sizeof sp - 1);
    // A stack that has overflowed: the pointer is in the guard below it, where nothing can be read.
    if (from < low && low - from < STACK_BYTES)
        from = low;
    if (from < low || from >= high)
        return UINT32_MAX;
    uintptr_t end = high - from > STACK_BYTES ? from + STACK_BYTES : high;
    return search_stack(chain, (const uintptr_t *)from, (const uintptr_t *)end);
}

static uint32_t guess_operator(const leati_chain *chain, const leati_thread *thread,
                               const ucontext_t *context)
{
    registers r = {0};
    if (context)
        take_registers(context, &r);
    else
        r.sp = (uintptr_t)&r; // which is of no use if this is a stack of the handler's own
    // Registers are of the innermost function that works for any operator, unless those that it has
    // called use all of them; then they have saved them in their frames. A frame may also hold what
    // an earlier call has left in a place that nobody has written to since, so it comes second.
    uint32_t found = search_registers(chain, &r, 0, r.preserved);
    if (found == UINT32_MAX)
        found = search_frames(chain, thread, r.sp);
    // The arguments of a function that was called last.
    return found != UINT32_MAX ? found : search_registers(chain, &r, r.preserved, r.count);
}

// --- the whole ---

static void describe(const leati_task *t, uint32_t op, text *to)
{
    const leati_vertex *vertex = t->vertex;
    bool known = op < vertex->op_count;
    put_text(to, known ? "operator \"" : "one of the operators of \"");
    put_text(to, known ? vertex->ops[op].name : vertex->name);
    put_text(to, "\" (");
    put_number(to, t->subtask + 1);
    put_text(to, "/");
    put_number(to, vertex->parallelism);
    put_text(to, ")");
}

bool leati_crash_place(const void *context, uint64_t *attempt, uint32_t *vertex, uint32_t *subtask,
                       char *to, size_t size)
{
    const leati_thread *thread = leati_thread_self();
    leati_runnable *run =
        thread ? atomic_load_explicit(&thread->running, memory_order_relaxed) : NULL;
    const leati_task *t = run && leati_task_is(run) ? leati_task_of_runnable(run) : NULL;
    uint32_t op = UINT32_MAX;
    if (employer) {
        t = employer->task;
        op = (uint32_t)(employer - t->chain.ctx);
    } else if (t && t->chain.ctx) {
        op = t->chain.count == 1 ? 0 : guess_operator(&t->chain, thread, context);
    }
    if (!t)
        return false;
    *attempt = t->job->placed ? t->job->placed->attempt : 0;
    *vertex = t->vertex->id;
    *subtask = t->subtask;
    text line = {.data = to, .size = size};
    describe(t, op, &line);
    return true;
}
