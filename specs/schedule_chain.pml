/* The chain of one schedule: its state row, its alarm rows, the scanner and a second one that has taken it over, the sweep, whoever
 * changes the schedule, and the worker of one of its fires.
 *
 * Time goes in halves of GUARD. Of all fires one is looked at, of either of the first times: what becomes of a fire depends on no other.
 * docs/model.md says what is checked, what is left out, and where each mutant (-DBUG_...) comes from.
 */

#ifndef TROUBLES
#define TROUBLES 1     /* deaths, lost and late writes, copies, takeovers, reads that are behind, rows that expire, of all kinds together */
#endif
#ifndef CHANGES
#define CHANGES 1      /* behind the creation */
#endif

#ifndef SLOW
#define SLOW 1         /* units of time that pass while somebody is at it */
#endif

#define GUARD 2        /* LOOKAHEAD + BUCKET + SKEW: nearer than that a fire is placed, and no alarm is sure to be read */
#define AHEAD 1        /* the scanner passes an alarm row from so long before its time */
#define MARGIN 1       /* beyond GUARD: when the alarm of what is near already comes due */
#define LAST 4         /* time ends */
#define VERSIONS (CHANGES + 1)
#define LONGEST (LAST + AHEAD)      /* later rows are never read, and are not kept */

byte now, troubles, slow;
#define may_fail troubles < TROUBLES

/* Definitions, by version, which never change: when a version fires, from when on it decides, and whether it fires at all. */
byte period;                        /* of all versions: below GUARD, or from GUARD + BUCKET on */
byte phase[VERSIONS + 1], since[VERSIONS + 1];
bool fires[VERSIONS + 1];

#define next_fire(v, t) (t + period - ((t + period - phase[v]) % period))
#define is_fire(v, t) (fires[v] && (t % period) == phase[v])

/* The state row. */
mtype = { ABSENT, ACTIVE, PAUSED, DELETED }
mtype st = ABSENT;
byte ver, born, link, alarm_at;     /* link: the next fire. alarm_at: of the row that was placed for it; 0: none yet */

/* Alarm rows, by version and time: the link that they carry. */
typedef Rows { byte link[LONGEST + 1] }
Rows row[VERSIONS + 1];
byte beyond;                        /* versions that have a later one */

/* The scanner: the first time that it has not handled, and who has the lease. */
byte cursor = 1;
bool leased, is_slow;               /* is_slow: the first scanner is at an alarm */
byte holder;

/* A write of an alarm row whose client has given it up. */
byte late_version, late_at, late_link;

/* The fire that is looked at: versions of which a message of it is left, and its row of the ledger. */
byte watched, messages;
mtype = { NONE, RAN, SKIPPED }
mtype ledger = NONE;
#ifdef BUG_ID_HAS_VERSION
byte has_run;                       /* versions */
#endif
byte runs;

bool is_lost;                       /* an alarm row has expired */
bool requesting;                    /* a request is under way; the sweep gives it REQUEST_LIMIT */
byte acknowledged;                  /* the last version that was acknowledged */
byte busy;                          /* of the scanners, the sweep and the user: those who are at it, two at most */

#define bit(v) (1 << (v))
#define may_run(v) (v == ver || (v >= born && v < ver && watched <= since[v + 1]))

inline place_fire(v, t) {
    if :: t == watched -> messages = messages | bit(v) :: else fi
}

/* What is behind the scanner is not read, and not kept. */
inline put_row(v, a, l) {
    if
    :: a > LONGEST -> beyond = beyond | bit(v)
    :: a < cursor
    :: else ->
#ifdef BUG_VERSION_NOT_IN_KEY
       row[1].link[a] = 0; row[VERSIONS].link[a] = 0;
#endif
       row[v].link[a] = l
    fi
}

/* The advance. An alarm that leads to one is that which the state names, or is ahead of it: else two chains go on. */
#ifdef BUG_ADVANCE_WITHOUT_VERSION
#define may_advance (link == from && st == ACTIVE)
#else
#ifdef BUG_ADVANCE_WITHOUT_LINK
#define may_advance (ver == v && st == ACTIVE)
#else
#define may_advance (ver == v && st == ACTIVE && link == from)
#endif
#endif

inline advance() {
    assert(at == 0 || alarm_at == 0 || alarm_at == at || carried >= link);      /* one chain */
    link = lk; alarm_at = al;
    assert(al > LONGEST || al < cursor || row[v].link[al] > 0 || is_lost)     /* what is recorded is placed */
}

#if defined(BUG_RECORD_BEFORE_PLACE) || defined(BUG_LOSER_DROPS)
#define BEGINS begins
#else
#define BEGINS plan
#endif

/* Carries a chain on, as version v from link `from`. at, carried: of the alarm that it is for, 0 for none. Ends at `done` or `died`. */
inline materialise() {
    skip;
#ifdef BUG_RECORD_BEFORE_PLACE
begins:
    atomic {
        lk = from;
        do :: lk < now + GUARD -> lk = next_fire(v, lk) :: else -> break od;
        al = (lk >= now + GUARD -> lk : now + GUARD + MARGIN);
        if :: may_advance -> link = lk; alarm_at = al :: else fi
    }
    if :: true :: atomic { may_fail -> troubles++; goto died } fi;
#endif
#ifdef BUG_LOSER_DROPS
begins:
    atomic {
        lk = from;
        do :: lk < now + GUARD -> lk = next_fire(v, lk) :: else -> break od;
        al = (lk >= now + GUARD -> lk : now + GUARD + MARGIN);
        if :: may_advance -> link = lk; alarm_at = al :: else -> goto done fi
    }
    if :: true :: atomic { may_fail -> troubles++; goto died } fi;
#endif
plan:
    if
    :: atomic {
           lk = from; n = now;
           do
           :: lk < n + GUARD -> place_fire(v, lk); lk = next_fire(v, lk);
#ifdef BUG_NEAR_SUCCESSOR_ENDS
              if :: lk < n + GUARD + AHEAD -> place_fire(v, lk); al = lk; goto record :: else fi
#endif
           :: else -> break
           od;
           n = 0 }
    /* The queue refuses, and takes perhaps the first of them. */
    :: atomic { may_fail -> troubles++;
           if
           :: from < now + GUARD -> place_fire(v, from)
           :: true
           fi; goto died }
    fi;
    atomic { al = (lk >= now + GUARD -> lk : now + GUARD + MARGIN) }
#ifdef BUG_RECORD_BEFORE_ALARM
    atomic { if :: may_advance -> advance() :: else fi }
#endif
    /* The alarm. One that was written too late may lie behind the scanner: all is decided anew. */
    if
    :: atomic {
           put_row(v, al, lk);
#ifndef BUG_LATE_ALARM_IS_SAFE
           if :: now + GUARD > al -> goto plan :: else fi
#endif
       }
    :: atomic { may_fail -> troubles++; goto plan }
    :: atomic { may_fail && late_at == 0 && al <= LONGEST -> troubles++; late_version = v; late_at = al; late_link = lk; goto plan }
    :: atomic { may_fail -> troubles++; goto died }
    fi;
record:
    if
    :: atomic {
           if
           :: may_advance -> advance(); goto done
           :: else ->
              if
              :: ver == v && st == ACTIVE && link < from -> from = link; goto plan     /* a step before this one has died */
              :: else -> goto done
              fi
           fi }
    :: atomic { may_fail && may_advance -> troubles++; advance(); goto record }        /* its answer is lost */
    :: atomic { may_fail -> troubles++; goto died }
    fi
}

/* A tick, alarm by alarm. The second scanner begins when the first one is slow: its lease is over, or was taken from it. */
proctype Scanner(byte me) {
    byte at, carried, v, from, lk, al, n;
end_idle:
    do
    :: atomic { me == 1 && busy < 2 && !leased && cursor <= now + AHEAD && cursor <= LONGEST ->
           busy++; v = 1; leased = true; holder = me; at = cursor; is_slow = true } break
    :: atomic { me == 2 && busy < 2 && is_slow && cursor <= now + AHEAD && cursor <= LONGEST && (!leased || (holder == 1 && may_fail)) ->
           if :: leased -> troubles++ :: else fi;
           busy++; v = 1; leased = true; holder = me; at = cursor } break
    od;
rows:
    atomic {
        do
        :: v <= VERSIONS && row[v].link[at] == 0 -> v++
        :: else -> break
        od;
        if :: v > VERSIONS -> goto passed :: else fi;
        carried = row[v].link[at];
        /* The definition may be read as it was before the last change. One that is older than the alarm is read again. */
        if
        :: v == ver && st == ACTIVE
        :: v + 1 == ver && fires[v]
        :: v != ver || st != ACTIVE -> goto done
#ifdef BUG_TRUST_OLD_DEFINITION
        :: v == ver && ver > 1 -> goto done
#endif
        fi;
        if :: period > GUARD && at == carried && carried >= now -> from = carried; goto BEGINS :: else fi
    }
    /* Its fires are close, or it is late: where the state has come to meanwhile. */
    atomic {
        if
        :: ver != v || st != ACTIVE -> goto done
#ifndef BUG_ANY_ALARM_CONTINUES
        :: ver == v && st == ACTIVE && alarm_at != 0 && alarm_at != at && link > carried -> goto done
        :: ver == v && st == ACTIVE && !(alarm_at != 0 && alarm_at != at && link > carried) ->
#else
        :: ver == v && st == ACTIVE ->
#endif
           from = (link > carried -> link : carried)
        :: may_fail -> troubles++; from = carried      /* a read that is behind */
        fi;
        goto BEGINS
    }
    materialise();
done:
    atomic { carried = 0; from = 0; lk = 0; al = 0; n = 0; v++; goto rows }
passed:
    atomic {
        if
        :: holder == me -> cursor = at + 1; leased = false; holder = 0;
           for (v : 1 .. VERSIONS) { row[v].link[at] = 0 }
        :: else
        fi;
        goto over }
died:
    atomic { if :: holder == me -> leased = false; holder = 0 :: else fi }
over:
    atomic { at = 0; carried = 0; v = 0; from = 0; lk = 0; al = 0; n = 0; busy--;
        if :: me == 1 -> is_slow = false :: else fi;
        goto end_idle }
}

#ifdef BUG_SWEEP_KNOWS_ALARMS_ONLY
#define is_broken (st == ACTIVE && alarm_at != 0 && cursor > alarm_at)
#else
#define is_broken (st == ACTIVE && ((alarm_at == 0 && !requesting) || (alarm_at != 0 && cursor > alarm_at)))
#endif

proctype Sweep() {
    byte at, carried, v, from, lk, al, n;
    byte was, was_for;
end_idle:
#ifdef BUG_NO_SWEEP
    false;
#endif
    atomic { is_broken && busy < 2 ->
        /* A chain that nothing has happened to has an alarm ahead, also where the state names one that has passed. */
        at = cursor;
        do :: at <= LONGEST && row[ver].link[at] < link -> at++ :: else -> break od;
        assert(troubles > 0 || at <= LONGEST || (beyond & bit(ver)));
        at = 0;
        busy++; v = ver; from = link; was = link; was_for = alarm_at;
        goto BEGINS }
    materialise();
done:
    atomic { assert(!(ver == v && st == ACTIVE && link == was && alarm_at == was_for)) }      /* it has revived it */
died:
    atomic { v = 0; from = 0; lk = 0; al = 0; n = 0; was = 0; was_for = 0; busy--; goto end_idle }
}

mtype = { EDIT, PAUSE, RESUME, DELETE, CREATE }

inline change() {
#ifdef BUG_VERSION_STAYS
    if :: what == EDIT :: else -> ver++ fi;
#else
    ver++;
#endif
    since[ver] = seen_at; phase[ver] = next_phase;
    fires[ver] = (what == CREATE || what == RESUME || (what == EDIT && st == ACTIVE));
    if :: what == CREATE -> born = ver :: else fi;
    if
    :: what == PAUSE || (what == EDIT && st == PAUSED) -> st = PAUSED
    :: what == DELETE -> st = DELETED
    :: else -> st = ACTIVE
    fi;
    link = (fires[ver] -> next_fire(ver, since[ver]) : 0); alarm_at = 0
}

/* Creates the schedule, then changes it. What it has read may be long ago when it writes. */
proctype User() {
    byte at, carried, v, from, lk, al, n;
    byte left = VERSIONS, seen_link, seen_at, next_phase;
    mtype what = CREATE;
    bool is_written;
asks:
    atomic {
        if
        :: left > 0 && busy < 2 && (st == ABSENT || st == DELETED) -> what = CREATE; next_phase = (period == 1 -> 0 : 2)
        :: left > 0 && busy < 2 && (st == ACTIVE || st == PAUSED) -> what = EDIT; next_phase = phase[ver]
        :: left > 0 && busy < 2 && (st == ACTIVE || st == PAUSED) && period > 1 -> what = EDIT; next_phase = (phase[ver] + 1) % period
        :: left > 0 && busy < 2 && st == ACTIVE -> what = PAUSE; next_phase = phase[ver]
        :: left > 0 && busy < 2 && st == PAUSED -> what = RESUME; next_phase = phase[ver]
        :: left > 0 && busy < 2 && (st == ACTIVE || st == PAUSED) -> what = DELETE
        :: left == 0 || left < VERSIONS -> left = 0; goto over
        fi;
        left--; requesting = true; busy++ }
reads:
    atomic {
        seen_link = link; seen_at = now;
        if
#ifndef BUG_CHANGE_BEFORE_CAUGHT_UP
        :: what == EDIT && st == ACTIVE && link <= now -> v = ver; from = link; goto BEGINS
#endif
        :: else
        fi }
    if
    :: atomic {
           if :: link != seen_link -> goto reads :: else fi;
           change(); goto written }
    :: atomic { may_fail && link == seen_link -> troubles++; change(); goto died }
    :: atomic { may_fail -> troubles++; goto died }
    fi;
written:
    atomic {
        is_written = true; seen_link = 0; seen_at = 0;
        if :: st == ACTIVE -> v = ver; from = link; goto BEGINS :: else -> goto done fi }
    materialise();
done:
    atomic {
        v = 0; from = 0; lk = 0; al = 0; n = 0;
        if :: !is_written -> goto reads :: else fi;
        acknowledged = ver };
died:
    atomic { v = 0; from = 0; lk = 0; al = 0; n = 0; seen_link = 0; seen_at = 0; next_phase = 0; is_written = false; requesting = false; busy--; goto asks }
over:
    what = CREATE
}

/* One message of the watched fire after the other: it looks at the state of its schedule, then claims. */
proctype Worker() {
    byte v;
end_idle:
    atomic {
        if
        :: watched <= now && (messages & bit(1)) -> v = 1
        :: watched <= now && (messages & bit(2)) -> v = 2
        :: watched <= now && (messages & bit(3)) -> v = 3
        fi;
        if
        :: messages = messages - bit(v)
        :: may_fail -> troubles++      /* it comes twice */
        fi;
#ifndef BUG_RUN_WHATEVER_COMES
        if
#ifdef BUG_FORGET_CUTS
        :: v != ver -> goto over
#endif
#ifdef BUG_STALE_FIRE_IS_SETTLED
        :: !may_run(v) && ledger == NONE -> ledger = SKIPPED; goto over
        :: !may_run(v) && ledger != NONE -> goto over
#else
#ifndef BUG_RUN_WHAT_IS_STALE
        :: !may_run(v) -> goto over    /* without a trace: a later version may decide the same fire */
#endif
#endif
        :: may_run(v) && st != ACTIVE ->
           if :: ledger == NONE -> ledger = SKIPPED :: else fi;
           goto over
#ifdef BUG_RUN_WHAT_IS_STALE
        :: st == ACTIVE
#else
        :: may_run(v) && st == ACTIVE
#endif
        fi;
#endif
        assert(is_fire(v, watched));                               /* no other fire runs */
        assert(st == ACTIVE || acknowledged < ver);                /* none behind a pause or a deletion that was acknowledged */
        assert(acknowledged <= v || watched <= since[v + 1]) };    /* none of an older version behind a change that was */
    if
    :: atomic {
           if
#ifdef BUG_ID_HAS_VERSION
           :: !(has_run & bit(v)) -> has_run = has_run | bit(v); ledger = RAN; runs++
           :: has_run & bit(v)
#else
           :: ledger == NONE -> ledger = RAN; runs++
           :: ledger != NONE
#endif
           fi;
           assert(runs < 2);           /* a fire runs once */
           goto over }
    :: atomic { may_fail -> troubles++; messages = messages | bit(v); goto over }
    fi;
over:
    atomic { v = 0; goto end_idle }
}

proctype World() {
    byte v, w;
    bool is_stopped;
    do
    :: atomic { now < LAST && (busy == 0 || slow < SLOW) ->
           if :: busy > 0 -> slow++ :: else fi;
           now++ }
    :: atomic { late_at > 0 -> put_row(late_version, late_at, late_link); late_version = 0; late_at = 0; late_link = 0 }
    :: atomic { may_fail && st == ACTIVE && alarm_at > 0 && alarm_at <= LONGEST && row[ver].link[alarm_at] > 0 ->
           troubles++; row[ver].link[alarm_at] = 0; is_lost = true }
    /* The tombstone goes when no message is left. Alarm rows may lie years ahead. */
    :: atomic { st == DELETED && messages == 0 && late_at == 0 && busy == 0 && !requesting ->
           st = ABSENT }
    :: atomic { timeout ->
           assert(st != ACTIVE || (alarm_at > 0 && alarm_at >= cursor));      /* a chain that goes on */
           for (v : 1 .. VERSIONS) {
               is_stopped = false;
               for (w : 1 .. VERSIONS) { if :: w > v && w <= ver && !fires[w] -> is_stopped = true :: else fi };
               if
               :: v <= ver && is_fire(v, watched) && watched > since[v] && !is_stopped &&
                  ((v == ver && watched < link) || (v < ver && watched <= since[v + 1])) -> assert(ledger == RAN)      /* none is lost */
               :: else
               fi };
           break }
    od
}

init {
    atomic {
        if :: period = 1 :: period = 3 fi;
        if :: watched = 2 :: watched = 3 fi;
        run Scanner(1); run Scanner(2); run Sweep(); run User(); run Worker(); run World()
    }
}
