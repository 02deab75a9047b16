/* The promises, by the name that a violated assertion shows. ONLY checks a single one, so as to see which of them a mutant breaks. */
#ifndef ONLY
#define ONLY 0
#endif
hidden byte one_outcome;    /* 2: exactly one outcome is ever recorded, but for what an operator undid */
hidden byte same_outcome;   /* 2: every handle returns that one */
hidden byte owner_writes;   /* 3: a write by an execution that is not the owner changes nothing */
hidden byte results_stay;   /* 4: a recorded result never changes, and is what a replay returns */
hidden byte no_rerun;       /* 4: a body whose result was recorded does not run again */
hidden byte effect_once;    /* 4: a transaction takes effect exactly once */
hidden byte acks_resolved;  /* 5: a lost acknowledgement is resolved to what really happened */
hidden byte loss_sticks;    /* 6: after the loss was learnt, no write and no body */
#define CHECK(number, name, condition) assert((ONLY != 0 && ONLY != number) || (condition) || name)
