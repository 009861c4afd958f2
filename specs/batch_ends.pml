/* Ends by batch (decision 76): two exactly_once jobs, two workers, and one row for the ends of the jobs that a worker has received together.
 *
 * A job's row names the slot of its claim: the batch of its worker, and its place in it. A slot is written once: an end, by its
 * worker together with other slots of the same batch, or a seal, by whoever is about to take the attempt away. From the seal on the
 * job's own row decides, as it does without batches. Each step that touches a store is one atomic statement.
 */

#ifndef TROUBLES
#define TROUBLES 2     /* deaths, lost or late writes, copies, releases, stalls, of all kinds together */
#endif

#define JOBS 2
#define WORKERS 2
#ifndef BATCHES
#define BATCHES 3      /* batches that are received; one that dies has had its number */
#endif
#define NONE 15

mtype = { SCHEDULED, RUNNING, RETRYING, SUCCEEDED, FAILED, CANCELLED }
mtype = { EMPTY, END, SEAL }

/* Rows of jobs: owner names the batch of the claim. Slots of rows of batches: `slot[batch * JOBS + job]`. */
mtype st[JOBS] = SCHEDULED;
byte fence[JOBS], owner[JOBS] = NONE;
bool asked[JOBS];
bool lease_over[JOBS];         /* the lease of the row is over by every clock: `ledger.pml` has the clocks */
mtype slot[BATCHES * JOBS] = EMPTY;

/* Messages. That of a retry is another one. */
byte visible[JOBS];

/* Workers. */
byte batch[WORKERS] = NONE;    /* that it runs */
byte batches;                  /* that have begun */

/* A group write that is still under way when its client has given it up: the batch, and its members as bits. */
byte late_batch = NONE, late_members;

byte troubles;
bool once[JOBS];               /* a retry has been granted */
bool won[JOBS];                /* an end that is no failure has been recorded, wherever */
bool confirmed, busy;           /* busy: somebody is between two steps of a request, which lasts seconds and not days */

#define may_fail troubles < TROUBLES
#define bit(j) (1 << (j))

bool called[JOBS];             /* the claim that the row has now has called its target */
bool aged;               /* the row of job 0 is past its own ttl: it may be deleted, or stand for some days more */
bool wiped;                    /* rows of batches have been deleted */

/* What anybody sees who reads a row and follows its pointer. Without that a job that has ended says that it runs. */
#define at(b, j) slot[(b) * JOBS + (j)]
#define row_over(j) (st[j] == SUCCEEDED || st[j] == FAILED || st[j] == CANCELLED)
#define is_over(j) (row_over(j) || (st[j] == RUNNING && at(owner[j], j) == END))

inline row_ends(j, how) {
    assert(!row_over(j) && !won[j]);       /* no two ends, whether on the row or in a slot */
    st[j] = how; lease_over[j] = false; called[j] = false;
    if :: how == SUCCEEDED -> won[j] = true :: else fi
}

/* One write for several slots. done: it applied, now or by an earlier try. */
inline group(b, members) {
    i = 0; done = true;
#ifndef BUG_GROUP_WITHOUT_CONDITION
    do
    :: i < JOBS -> if :: (members & bit(i)) && at(b, i) == SEAL -> done = false :: else fi; i++
    :: else -> break
    od;
#endif
    i = 0;
    do
    :: i < JOBS ->
       if
       :: done && (members & bit(i)) && at(b, i) != END ->
          assert(st[i] == RUNNING && owner[i] == b);      /* an end in a slot is that of the job whose row points to it */
          assert(!won[i]);
          at(b, i) = END; won[i] = true
       :: else
       fi; i++
    :: else -> break
    od;
    i = 0
}

inline stops_here() {
    i = 0;
    do
    :: i < JOBS -> if :: got & bit(i) -> visible[i]++ :: else fi; fences[i] = 0; i++
    :: else -> break
    od;
    i = 0; got = 0; ok = 0; j = 0; seen = 0; named = 0; done = false; batch[w] = NONE
}

inline begins() { batch[w] = batches; batches++; j = 0 }
inline dies() { troubles++; stops_here() }

inline leaves(k) { got = got & ~bit(k); fences[k] = 0; seen = 0; named = 0 }
inline returns(k) { visible[k]++; leaves(k) }

#define mine(j) (st[j] == RUNNING && fence[j] == fences[j] && owner[j] == batch[w])

proctype Worker(byte w) {
    byte got, ok, j, i, seen, named;
    byte fences[JOBS];
    bool done;

    /* The first batch has both jobs. */
    if :: atomic { w == 0 -> got = 3; goto next } :: w == 1 fi;

end_idle:
    do
    :: atomic { batches < BATCHES && visible[0] > 0 -> visible[0]--; got = 1; begins() } break
    :: atomic { batches < BATCHES && visible[1] > 0 -> visible[1]--; got = 2; begins() } break
    :: atomic { batches < BATCHES && visible[0] > 0 && visible[1] > 0 -> visible[0]--; visible[1]--; got = 3; begins() } break
    od;

next:
    atomic {
        if
        :: j < JOBS && !(got & bit(j)) -> j++; goto next
        :: j < JOBS && (got & bit(j)) -> skip
        :: j == JOBS -> goto commit
        fi
    }

    if
    :: atomic {
           if
           :: st[j] == SCHEDULED || st[j] == RETRYING ->
              st[j] = RUNNING; fence[j]++; fences[j] = fence[j]; owner[j] = batch[w]; lease_over[j] = false; called[j] = false;
              goto claimed
           :: row_over(j) -> leaves(j); goto next
           :: st[j] == RUNNING -> named = owner[j]; seen = fence[j]
           fi }
    :: atomic { may_fail -> dies(); goto end_idle }
    fi;

    /* Refused: the row says that it runs. What its slot says comes first: the job may have ended. */
    atomic {
        if
        :: at(named, j) == END -> leaves(j); goto next
        :: at(named, j) != END && !(lease_over[j] && fence[j] == seen) -> returns(j); goto next
        :: at(named, j) != END && lease_over[j] && fence[j] == seen -> skip
        fi
    }
    /* A rescue. First its slot is sealed, if no end is there. */
#ifndef BUG_TAKE_BEFORE_SEAL
#ifndef BUG_TAKE_WITHOUT_SEAL
    if
    :: atomic {
           if
           :: at(named, j) == END -> leaves(j); goto next
           :: at(named, j) != END -> at(named, j) = SEAL
           fi }
    :: atomic { may_fail -> dies(); goto end_idle }
    fi;
#endif
#endif
    /* Then the row is taken. */
    if
    :: atomic {
           if
           :: st[j] == RUNNING && fence[j] == seen && lease_over[j] ->
              fence[j]++; fences[j] = fence[j]; owner[j] = batch[w]; lease_over[j] = false; called[j] = false
           :: else -> returns(j); goto next
           fi }
    :: atomic { may_fail -> dies(); goto end_idle }
    fi;
#ifdef BUG_TAKE_BEFORE_SEAL
    atomic { if :: at(named, j) == END -> returns(j); goto next :: else -> at(named, j) = SEAL fi };
#endif

claimed:
    atomic { seen = 0; named = 0;
        if
        :: asked[j] -> if :: mine(j) -> row_ends(j, CANCELLED); leaves(j) :: else -> returns(j) fi; goto next
        :: else
        fi }
    if
    :: atomic { mine(j) && !lease_over[j] ->
           assert(!won[j]);               /* no call behind an end that is durable */
           assert(!(confirmed && j == 0));
           called[j] = true;
           if
           :: ok = ok | bit(j)
           :: j == 0 -> goto fails
           fi }
    :: atomic { !(mine(j) && !lease_over[j]) -> if :: mine(j) -> st[j] = SCHEDULED :: else fi; returns(j); goto next }
    :: atomic { may_fail -> dies(); goto end_idle }
    fi;
    /* An end may wait for those of the batch that come, or not. */
    if
    :: j++; goto next
    :: j == 0 && (got & 2) -> goto commit
    fi;

    /* Every other end is written on the job's own row, as without batches: place, then settle. */
fails:
    if
    :: atomic { !once[0] -> once[0] = true; visible[0]++ };
       if
       :: atomic {
              if
              :: mine(0) && !asked[0] -> st[0] = RETRYING; lease_over[0] = false; called[0] = false; leaves(0)
              :: mine(0) && asked[0] -> row_ends(0, CANCELLED); leaves(0)
              :: else -> returns(0)
              fi; j++; goto next }
       :: atomic { may_fail -> dies(); goto end_idle }
       fi
    :: atomic { once[0] ->
           if
           :: mine(0) -> row_ends(0, FAILED); leaves(0)
           :: else -> returns(0)
           fi; j++; goto next }
    :: atomic { may_fail -> dies(); goto end_idle }
    fi;

commit:
    if :: ok == 0 -> goto committed :: else fi;
#ifdef BUG_ACKNOWLEDGE_BEFORE_COMMIT
    atomic { got = got & ~ok };
#endif
    if
    :: atomic { group(batch[w], ok);
           if
           :: done -> got = got & ~ok; ok = 0; done = false; goto committed
           :: else -> done = false; goto alone
           fi }
    :: atomic { may_fail -> troubles++; group(batch[w], ok); done = false; goto commit }
    :: atomic { may_fail && late_batch == NONE -> troubles++; late_batch = batch[w]; late_members = ok; goto commit }
    /* Nobody has told whether it was written: nothing else may be written of those jobs, and their messages come back. */
    :: atomic { may_fail && late_batch == NONE -> troubles++; late_batch = batch[w]; late_members = ok }
#ifdef BUG_SETTLE_AFTER_UNKNOWN
       goto alone_all
#else
#ifdef BUG_RELEASE_AFTER_UNKNOWN
       ;
       atomic { i = 0;
           do
           :: i < JOBS -> if :: (ok & bit(i)) && st[i] == RUNNING && fence[i] == fences[i] && owner[i] == batch[w] -> st[i] = SCHEDULED :: else fi; i++
           :: else -> break
           od; stops_here(); goto end_idle }
#else
       ;
       atomic { stops_here(); goto end_idle }
#endif
#endif
    :: atomic { may_fail -> dies(); goto end_idle }
    fi;

    /* Refused: those that are sealed end on their own rows, if these are still theirs; the others are tried again. */
alone:
#ifdef BUG_REFUSED_GROUP_IS_DONE
    atomic { got = got & ~ok; ok = 0; goto committed };
#endif
    if
    :: atomic { i = 0;
           do
           :: i < JOBS && (ok & bit(i)) && at(batch[w], i) == SEAL -> break
           :: i < JOBS && !((ok & bit(i)) && at(batch[w], i) == SEAL) -> i++
           :: i == JOBS -> break
           od;
           if
           :: i == JOBS -> i = 0; goto commit
           :: i < JOBS -> ok = ok & ~bit(i);
#ifdef BUG_ALONE_WITHOUT_FENCE
              if :: st[i] == RUNNING -> row_ends(i, SUCCEEDED); leaves(i)
#else
              if :: st[i] == RUNNING && fence[i] == fences[i] && owner[i] == batch[w] -> row_ends(i, SUCCEEDED); leaves(i)
#endif
              :: else -> returns(i)
              fi; i = 0; goto alone
           fi }
    :: atomic { may_fail -> dies(); goto end_idle }
    fi;
#ifdef BUG_SETTLE_AFTER_UNKNOWN
alone_all:
    atomic { i = 0;
        do
        :: i < JOBS ->
           if
           :: (ok & bit(i)) && st[i] == RUNNING && fence[i] == fences[i] && owner[i] == batch[w] -> row_ends(i, SUCCEEDED); leaves(i)
           :: (ok & bit(i)) && !(st[i] == RUNNING && fence[i] == fences[i] && owner[i] == batch[w]) -> returns(i)
           :: else
           fi; i++
        :: else -> break
        od; i = 0; ok = 0 };
#endif

committed:
    atomic {
        if
        :: j == 0 -> j = 1; goto next
        :: else -> stops_here(); goto end_idle
        fi }
}

/* Cancel of job 0. */
proctype Canceller() {
    byte seen, named;
    bool was;
again:
    atomic {
        was = is_over(0); busy = true;
        if
        :: st[0] == SCHEDULED || st[0] == RETRYING -> row_ends(0, CANCELLED); confirmed = true; goto over
        :: row_over(0) -> goto over
        :: st[0] == RUNNING -> seen = fence[0]; named = owner[0]
        fi }
#ifndef BUG_CANCEL_IGNORES_POINTER
    atomic {
        if
        :: at(named, 0) == END -> goto over
#ifndef BUG_EXPIRED_ROW_IS_READ
        :: aged -> goto over                /* the row is past its ttl: as if it were not there */
#endif
        :: else
        fi };
#endif
    atomic {
        if
        :: st[0] == RUNNING && fence[0] == seen -> asked[0] = true;
           assert(!was)                   /* what had ended when it was asked is not said to run */
        :: else -> goto again
        fi };
over:
    atomic { seen = 0; named = 0; was = false; busy = false }
}

/* Others who may end job 0: a dead-letter consumer or a worker that buries it, a schedule that gives its run up, and a target that
 * completes it by a request before its worker notes that it answered 202. */
proctype Others() {
    byte seen, named;
    bool completes;
    if :: completes = false :: completes = true fi;
end_wait:
    atomic {
        if
        :: !completes && st[0] == RUNNING && lease_over[0] -> seen = fence[0]; named = owner[0]; busy = true
        :: completes && st[0] == RUNNING && called[0] && !aged -> seen = fence[0]; named = owner[0]; busy = true
        fi };
    /* By the pointer it has ended; or its row is past its ttl, and the slot that says so may be gone. */
    atomic {
        if
        :: at(named, 0) == END -> goto over
#ifndef BUG_EXPIRED_ROW_IS_READ
        :: aged -> goto over
#endif
        :: else
        fi };
#ifndef BUG_OTHERS_END_WITHOUT_SEAL
    atomic { if :: at(named, 0) == END -> goto over :: else -> at(named, 0) = SEAL fi };
#endif
    atomic {
        if
        :: st[0] == RUNNING && fence[0] == seen && completes -> row_ends(0, SUCCEEDED)
        :: st[0] == RUNNING && fence[0] == seen && !completes && lease_over[0] -> row_ends(0, FAILED)
        :: else
        fi };
over:
    atomic { seen = 0; named = 0; completes = false; busy = false }
}

/* Whoever asks whether job 0 has ended: `forbid`, a chain from end to start, a get. The row, then the slot that it points to. */
proctype Reader() {
    byte named;
    bool was, says;
    atomic { was = is_over(0); says = row_over(0);
        if :: st[0] == RUNNING -> named = owner[0] :: else -> goto judge fi };
#ifndef BUG_READER_IGNORES_POINTER
    says = (at(named, 0) == END);
#endif
judge:
    assert(says || !was || wiped);
over:
    atomic { named = 0; was = false; says = false }
}

#define at_rest(j) (visible[j] == 0 && batch[0] == NONE && batch[1] == NONE && late_batch == NONE)

proctype World() {
    byte i;
    bool done;
end_idle:
    do
    :: atomic { st[0] == RUNNING && !lease_over[0] && !aged -> lease_over[0] = true }
    /* That of job 1 only where its worker does not run any more: so that it ends in the group of both, or is rescued by itself. */
    :: atomic { st[1] == RUNNING && !lease_over[1] && batch[0] != owner[1] && batch[1] != owner[1] && at(owner[1], 1) == EMPTY -> lease_over[1] = true }
    :: atomic { may_fail && visible[0] > 0 -> troubles++; visible[0]++ }
    :: atomic { late_batch != NONE -> group(late_batch, late_members); late_batch = NONE; late_members = 0; done = false }
    /* Messages have died; then the job's row may, then that of its batch: whatever reads meanwhile. */
    :: atomic { is_over(0) && at_rest(0) && !aged && !busy -> aged = true }
#ifdef BUG_BATCH_ROW_EXPIRES_FIRST
    :: atomic { is_over(0) && at_rest(0) && !wiped && is_over(1) && visible[1] == 0 && !busy ->
#else
    :: atomic { is_over(0) && at_rest(0) && !wiped && is_over(1) && visible[1] == 0 && aged && !busy ->
#endif
           wiped = true;
           for (i : 0 .. BATCHES * JOBS - 1) { slot[i] = EMPTY };
           i = 0 }
    :: atomic { timeout ->
           for (i : 0 .. JOBS - 1) { assert(is_over(i) || won[i] || visible[i] > 0) };    /* nothing lost */
           break }
    od
}

init {
    atomic {
        batch[0] = 0; batches = 1;
        run Worker(0); run Worker(1); run World();
        if :: run Canceller() :: run Others() :: run Reader() :: true fi
    }
}
