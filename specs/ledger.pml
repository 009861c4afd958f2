/* One exactly_once job: its row of the ledger, its messages, two workers, whoever cancels it, and the consumer of dead messages.
 *
 * Each step that touches a store is one atomic statement; between any two of them a worker may die, and everybody else may move.
 * docs/model.md says what is checked, what is left out, and where each mutant (-DBUG_...) comes from.
 */

#ifndef TROUBLES
#define TROUBLES 3     /* deaths, lost or late writes, copies, releases and parks, of all kinds together */
#endif

#define WORKERS 2
#define MAX_RESCUES 1  /* 3 in the code */
#define LAST 2         /* attempts that the policy grants */
#define SKEW 1         /* LEASE_SKEW, in ticks; a lease lasts one tick, and so does the longest call */

/* Ends of leases are kept as what is left of them by the true clock, so that time has no end: LEVEL is "now". */
#define LEVEL 2
#define LONGEST (LEVEL + 2)

mtype = { ABSENT, SCHEDULED, RUNNING, RETRYING, SUCCEEDED, FAILED, CANCELLED }

/* Owner tokens. Those of workers are 0 and 1, fresh for each receive: see `fresh`. */
#define NOBODY 9
#define CALLER 8
#define CANCELLER 7

/* The row. */
mtype st = ABSENT;
byte att, fence, owner = NOBODY, lease, rescues;
bool asked;                    /* c: a cancel was requested */

/* Messages that may be received, by attempt; the one that a queue has given up; whether a worker's own comes back when it dies. */
byte visible[3];
byte dead;
bool held[WORKERS];
byte attempt_of[WORKERS];      /* of the message that a worker has; 0: none */

/* Workers: how far a clock is ahead, what is left of a worker's own lease, and of its call (2: a tick, 1: it ends before the next). */
byte ahead[WORKERS];
byte my_lease[WORKERS];
byte call_left[WORKERS];

/* A write that is still under way when its client has given it up. */
mtype = { NOTHING, LATE_CLAIM, LATE_SUCCEED, LATE_RETRY }
mtype late = NOTHING;
byte late_owner, late_attempt, late_fence, late_lease;

byte troubles;

/* What the invariants remember. */
bool accepted, confirmed, requested, has_succeeded, gone;
bool worked;                    /* the call of the claim that the row has now has worked */
byte letters, highest, last_called, last_failed, last_fence;
bool after[WORKERS];            /* a worker's claim was made when a cancel had been requested */

#define is_over(s) (s == SUCCEEDED || s == FAILED || s == CANCELLED)
#define messages (visible[1] + visible[2] + (dead > 0) + (attempt_of[0] > 0) + (attempt_of[1] > 0))

/* The lease of the row is over, for a worker: DynamoDB has no clock, so the comparison carries SKEW. */
#ifdef BUG_LEASE_WITHOUT_SKEW
#define lease_is_over(w) (lease < LEVEL + ahead[w])
#else
#define lease_is_over(w) (lease + SKEW < LEVEL + ahead[w])
#endif

inline ended(how) {
    assert(!is_over(st));      /* two attempts never both end a job */
    st = how; att = 0; worked = false; lease = 0; rescues = 0; asked = false;
    if :: how == SUCCEEDED -> has_succeeded = true :: else fi
}

/* A new receive has a new token: what is left of the one before belongs to nobody. */
inline fresh(w) {
    if :: owner == w -> owner = NOBODY :: else fi;
    if :: late != NOTHING && late_owner == w -> late_owner = NOBODY :: else fi
}

inline taken(w, a, next_fence) {
    st = RUNNING; att = a; owner = w; worked = false;
    assert(next_fence > highest);   /* a fence only grows */
    fence = next_fence; highest = fence
}

/* The conditional writes, each as the condition of DynamoDB has it. `done`: it applied, now or by an earlier try of the same owner. */
#ifdef BUG_CLAIM_WITHOUT_CONDITION
#define may_claim(a) (!is_over(st))
#else
#ifdef BUG_CLAIM_ANY_ATTEMPT
#define may_claim(a) (st == ABSENT || st == SCHEDULED || st == RETRYING)
#else
#define may_claim(a) (st == ABSENT || (st == SCHEDULED && att <= a) || (st == RETRYING && att < a))
#endif
#endif

#ifdef BUG_LOWER_ATTEMPT_RESCUES
#define may_rescue(a) true
#else
#define may_rescue(a) (att <= a)
#endif

#ifdef BUG_NO_OWNER_TOKEN
#define is_own(w, a) false
#else
#define is_own(w, a) (st == RUNNING && owner == w && att == a)
#endif

inline claim(w, a, until) {
    if
    :: may_claim(a) -> rescues = 0; lease = until; taken(w, a, fence + 1); done = true
    :: else -> done = is_own(w, a)
    fi
}

#ifdef BUG_SETTLE_WITHOUT_FENCE
#define is_mine(w, f) (st == RUNNING)
#else
#define is_mine(w, f) (st == RUNNING && fence == f && owner == w)
#endif

inline succeed(w, f) {
    if
    :: is_mine(w, f) -> ended(SUCCEEDED); done = true
    :: else -> done = (st == SUCCEEDED && fence == f && owner == w)
    fi
}

#ifdef BUG_RETRY_IGNORES_CANCEL
#define may_retry true
#define forget_cancel asked = false
#else
#define may_retry (!asked)
#define forget_cancel skip
#endif

inline retry(w, f) {
    if
    :: is_mine(w, f) && may_retry -> st = RETRYING; worked = false; lease = 0; rescues = 0; last_failed = att; forget_cancel; done = true
    :: else -> done = (st == RETRYING && fence == f && owner == w)
    fi
}

inline withdraw(w, f) {
    if
    :: is_mine(w, f) -> ended(CANCELLED); done = true
    :: else -> done = false
    fi
}

/* The message that a worker has comes back; or its queue has given it up meanwhile. */
inline comes_back() {
    if :: held[w] -> visible[a]++ :: else fi;
    held[w] = false; attempt_of[w] = 0; a = 0; f = 0; my_lease[w] = 0; call_left[w] = 0; after[w] = false; done = false
}

inline acknowledge() {
    held[w] = false; attempt_of[w] = 0; a = 0; f = 0; my_lease[w] = 0; after[w] = false; done = false
}

inline is_claimed() {
    f = fence; my_lease[w] = lease; after[w] = requested; done = false;
    goto claimed
}

inline late_write(kind) {
    late = kind; late_owner = w; late_attempt = a; late_fence = f; late_lease = LEVEL + ahead[w] + 1; troubles++
}

/* What follows from a refused claim, by the row that the refusal has answered with. */
inline decide() {
    if
    :: is_over(st) || (st != RUNNING && !may_claim(a)) || att > a -> acknowledge(); goto end_idle
#ifdef BUG_LOWER_ATTEMPT_RESCUES
    :: st == RUNNING && att > a && lease_is_over(w) -> f = fence; goto rescue
#endif
    :: st == RUNNING && att <= a && !lease_is_over(w) ->
       assert(!(owner == w && att == a));       /* nobody waits for its own lease */
#ifdef BUG_DEFER_BY_ACKNOWLEDGING
       acknowledge(); goto end_idle
#else
       comes_back(); goto end_idle
#endif
    :: st == RUNNING && att <= a && lease_is_over(w) && rescues >= MAX_RESCUES && att == a && !asked ->
       f = fence; goto bury
    :: st == RUNNING && att <= a && lease_is_over(w) && !(rescues >= MAX_RESCUES && att == a && !asked) ->
       f = fence; goto rescue
    fi
}

#define may_die troubles < TROUBLES
#define may_fail troubles < TROUBLES

proctype Worker(byte w) {
    byte a, f;
    bool done, may_release;

end_idle:
    do
    :: atomic { visible[1] > 0 -> visible[1]--; a = 1; held[w] = true; attempt_of[w] = 1; fresh(w) } break
    :: atomic { visible[2] > 0 -> visible[2]--; a = 2; held[w] = true; attempt_of[w] = 2; fresh(w) } break
    od;

claims:
    if
    :: atomic { claim(w, a, LEVEL + ahead[w] + 1);
                if
                :: done -> is_claimed()
                :: else -> decide()
                fi }
    :: atomic { may_fail -> troubles++; claim(w, a, LEVEL + ahead[w] + 1); goto claims }
    :: atomic { may_fail && late == NOTHING -> late_write(LATE_CLAIM); comes_back(); goto end_idle }
    :: atomic { may_fail && late == NOTHING -> late_write(LATE_CLAIM); goto claims }
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
#ifndef BUG_PARK_AFTER_CLAIM
    /* A breaker, a pause, a cap: the same attempt is placed for later, then the message is acknowledged. The row is not touched. */
    :: atomic { may_fail -> troubles++; visible[a]++ };
       if
       :: atomic { acknowledge(); goto end_idle }
       :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
       fi
#endif
    fi;

rescue:
    if
    :: atomic {
           if
           :: st == RUNNING && fence == f && lease_is_over(w) && may_rescue(a) ->
              rescues = (att == a -> rescues + 1 : 0);
              lease = LEVEL + ahead[w] + 1;
#ifdef BUG_RESCUE_KEEPS_FENCE
              att = a; owner = w; worked = false
#else
              taken(w, a, fence + 1)
#endif
              ; is_claimed()
           :: else ->
              if
              :: is_own(w, a) -> is_claimed()
              :: else -> goto claims
              fi
           fi }
    :: atomic { may_fail && st == RUNNING && fence == f && lease_is_over(w) && may_rescue(a) ->
           troubles++; rescues = (att == a -> rescues + 1 : 0); lease = LEVEL + ahead[w] + 1; taken(w, a, fence + 1);
           goto rescue }
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
    fi;

bury:
    if
    :: atomic {
           if
#ifdef BUG_BURY_WITHOUT_LOOKING
           :: true -> ended(FAILED); letters++; acknowledge()
#else
           :: st == RUNNING && fence == f -> ended(FAILED); letters++; acknowledge()
#endif
           :: else -> comes_back()
           fi; goto end_idle }
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
    fi;

claimed:
    atomic {
        if
#ifndef BUG_RESCUE_IGNORES_CANCEL
        :: asked -> goto withdraws
#endif
        :: else -> skip
        fi
    }
#ifdef BUG_PARK_AFTER_CLAIM
    if
    :: atomic { may_fail -> troubles++; visible[a]++ };
       if
       :: atomic { is_mine(w, f) -> st = RETRYING; acknowledge(); goto end_idle }
       :: atomic { !is_mine(w, f) -> comes_back(); goto end_idle }
       fi
    :: true
    fi;
#endif

    /* The call begins only if what is left of the lease covers it, by this worker's clock. Whatever else fails: given back. */
    if
    :: atomic { my_lease[w] >= LEVEL + ahead[w] + 1 ->
           assert(!has_succeeded);                      /* no second call after a success that was recorded */
           assert(!confirmed);                          /* a confirmed cancel: no later run begins */
           assert(!after[w]);                           /* a requested one: no later claim runs */
           assert(call_left[1 - w] == 0);               /* one at a time */
           assert(a >= last_called);                    /* attempts in their order */
           assert(a > last_failed);                     /* no attempt that has ended */
           assert(f > last_fence);                      /* a target that keeps the highest fence takes each */
           last_called = a; last_fence = f; call_left[w] = 2; my_lease[w] = 0 }
    :: atomic { my_lease[w] < LEVEL + ahead[w] + 1 -> goto release }
    :: atomic { may_fail -> troubles++; goto release }
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
    fi;
    if
    :: atomic { call_left[w] = 0;
           if :: is_mine(w, f) -> worked = true :: else fi;
           goto succeeds }
    :: atomic { call_left[w] = 0; goto fails }
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
    fi;

succeeds:
    if
    :: atomic { succeed(w, f);
                if
                :: done -> acknowledge()
                :: else -> comes_back()
                fi; goto end_idle }
    :: atomic { may_fail -> troubles++; succeed(w, f); goto succeeds }
    :: atomic { may_fail && late == NOTHING -> late_write(LATE_SUCCEED); goto succeeds }
#ifdef BUG_RELEASE_AFTER_CALL
    :: atomic { may_fail && late == NOTHING -> troubles++; may_release = true; goto release }
#else
    :: atomic { may_fail && late == NOTHING -> late_write(LATE_SUCCEED); comes_back(); goto end_idle }
#endif
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
    fi;

fails:
    if
    :: atomic { a == LAST -> skip };
#ifdef BUG_LETTER_FIRST
       letters++;
       if
       :: true
       :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
       fi;
#endif
       atomic {
           if
           :: is_mine(w, f) -> ended(FAILED);
#ifndef BUG_LETTER_FIRST
              letters++;             /* one transaction with the end */
#endif
              acknowledge()
           :: else -> comes_back()
           fi; goto end_idle }
#ifdef BUG_SETTLE_BEFORE_PLACE
    :: atomic { a < LAST -> retry(w, f);
           if
           :: done -> skip
           :: !done && is_mine(w, f) && asked -> goto withdraws
           :: else -> comes_back(); goto end_idle
           fi };
       if
       :: atomic { visible[a + 1]++; acknowledge(); goto end_idle }
       :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
       fi
#else
    :: atomic { a < LAST -> visible[a + 1]++ };       /* place, then settle */
retries:
       if
       :: atomic { retry(w, f);
              if
              :: done -> acknowledge(); goto end_idle
              :: !done && is_mine(w, f) && asked -> goto withdraws
              :: else -> comes_back(); goto end_idle
              fi }
       :: atomic { may_fail -> troubles++; retry(w, f); goto retries }
       :: atomic { may_fail && late == NOTHING -> late_write(LATE_RETRY); comes_back(); goto end_idle }
       :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
       fi
#endif
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
    fi;

withdraws:
    if
    :: atomic { withdraw(w, f);
           if
           :: done -> acknowledge()
           :: else -> comes_back()
           fi; goto end_idle }
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
    fi;

release:
    if
    :: atomic {
           if
           :: is_mine(w, f) -> st = SCHEDULED; lease = 0; rescues = 0
           :: else -> skip
           fi; comes_back(); goto end_idle }
    :: atomic { may_die -> troubles++; comes_back(); goto end_idle }
    fi
}

/* A client with an idempotency key: its row is there, and now it places the job. What was not answered is asked again. */
proctype Client() {
again:
    if
    :: atomic { visible[1]++; accepted = true; goto over }
    :: atomic { may_fail -> troubles++; visible[1]++ }   /* the answer is lost */
    :: atomic { may_fail -> troubles++ }                 /* it dies between row and message */
    fi;
    if
    :: atomic { st == SCHEDULED -> goto again }
    :: atomic { st != SCHEDULED -> accepted = true }     /* answered with the first id: it runs, has ended, is cancelled */
    fi;
over:
    skip
}

proctype Canceller() {
    byte f;
    accepted;
    if :: goto over :: true fi;     /* or nobody ever cancels it */
again:
    atomic {
        if
        :: gone -> goto over
#ifdef BUG_CANCEL_OVER_RUNNING
        :: !is_over(st) && !gone ->
#else
        :: (st == ABSENT || st == SCHEDULED || st == RETRYING) && !gone ->
#endif
           assert(!worked);                              /* no cancel is confirmed of what has run */
           ended(CANCELLED); owner = CANCELLER;
           if
           :: may_fail -> troubles++; goto again   /* the answer is lost: repeated, it finds its own */
           :: confirmed = true; goto over
           fi
        :: st == CANCELLED && owner == CANCELLER && !gone -> confirmed = true; goto over
        :: is_over(st) && !(st == CANCELLED && owner == CANCELLER) -> goto over
#ifndef BUG_CANCEL_OVER_RUNNING
        :: st == RUNNING && !gone -> f = fence
#endif
        fi };
    atomic {
        if
        :: st == RUNNING && fence == f -> asked = true; requested = true; goto over
        :: else -> goto again
        fi };
over:
    f = 0
}

proctype World() {
    byte i;
end_idle:
    do
    /* The clock: not over the end of a call, which is ended at its timeout by wall-clock time. */
    :: atomic { ((st == RUNNING && lease > 0) || call_left[0] == 2 || call_left[1] == 2) &&
                call_left[0] != 1 && call_left[1] != 1 && (my_lease[0] + my_lease[1] == 0 || may_fail) ->
           if :: my_lease[0] + my_lease[1] > 0 -> troubles++ :: else fi;    /* a worker that stands still between claim and call */
           if :: lease > 0 -> lease-- :: else fi;
           for (i : 0 .. 1) {
               if :: my_lease[i] > 0 -> my_lease[i]-- :: else fi;
               if :: call_left[i] == 2 -> call_left[i] = 1 :: else fi
           };
           i = 0 }
    :: atomic { may_fail && visible[1] > 0 -> troubles++; visible[1]++ }
    :: atomic { may_fail && visible[2] > 0 -> troubles++; visible[2]++ }
    /* Visible again while its worker still has it. */
    :: atomic { may_fail && held[0] -> troubles++; visible[attempt_of[0]]++; held[0] = false }
    /* Given up by its queue. */
    :: atomic { may_fail && dead == 0 && held[0] -> troubles++; dead = attempt_of[0]; held[0] = false }
    :: atomic { may_fail && dead == 0 && visible[1] > 0 -> troubles++; dead = 1; visible[1]-- }
    :: atomic { late != NOTHING -> bool done;
           if
           :: late == LATE_CLAIM -> claim(late_owner, late_attempt, late_lease)
           :: late == LATE_SUCCEED -> succeed(late_owner, late_fence)
           :: late == LATE_RETRY -> retry(late_owner, late_fence)
           fi;
           late = NOTHING; late_owner = 0; late_attempt = 0; late_fence = 0; late_lease = 0; done = false }
    /* The consumer of dead messages: what has not ended is placed again, unless a worker has it. */
    :: atomic { dead > 0 && (is_over(st) || att > dead || (st == RETRYING && att == dead)) -> dead = 0 }
    :: atomic { dead > 0 && !is_over(st) && att <= dead && (st == ABSENT || st == SCHEDULED || (st == RETRYING && att < dead) || (st == RUNNING && lease_is_over(0))) ->
           visible[dead]++; dead = 0 }
#ifdef BUG_DEAD_LETTERS_DROP_LEASED
    :: atomic { dead > 0 && st == RUNNING && !lease_is_over(0) -> dead = 0 }
#endif
    /* A row outlives every message that could meet it. */
#ifdef BUG_ROW_EXPIRES_BEFORE_MESSAGES
    :: atomic { is_over(st) && !gone && accepted ->
#else
    :: atomic { is_over(st) && !gone && messages == 0 && late == NOTHING && accepted ->
#endif
           assert(letters == (st == FAILED));            /* a dead letter of what failed for good, and of nothing else */
           gone = true; st = ABSENT; att = 0; fence = 0; highest = 0; owner = NOBODY; lease = 0; rescues = 0; asked = false }
    :: atomic { timeout ->
           assert(!accepted || is_over(st) || gone);       /* nothing lost: nobody can move any more */
           break }
    od
}

init {
    atomic {
        ahead[1] = SKEW;
        if
        :: visible[1] = 1; accepted = true         /* without a key: no row, and one message */
        :: st = SCHEDULED; owner = CALLER; run Client()
        fi;
        run Worker(0); run Worker(1); run Canceller(); run World()
    }
}
