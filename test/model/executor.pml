/* An executor, with at most one execution of the workflow: src/engine/execution.ts, src/store/postgres/settle.ts, src/fleet. */

#define FOR_A_WHILE 1
#define FOR_EVER 2
byte frozen[N];
/* The monotonic clock says so: the lease may have lapsed, and what runs has not been compared with the rows since. */
bool doubtful[N];
/* Ghost: an operator took the ownership away, and the hint is on its way. No lease tells of that. */
bool cancelledUnawares[N];
byte crashes, lapses, leaves;

/* phases */
#define IDLE 0     /* no execution of it here */
#define CLAIMED 1  /* the claim has committed, the reply is on its way */
#define VERIFIED 2 /* the reply was late, and verify_ownership has been asked */
#define CALLING 3  /* at the next call, or at the end */
#define CHECKED 4  /* mayRunBody has let it through; frozen before the body begins */
#define SENDING 5  /* a statement is on its way, and not executed yet */
#define ANSWERED 6 /* the answer is on its way */
#define SUSPENDING_HERE 7
#define OPEN 8     /* inside the transaction: the body has run */
#define VERIFYING 9 /* inside the transaction: checkpoint_one has locked the row, COMMIT has not been sent */
#define ASKING 10  /* what became of a COMMIT without a reply */
#define PARKED 11
#define APART 12   /* mutant CHECK_APART: checked, not yet written */
#define RUNNING (phase >= CALLING && phase != PARKED)

#ifdef ADOPTS_UNSEEN
#define HERE (RUNNING && myToken == token)
#else
#define HERE ((RUNNING || phase == VERIFIED) && myToken == token)
#endif
#define STRAY (status == pending && owner == me && !HERE)
#define OWNS (status == pending && token == myToken)
#define UP (frozen[me] == 0)

/* claim_work: given back, resumed or new; due; or its owner's lease has lapsed, as that of the dead and the frozen does by itself. */
#define LAPSED (owner == NOBODY || (owner != me && (frozen[owner % N] || lapses < LAPSES)))
#define CLAIMABLE (lock == FREE && (status == enqueued || (status == suspended && due) || (status == pending && LAPSED)))

/* Whoever was frozen after it had
   looked at its lease begins that one body all the same, and so does who has not been told yet that an operator took the workflow away.
   A transaction's body may run twice, if the first one's COMMIT comes late: it is rolled back then. */
inline begin_body(excuse) {
  CHECK(8, loss_sticks, !hasLost);
  CHECK(5, no_rerun, result[call] == 0 || ((excuse || cancelledUnawares[me]) && epoch != myEpoch))
}

/* What a handle here is told. */
inline tell(value) {
  CHECK(2, same_outcome, value == outcome)
}

/* The execution is over here. Its last statement may be on its way all the same, and its session open. */
inline leave() {
  if
  :: phase == SENDING && lateKind == 0 && losses < LOSSES ->
    losses++;
    lateKind = kind; lateToken = myToken; lateVersion = myVersion; lateEpoch = myEpoch; lateCall = call
  :: true
  fi;
  if
  :: phase == VERIFYING && lock == me -> lock = FREE
  :: else
  fi;
  memo[0] = 0; memo[1] = 0; call = 0; kind = 0; answer = 0; found = 0; asked = false; isLate = false; hasLost = false;
  cancelledUnawares[me] = false
}

inline forget_ownership() {
  myToken = 0; myVersion = 0; myEpoch = 0
}

inline park() {
  leave();
  forget_ownership();
  phase = PARKED
}

/* lose(): sticky. */
inline learn_loss() {
#ifdef LOSS_NOT_STICKY
  hasLost = true;
  kind = 0;
  answer = 0;
  phase = CALLING
#else
  park()
#endif
}

inline send(what) {
  CHECK(8, loss_sticks, !hasLost);
  kind = what;
  phase = SENDING
}

proctype Executor(byte me) {
  byte phase = IDLE;
  byte myToken, myVersion, myEpoch; /* Ownership */
  byte call, memo[2];               /* the next call; results that it knows: 0 is none */
  byte kind, answer, found;         /* the statement under way, and what came of it */
  bool asked;                       /* to be suspended, in vain: not again before it has looked for itself */
  bool isLate;                      /* the reply to the claim has taken so long that it may have been given back */
  bool hasLost;                     /* ghost, but for the mutant: it has been told that it is not the owner */
  byte givingBack, givingBackVersion; /* src/fleet/reconciler.ts: a token that is owned and not run here */

end:
  do
  /* Claiming ------------------------------------------------------------------------------------------------------ */

  :: atomic { UP && phase != CLAIMED && phase != VERIFIED && CLAIMABLE ->
      if
      :: RUNNING -> leave() /* #run: before.lose() */
      :: else
      fi;
      if
      :: status == pending && owner != NOBODY ->
        doubtful[owner] = true;
        if
        :: !frozen[owner] -> lapses++
        :: else
        fi
      :: else
      fi;
      epoch++;
      assert(epoch < 15);
#ifdef TOKEN_REUSED
      token = 1; /* made from the executor's name; and all of these were started under the same one */
#else
      token = epoch;
#endif
      version++;
      status = pending;
      owner = me;
      due = false;
      doubtful[me] = false; /* its own lease lasts: the function looks */
      if
      :: myToken = token; myVersion = version; myEpoch = epoch; phase = CLAIMED
      :: losses < LOSSES -> losses++; forget_ownership(); phase = PARKED /* owned, and not run */
      fi
    }

  /* The reply came in time. Its history is read by a statement of its own (load_history): later, perhaps by a zombie. */
  :: atomic { UP && phase == CLAIMED && !isLate ->
      memo[0] = result[0]; memo[1] = result[1];
      phase = CALLING
    }

  /* It came late: it may have been given back (ClaimLoop.#stillOwned). */
  :: atomic { UP && phase == CLAIMED && isLate ->
      isLate = false;
#ifndef ADOPTS_UNSEEN
      if
      :: givingBack == myToken -> park()
      :: else ->
#endif
        if
        :: OWNS -> phase = VERIFIED
        :: else -> park()
        fi
#ifndef ADOPTS_UNSEEN
      fi
#endif
    }
  :: atomic { UP && phase == VERIFIED ->
      memo[0] = result[0]; memo[1] = result[1];
      phase = CALLING
    }

  /* Reconciler: owned, not run. Read now, given back at some time (release_workflow). */
  :: atomic { UP && givingBack == 0 && STRAY && (phase != CLAIMED || losses < LOSSES) ->
      if
      :: phase == CLAIMED -> losses++; isLate = true
      :: else
      fi;
      givingBack = token; givingBackVersion = version
    }
  :: atomic { UP && givingBack != 0 && lock == FREE ->
      if
      :: FITS(givingBack, givingBackVersion) ->
        assert(status == pending && owner == me);
        status = enqueued; token = 0; owner = NOBODY; version = givingBackVersion + 1
      :: else
      fi;
      givingBack = 0; givingBackVersion = 0 /* after a conflict, the next comparison finds it again */
    }

  /* A hint, or a comparison: run, not owned. */
  :: atomic { UP && RUNNING && !OWNS && !hasLost && phase != SUSPENDING_HERE -> learn_loss() }

  /* The workflow's code ----------------------------------------------------------------------------------------------- */

  :: atomic { UP && phase == CALLING && call < 2 && memo[call % 2] != 0 -> /* Replay */
      CHECK(4, results_stay, memo[call] == result[call]);
      call++
    }
  :: atomic { UP && phase == CALLING && call < 2 && memo[call % 2] == 0 && KIND(call) != RECEIVE -> /* mayRunBody */
      if
#ifndef HEARTBEAT_REVIVES
      :: doubtful[me] && !OWNS -> learn_loss()
      :: !(doubtful[me] && !OWNS) -> phase = CHECKED
      :: !(doubtful[me] && !OWNS) ->
#else
      :: true ->
#endif
        begin_body(false);
        if
        :: KIND(call) == STEP -> send(CHECKPOINT)
        :: else -> phase = OPEN
        fi
      fi
    }
  :: atomic { UP && phase == CHECKED ->
      begin_body(doubtful[me]);
      if
      :: KIND(call) == STEP -> send(CHECKPOINT)
      :: else -> phase = OPEN
      fi
    }
  :: atomic { UP && phase == CALLING && call < 2 && memo[call % 2] == 0 && KIND(call) == RECEIVE && message == waiting ->
      asked = false;
      send(CONSUME)
    }
  :: atomic { UP && phase == CALLING && call < 2 && memo[call % 2] == 0 && KIND(call) == RECEIVE && message != waiting && !asked ->
      send(SUSPEND)
    }
  :: atomic { UP && phase == CALLING && call == 2 ->
      CHECK(4, results_stay, memo[0] == result[0] && memo[1] == result[1]);
      send(COMPLETE)
    }

  /* Statements -------------------------------------------------------------------------------------------------------- */

  :: atomic { UP && phase == SENDING && lock == FREE ->
#ifdef CHECK_APART
      if
      :: FITS(myToken, myVersion) && kind == CHECKPOINT -> phase = APART
      :: else ->
#endif
      if
      :: perform(kind, myToken, myVersion, myEpoch, call, answer);
        found = version;
        phase = (answer == LOOKING -> SUSPENDING_HERE : ANSWERED)
      :: losses < LOSSES -> /* executed, and no reply */
        losses++;
        perform(kind, myToken, myVersion, myEpoch, call, answer);
        answer = UNKNOWN;
        phase = ANSWERED
      fi
#ifdef CHECK_APART
      fi
#endif
    }
  :: atomic { UP && phase == SENDING && losses < LOSSES -> /* no reply, and not executed; or not yet */
      losses++;
      if
      :: lateKind == 0 ->
        lateKind = kind; lateToken = myToken; lateVersion = myVersion; lateEpoch = myEpoch; lateCall = call
      :: true
      fi;
      answer = UNKNOWN;
      phase = ANSWERED
    }
#ifdef CHECK_APART
  :: atomic { UP && phase == APART && lock == FREE ->
      write_result(myEpoch, version, call);
      found = version;
      answer = RECORDED;
      phase = ANSWERED
    }
#endif
  :: atomic { UP && phase == SUSPENDING_HERE && (released & (1 << myEpoch)) ->
      answer = RECORDED;
      phase = ANSWERED
    }
  :: atomic { UP && phase == SUSPENDING_HERE && losses < LOSSES -> losses++; answer = UNKNOWN; phase = ANSWERED }

  :: atomic { UP && phase == ANSWERED && answer == UNKNOWN ->
#ifdef UNKNOWN_IS_FAILURE
      if
      :: kind == CHECKPOINT -> kind = 0; answer = 0; phase = CALLING /* the step has failed: the next attempt */
      :: else -> answer = 0; phase = SENDING
      fi
#else
#ifdef UNKNOWN_IS_SUCCESS
      answer = RECORDED
#else
      answer = 0;
      phase = SENDING /* the same nonce again */
#endif
#endif
    }
  :: atomic { UP && phase == ANSWERED && answer == RECORDED ->
      myVersion++;
      answer = 0;
      found = 0;
      if
      :: kind == CHECKPOINT || kind == CONSUME ->
        CHECK(7, acks_resolved, result[call] == myEpoch);
        memo[call] = result[call];
        call++;
        kind = 0;
        phase = CALLING
      :: kind == COMPLETE ->
        tell(myEpoch); /* ended: the outcome is handed over, not read */
        park();
        phase = IDLE
      :: kind == SUSPEND || kind == RELEASE ->
        CHECK(7, acks_resolved, released & (1 << myEpoch));
        park()
      fi
    }
  :: atomic { UP && phase == ANSWERED && answer == NOT_NOW ->
      if
      :: kind == SUSPEND -> asked = true
      :: else
      fi;
      answer = 0; found = 0; kind = 0;
      phase = CALLING
    }
  :: atomic { UP && phase == ANSWERED && answer == CONFLICT ->
      myVersion = found;
      answer = 0;
      found = 0;
      if
      :: kind != RELEASE && leaves < LEAVES -> leaves++; send(RELEASE) /* too many of them: requeued */
      :: kind == CHECKPOINT && KIND(call) == TRANSACTION -> phase = CALLING /* rolled back: once more */
      :: !(kind == CHECKPOINT && KIND(call) == TRANSACTION) -> phase = SENDING
      fi
    }
  :: atomic { UP && phase == ANSWERED && answer == LOST ->
      CHECK(7, acks_resolved, !(kind == CHECKPOINT || kind == CONSUME) || result[call % 2] != myEpoch);
      CHECK(7, acks_resolved, kind != COMPLETE || outcome != myEpoch);
      CHECK(7, acks_resolved, kind != RELEASE || !(released & (1 << myEpoch)));
      answer = 0;
      found = 0;
      learn_loss()
    }
  :: atomic { UP && phase == ANSWERED && answer == NONDETERMINISM ->
      CHECK(7, acks_resolved, false); /* this code is deterministic: it is its own result that it has met */
      park()
    }

  /* The transaction: body, then checkpoint_one, then COMMIT, in one session --------------------------------------------- */

  :: atomic { UP && phase == OPEN && lock == FREE ->
#ifdef EFFECT_APART
      take_effect(); /* and its result by a transaction of its own */
      send(CHECKPOINT)
#else
      if
      :: FITS(myToken, myVersion) -> lock = me; phase = VERIFYING
      :: else -> /* rolled back */
        classify((result[call] == myEpoch), myToken, call, answer);
#ifdef COMMITS_TWICE
        if
        :: answer == RECORDED -> take_effect()
        :: else
        fi;
#endif
        found = version;
        kind = CHECKPOINT;
        phase = ANSWERED
      fi
#endif
    }
  :: atomic { UP && phase == OPEN && losses < LOSSES -> losses++; phase = ASKING } /* the connection breaks */
  :: atomic { UP && phase == VERIFYING && lock == me ->
      if
      :: write_result(myEpoch, myVersion, call); take_effect(); lock = FREE;
        kind = CHECKPOINT; answer = RECORDED; phase = ANSWERED
      :: losses < LOSSES -> losses++; write_result(myEpoch, myVersion, call); take_effect(); lock = FREE; phase = ASKING
      :: losses < LOSSES -> losses++; lock = FREE; phase = ASKING
      :: losses < LOSSES -> losses++; lock = COMMITTING; lockEpoch = myEpoch; phase = ASKING
      fi
    }
  :: atomic { UP && phase == VERIFYING && lock != me -> phase = ASKING } /* the session was ended meanwhile */
  :: atomic { UP && phase == ASKING -> /* by the nonce, without a lock; a COMMIT that comes later meets the check of the next try */
      if
      :: result[call] == myEpoch -> kind = CHECKPOINT; answer = RECORDED; phase = ANSWERED
      :: result[call] != myEpoch && !OWNS -> learn_loss()
      :: result[call] != myEpoch && OWNS -> phase = OPEN
      fi
    }

  /* Leaving ------------------------------------------------------------------------------------------------------------- */

  :: atomic { UP && RUNNING && phase != SUSPENDING_HERE && phase != APART && !hasLost && leaves < LEAVES &&
              !(phase == SENDING && kind == RELEASE) && !(phase == ANSWERED && kind == RELEASE) -> /* giveBack */
      leaves++;
      leave();
      send(RELEASE)
    }
  :: atomic { UP && phase == PARKED && outcome != 0 -> tell(outcome); phase = IDLE }
#ifdef PARKED_TELLS_ITS_OWN
  :: atomic { UP && phase == ANSWERED && answer == LOST && kind == COMPLETE -> tell(myEpoch); park(); phase = IDLE }
#endif

  /* A process dies; the next one has another incarnation, and nothing in its memory. */
  :: atomic { crashes < CRASHES && (phase != IDLE || givingBack != 0) && frozen[me] != FOR_EVER ->
      crashes++;
      if
      :: phase == VERIFYING && lock == me ->
        if
        :: lock = ORPHAN
        :: lock = FREE
        fi
      :: else
      fi;
      leave();
      forget_ownership();
      found = 0; givingBack = 0; givingBackVersion = 0;
      doubtful[me] = false;
      frozen[me] = 0;
      if
      :: status == pending && owner == me -> owner = NOBODY
      :: else
      fi;
      phase = IDLE
    }

#if FIRST == RECEIVE || SECOND == RECEIVE
  /* drain_wakeups, before a claim. */
#ifdef DRAINS_WITHOUT_LOCK
  :: atomic { UP && wakeup ->
#else
  :: atomic { UP && wakeup && lock == FREE ->
#endif
      if
      :: status == suspended && !due -> due = true; version++
      :: else
      fi;
      wakeup = false
    }
#endif
  od
}
