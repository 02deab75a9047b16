/* The rows of one workflow, and the functions of sql/functions that executions call. Each inline is one statement: it checks where
   it locks, and nothing happens between its check and its commit. Those that hold a lock for longer are in two parts. */

mtype:status = { enqueued, pending, suspended, success, cancelled };

#define NOBODY 200
#define FREE 201

/* workflow_status. Token 0 is null. Tokens are random; here each is the epoch that it was made for. */
mtype:status status = enqueued;
#define ended (status == success || status == cancelled)
byte owner = NOBODY;
byte token, epoch, version;
bool due; /* wake_at has come */

/* step_result and workflow_outcome: 0 is no row. A row carries the epoch of the execution that wrote it, which is its nonce and its
   value at once: no two executions write the same. */
byte result[2];
byte outcome;
#define CANCELLED_OUTCOME 255

/* workflow_ownership.nonce: epochs that were ended by a release or a suspension of their execution, as bits. */
short released;

/* message, wakeup */
#define waiting 1
#define received 2
byte message;
bool wakeup;

/* What the body of the transaction does to the application's tables: how often it has been committed. */
byte effects;
inline take_effect() {
  effects++;
  CHECK(6, effect_once, effects == 1)
}

/* Whose open transaction holds the lock of the row: an executor's, or one that no process can end any more. */
byte lock = FREE;
#define SUSPENDING 202 /* suspend_workflow has looked, and not yet committed */
#define COMMITTING 203 /* a COMMIT whose reply nobody waits for is on its way */
#define ORPHAN 204     /* the process is dead, the session is not */
byte lockEpoch; /* by whom, for SUSPENDING and COMMITTING */

/* Ghosts: what the model knows and no part of Holdfast does. */
bool succeeded;
byte resumed;

#ifdef NO_TOKEN
#define TOKEN_FITS(t) (true)
#else
#define TOKEN_FITS(t) (token == (t))
#endif
#ifdef NO_VERSION
#define VERSION_FITS(v) (true)
#else
#define VERSION_FITS(v) (version == (v))
#endif
#define FITS(t, v) (TOKEN_FITS(t) && VERSION_FITS(v))

/* By epochs, which no predicate looks at. */
#define ASSERT_OWNER(e) CHECK(3, owner_writes, status == pending && epoch == (e))

/* kinds of statements */
#define CHECKPOINT 1
#define CONSUME 2
#define COMPLETE 3
#define RELEASE 4
#define SUSPEND 5

/* answers */
#define UNKNOWN 1
#define RECORDED 2
#define LOST 3
#define CONFLICT 4
#define NONDETERMINISM 5
#define NOT_NOW 6 /* suspend_workflow: 'due'; consume_message: 'empty' */
#define LOOKING 7 /* suspend_workflow has locked the row */

/* classify_refusal, and the look for the nonce in the same statement. 'locked' is not an answer here: a statement whose row is locked
   is repeated until it is free, which is to wait. */
inline classify(isMine, t, call, answer) {
  if
#ifndef NO_NONCE
  :: isMine -> answer = RECORDED
#endif
  :: else ->
    if
    :: !TOKEN_FITS(t) -> answer = LOST
    :: else ->
      if
      :: call < 2 && result[call % 2] != 0 -> answer = NONDETERMINISM
      :: else -> answer = CONFLICT
      fi
    fi
  fi
}

/* checkpoint_one (and each workflow of a checkpoint_batch), consume_message: the row of step_result. */
inline write_result(e, v, call) {
  ASSERT_OWNER(e);
  CHECK(4, results_stay, result[call] == 0);
  result[call] = e;
  version = v + 1
}

inline write_end(e, v, newStatus) {
  ASSERT_OWNER(e);
  status = newStatus;
  token = 0;
  owner = NOBODY;
  version = v + 1
}

/* One statement of an execution with epoch e, and its answer. */
inline perform(kind, t, v, e, call, answer) {
  if
  :: kind == CHECKPOINT && FITS(t, v) ->
    write_result(e, v, call);
    answer = RECORDED
  :: kind == CONSUME && FITS(t, v) ->
    if
    :: message == waiting ->
      write_result(e, v, call);
      message = received;
      answer = RECORDED
    :: else -> answer = NOT_NOW
    fi
  :: kind == COMPLETE && FITS(t, v) -> /* complete_batch */
    CHECK(1, one_outcome, outcome == 0 && !succeeded);
#if FIRST == TRANSACTION || SECOND == TRANSACTION
    CHECK(6, effect_once, effects == 1);
#endif
    write_end(e, v, success);
    outcome = e;
    succeeded = true;
    answer = RECORDED
  :: kind == RELEASE && FITS(t, v) -> /* release_workflow, as ENQUEUED; as DELAYED, since there is no clock */
    write_end(e, v, enqueued);
    released = released | (1 << e);
    answer = RECORDED
  :: kind == SUSPEND && FITS(t, v) -> /* suspend_workflow: locks, then looks */
    ASSERT_OWNER(e);
    if
    :: message == waiting -> answer = NOT_NOW
    :: else ->
      lock = SUSPENDING;
      lockEpoch = e;
      answer = LOOKING
    fi
  :: else ->
    if
    :: kind == CHECKPOINT || kind == CONSUME -> classify((result[call % 2] == e), t, call, answer)
    :: kind == COMPLETE -> classify((outcome == e), t, 2, answer)
    :: kind == RELEASE || kind == SUSPEND -> classify((released & (1 << e)), t, 2, answer)
    fi
  fi
}

/* A statement that the database executes after its client has given up waiting, or died: one at a time. */
byte lateKind, lateToken, lateVersion, lateEpoch, lateCall;
byte losses;
