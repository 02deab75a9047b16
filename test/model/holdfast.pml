/*
 * The protocol of Holdfast: one workflow of two calls, N executors, and everything that may go wrong between them and the
 * database. README.md says what each transition stands for and what is left out; configurations.mjs has the parameters.
 *
 * An executor's step from one phase to the next is atomic, and anything may happen between two of them: that is a pause of any
 * length, and the process that goes on after it is a zombie. There is no clock. A lease may have lapsed at any moment.
 */

#ifndef N
#define N 2 /* executors */
#endif

/* What the workflow calls, first and second. */
#define STEP 1
#define TRANSACTION 2
#define RECEIVE 3
#ifndef FIRST
#define FIRST STEP
#endif
#ifndef SECOND
#define SECOND STEP
#endif
#define KIND(call) (call == 0 -> FIRST : SECOND)

/* How often each thing may go wrong, so that the state space is finite. */
#ifndef CRASHES
#define CRASHES 0 /* a process dies; another one begins with nothing in its memory */
#endif
#ifndef FREEZES
#define FREEZES 0 /* a process stands still, for a while or for ever */
#endif
#ifndef LAPSES
#define LAPSES 0 /* the lease of a process that is well lapses, and somebody takes over */
#endif
#ifndef LOSSES
#define LOSSES 0 /* no reply: to a statement that was executed, will be later, or never is */
#endif
#ifndef LEAVES
#define LEAVES 0 /* an executor gives back: it shuts down, or has met too many conflicts */
#endif
#ifndef BUMPS
#define BUMPS 0 /* somebody moves the version without taking ownership */
#endif
#ifndef CANCELS
#define CANCELS 0 /* an operator cancels; as often, resumes */
#endif

/* Which of the promises about what must happen is checked; none: what must not. */
#if defined(ENDS) || defined(WAKES) || defined(FREES)
#define LIVENESS
#endif

#include "promises.pml"
#include "database.pml"
#include "executor.pml"
#include "surroundings.pml"

/* Under weak fairness: who can do something from some moment on, does something. README.md says why that is no more than is true. */
#ifdef ENDS
/* Promise 1: every started workflow ends, as long as one executor lives. With it, no frozen process holds up a takeover for ever. */
ltl ends { <> [] ended }
#endif
#ifdef WAKES
ltl wakes { [] ((status == suspended && message == waiting) -> <> (status != suspended)) }
#endif
#ifdef FREES
ltl frees { [] (lock != FREE -> <> (lock == FREE)) }
#endif

init {
  atomic {
    run Executor(0);
    run Executor(1);
#if N > 2
    run Executor(2);
#endif
    run Server();
#ifdef LIVENESS
    run Time();
#endif
#if (FIRST == TRANSACTION || SECOND == TRANSACTION) && !defined(NO_IDLE_TIMEOUT)
    run IdleTimeout();
#endif
#if FREEZES > 0
    run Freezer();
#endif
#if CANCELS > 0 || BUMPS > 0
    run Operator();
#endif
#if FIRST == RECEIVE || SECOND == RECEIVE
    run Sender();
#endif
  }
}
