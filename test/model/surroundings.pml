/* What is not an executor. Each may stop doing what nobody can rely on; what they must do, they do by weak fairness. */

/* PostgreSQL goes on with what it was sent, whatever became of the client. */
proctype Server() {
  byte answer;
end:
  do
  :: atomic { lock == SUSPENDING -> /* suspend_workflow: the update, and the commit */
      status = suspended;
      token = 0;
      owner = NOBODY;
      due = false;
      version++;
      released = released | (1 << lockEpoch);
      lock = FREE;
      lockEpoch = 0
    }
  :: atomic { lateKind != 0 && lock == FREE -> /* a statement that nobody waits for */
      if
      :: perform(lateKind, lateToken, lateVersion, lateEpoch, lateCall, answer)
      :: true
      fi;
      answer = 0;
      lateKind = 0; lateToken = 0; lateVersion = 0; lateEpoch = 0; lateCall = 0
    }
#if FIRST == TRANSACTION || SECOND == TRANSACTION
  :: atomic { lock == COMMITTING -> /* a COMMIT that nobody waits for, or that never comes */
      if
      :: write_result(lockEpoch, version, (SECOND == TRANSACTION -> 1 : 0)); take_effect()
      :: true
      fi;
      lock = FREE;
      lockEpoch = 0
    }
#endif
  od
}

/* idle_in_transaction_session_timeout */
proctype IdleTimeout() {
end:
  do
  :: atomic { lock == ORPHAN || (lock < N && frozen[lock % N]) -> lock = FREE }
  od
}

/* SIGSTOP, or a machine that stands still. Executor 0 goes on in the end: "as long as some executor lives". */
proctype Freezer() {
  byte freezes, who;
end:
  do
  :: atomic { freezes < FREEZES ->
      freezes++;
      if
      :: frozen[0] == 0 -> frozen[0] = FOR_A_WHILE
      :: frozen[1] == 0 -> frozen[1] = FOR_A_WHILE
      :: frozen[1] == 0 -> frozen[1] = FOR_EVER
#if N > 2
      :: frozen[2] == 0 -> frozen[2] = FOR_A_WHILE
      :: frozen[2] == 0 -> frozen[2] = FOR_EVER
#endif
      :: true -> freezes = FREEZES
      fi
    }
  :: atomic { frozen[0] == FOR_A_WHILE -> frozen[0] = 0 }
  :: atomic { frozen[1] == FOR_A_WHILE -> frozen[1] = 0 }
#if N > 2
  :: atomic { frozen[2] == FOR_A_WHILE -> frozen[2] = 0 }
#endif
  od
}

/* cancel_workflow, resume_workflow, prioritize_workflow. They wait for the row's lock. */
proctype Operator() {
  byte cancels, bumps;
end:
  do
  :: atomic { cancels < CANCELS && lock == FREE && !ended ->
      cancels++;
      CHECK(1, one_outcome, outcome == 0 && !succeeded);
      outcome = CANCELLED_OUTCOME;
      if
      :: status == pending && owner != NOBODY -> cancelledUnawares[owner] = true
      :: else
      fi;
      status = cancelled;
      token = 0;
      owner = NOBODY;
      due = false;
      version++
    }
  :: atomic { resumed < CANCELS && lock == FREE && status == cancelled ->
      resumed++;
      outcome = 0;
      status = enqueued;
      version++
    }
  :: atomic { bumps < BUMPS && lock == FREE && !ended -> bumps++; version++ }
  :: break /* leaves it at that */
  od
}

#if FIRST == RECEIVE || SECOND == RECEIVE
/* send_message, wake_up: the message and the wake-up are there when the transaction commits; what it sees of the status is older. */
proctype Sender() {
  bool sawSuspended;
end:
  atomic { true -> sawSuspended = (status == suspended) }
  atomic { true ->
    if
    :: !ended -> message = waiting;
#ifdef WAKEUP_NOT_RECORDED
      wakeup = sawSuspended
#else
      wakeup = true
#endif
    :: else
    fi
  }
}
#endif

#ifdef LIVENESS
/* Goes on when nothing else does. Without it, spin with -f does not see that the rest stands still. */
proctype Time() {
end:
  do
  :: losses = losses
  od
}
#endif
