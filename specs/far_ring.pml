/* The far ring: one shard, two buckets, a writer for each, two scanners that take turns under a lease, and rewinds.
 *
 * Time goes in halves of a bucket. A bucket opens AHEAD before its start by the clock of a scanner; a row is written while it is due
 * GUARD or more ahead by the clock of its writer, and a message is sent otherwise. Any two clocks differ by SKEW at most.
 */

#ifndef TROUBLES
#define TROUBLES 2     /* deaths of scanners, writes that are tried again, rewinds, of all kinds together */
#endif

#define BUCKET 2
#define AHEAD 2        /* LOOKAHEAD */
#define SKEW 1
#ifdef BUG_GUARD_WITHOUT_SKEW
#define MARGIN 0
#else
#define MARGIN SKEW
#endif
#define GUARD (AHEAD + BUCKET + MARGIN)
#define FIRST 7        /* the start of the first bucket */
#define LAST (FIRST + 2 * BUCKET)

byte now = 2;
byte troubles;
#define may_fail troubles < TROUBLES

/* Jobs: one of each bucket, due in the middle of it. */
#define JOBS 2
#define start(n) (FIRST + BUCKET * (n))
#define due(n) (start(n) + 1)

bool row[JOBS], sent[JOBS], accepted[JOBS];
byte writing;                      /* jobs that are still to be placed */

/* The row of the shard: who has taken it last (its epoch), whether and until when it is leased, and the cursor. */
byte holder, age;                  /* age: of its lease, which is over when older than SKEW by the clock of who takes it */
bool leased;
byte cursor;                       /* the next row that it has not passed */
bool is_done;

#define opens(n, clock) (clock + AHEAD >= start(n))

/* A cursor never passes a row that is not sent. */
#define passed(to) assert((to < 1 || !row[0] || !accepted[0] || sent[0]) && (to < 2 || !row[1] || !accepted[1] || sent[1]))

/* A writer, whose clock may be behind by SKEW. */
proctype Writer(byte n; byte behind) {
    bool is_late;
again:
    if
    :: atomic { due(n) >= now - behind + GUARD }                /* far; the write may stall before it lands */
    :: atomic { due(n) < now - behind + GUARD -> sent[n] = true; accepted[n] = true; goto over }
    fi;
    if
    :: atomic { row[n] = true }
    :: atomic { may_fail -> troubles++; goto again }      /* nothing is written: decided again */
    fi;
    /* Behind the write: was it too late to be sure? Then a near send follows; the ledger drops one of the two. */
    atomic {
        is_late = (now - behind > due(n) - AHEAD - BUCKET - MARGIN);
        if
#ifndef BUG_NO_LOOK_BACK
        :: is_late -> sent[n] = true
        :: !is_late -> skip
#else
        :: true
#endif
        fi;
        accepted[n] = true };
over:
    atomic { is_late = false; writing-- }
}

/* A scanner, or an operator who rewinds: takes the lease, begins where the cursor is. Its clock may be ahead. */
proctype Scanner(byte me; byte ahead) {
    byte at;
    bool back;
end_tick:
    do
    /* A tick that finds nothing open changes nothing, and is left out. */
    :: atomic { !is_done && (now == LAST || (cursor < JOBS && opens(cursor, now + ahead))) && (!leased || age + ahead > SKEW || now == LAST) ->
           leased = true; age = 0; 
#ifdef BUG_FIRST_TICK_BEGINS_NOW
           if :: holder == 0 -> cursor = (start(0) < now + ahead -> 1 : 0) :: else fi;
#endif
           holder = me; at = cursor } break
    :: is_done -> goto over
    od;
    if
    :: atomic { may_fail -> troubles++; at = 0; back = true; goto record }      /* a rewind */
    :: true
    fi;
read:
    if
    :: atomic { at < JOBS && opens(at, now + ahead) };
#ifdef BUG_CHECKPOINT_BEFORE_SEND
       atomic { if :: holder == me -> cursor = at + 1 :: else -> at = 0; goto end_tick fi };
#endif
       if
       :: atomic { if :: row[at] -> sent[at] = true :: else fi; at++; goto read }
       :: atomic { may_fail -> troubles++; at = 0; goto end_tick }      /* dies: its lease is not given back */
       fi
    :: atomic { !(at < JOBS && opens(at, now + ahead)) }
    fi;
record:
    /* The checkpoint gives the shard back. Whoever was overtaken is refused. */
    if
    :: atomic {
           if
#ifdef BUG_CHECKPOINT_WITHOUT_EPOCH
           :: true -> passed(at); assert(back || at >= cursor); cursor = at; leased = false; age = 0
#else
           :: holder == me -> passed(at); assert(back || at >= cursor); cursor = at; leased = false; age = 0; is_done = (now == LAST && at == JOBS)
           :: holder != me
#endif
           fi;
#ifdef BUG_CHECKPOINT_WITHOUT_EPOCH
           is_done = (now == LAST && at == JOBS);
#endif
           at = 0; back = false; goto end_tick }
    :: atomic { may_fail -> troubles++; at = 0; back = false; goto end_tick }
    fi;
over:
    skip
}

proctype World() {
    byte i;
    do
    :: atomic { now < LAST -> now++;
           if :: leased && age <= SKEW -> age++ :: else fi }
    :: atomic { now == LAST && is_done && writing == 0 ->
           for (i : 0 .. JOBS - 1) { assert(!accepted[i] || sent[i]) };      /* nothing that was accepted stays behind the cursor */
           break }
    od
}

init {
    atomic {
        writing = JOBS;
        if
        :: run Scanner(1, 0); run Scanner(2, 0); run Writer(0, SKEW); run Writer(1, SKEW)
        :: run Scanner(1, SKEW); run Scanner(2, 0); run Writer(0, 0); run Writer(1, 0)
        fi;
        run World()
    }
}
