"""Findings: all that can be wrong with evidence, each with a stable name, a level, a meaning and a remedy.

docs/evidence.md lists them; a test holds it against `FindingKind`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, unique

from plimsoll.common.errors import Severity


@unique
class FindingKind(Enum):
    """Every kind of finding: how grave it is, what it means and what to do about it.

    One that is `BAD` disqualifies: nothing is decided by the runs that it concerns.
    """

    def __init__(self, level: Severity, meaning: str, remedy: str) -> None:
        self.level, self.meaning, self.remedy = level, meaning, remedy

    @property
    def label(self) -> str:
        """Its name in docs/evidence.md and in JSON: `generator-limited`."""
        return self.name.lower().replace("_", "-")

    KILLED = (
        Severity.BAD,
        "The run was killed before it could say how it ended.",
        "Run it again, or take it out of the folder.",
    )
    RUNNING = (Severity.BAD, "The run has not ended yet.", "Wait for it.")
    INCOMPLETE = (
        Severity.BAD,
        "The run failed or was interrupted.",
        "Run it again, or take it out of the folder.",
    )
    TRUNCATED = (
        Severity.BAD,
        "Records are missing, or may be missing.",
        "Run it again, or take it out of the folder.",
    )
    OTHER_RECORDS = (
        Severity.BAD,
        "The records are not those that the summary was written for.",
        "Take the run's files from where they were written, or run it again.",
    )
    UNSENT = (
        Severity.BAD,
        "The load generator left over 0.1 % of the requests out: too many waited, or the run ended early.",
        "Use a lower speed or more --max-connections, let it run to its end, and run it again.",
    )
    HIDDEN_REQUESTS = (
        Severity.BAD,
        "Over 0.1 % of the requests are marked as warm-up though they were due after it.",
        "Take the run's files from where they were written, or run it again.",
    )
    NO_SUM = (
        Severity.BAD,
        "The sum of the records is missing, so that nobody can tell whether they are the run's own.",
        "Take the run's files from where they were written, or run it again.",
    )
    OTHER_CLOCK = (
        Severity.BAD,
        "By the clock on the wall the run took another time than its records.",
        "Find out which clock went wrong or was set meanwhile, and run it again.",
    )
    MISSING_REQUESTS = (
        Severity.BAD,
        "Over 0.1 % of the requests are missing that another run of the same load has in the same time.",
        "Take the run's files from where they were written, or run it again.",
    )
    OTHER_SCHEDULE = (
        Severity.WARN,
        "Over 0.1 % of the requests are of other lines of the log, or were due at other times, than in "
        "another run of the same load.",
        "Find out what changed them, or run it again.",
    )
    REPEATED_NOISE = (
        Severity.WARN,
        "Two runs took the same times request by request, which real runs do not.",
        "Find out whether one was made of the other, and leave it out.",
    )
    IMPOSSIBLE_RECORDS = (
        Severity.WARN,
        "The run has records that no request leaves behind.",
        "See the findings of its report, find out what wrote them, and run it again.",
    )
    COARSE_CLOCK = (
        Severity.WARN,
        "The run was timed by a clock of steps over 1 ms and over 5 % of what is measured.",
        "Find out what timed it, and run it again.",
    )
    OTHER_MIX = (
        Severity.WARN,
        "The sides were asked for other kinds of requests: over 2 % in replays, 10 % in logs.",
        "Find out what is missing on one side: a cache in front keeps requests from the server.",
    )
    UNREADABLE = (
        Severity.BAD,
        "A run of this scenario cannot be read, and leaving it out could favour one side.",
        "Repair it, run it again, or take it out of the folder.",
    )
    GENERATOR_LIMITED = (
        Severity.BAD,
        "At some percentile, the load generator's own lag is over 1 ms and over 5 % of the response time. "
        "Gates on percentiles that it does not reach are decided all the same.",
        "Use a lower speed or rate, or give the load generator a machine of its own.",
    )
    GENERATOR_LATE = (
        Severity.NOTE,
        "The load generator was late by over 1 ms and over 5 % of what a gate limits, but by how much is "
        "known of each request: a FAIL stands where that favours the candidate, a PASS where it favours the "
        "baseline.",
        "Where a verdict depends on it, use a lower rate, or a quieter machine for the generator.",
    )
    SHARED_MACHINE = (
        Severity.WARN,
        "Generator and server shared a machine, and took its processor from each other for 100 ms of each "
        "second or more, or all cores were busy for 90 % of the time.",
        "Take a lower rate or another machine, or give each its own cores (taskset).",
    )
    LAG_DIFFERS = (
        Severity.WARN,
        "In all runs of one side the load generator was later than in any of the other, by over 2.5 % of "
        "what is measured.",
        "Run both sides from one machine that does nothing else.",
    )
    SATURATOR_GAVE_UP = (
        Severity.BAD,
        "The disks were idle for a part of the phase in which they should have been busy.",
        "Run it again, or take it out of the folder.",
    )
    SATURATOR_RETRIED = (
        Severity.WARN,
        "The saturator failed and had to begin again, so the disks were idle for a part of its phase.",
        "See in events.jsonl why it failed, then run it again, or take it out of the folder.",
    )
    SATURATOR_IDLE = (
        Severity.BAD,
        "The saturator worked for less than three quarters of its phase, or moved nothing.",
        "See in events.jsonl when it began, paused and ended, then run it again.",
    )
    SATURATOR_DIFFERS = (
        Severity.NOTE,
        "The saturator moved less than half as many bytes a second on one side, as a slower disk lets it. No "
        "verdict on times is given that the side with less work may owe to that.",
        "Give the saturator a rate that both sides reach.",
    )
    TARGET_DIED = (
        Severity.BAD,
        "From some instant on, the target answered nothing any more.",
        "Find out why, then run it again.",
    )
    SHARD = (
        Severity.BAD,
        "The run is one share of a run of several instances.",
        "Merge the shares first: plimsoll merge.",
    )
    MERGED_BADLY = (Severity.BAD, "The merged shards do not fit together.", "Run all instances again.")
    MERGED_DOUBTFULLY = (
        Severity.WARN,
        "The merged shards may not fit together: their clocks, or their common start, are in doubt.",
        "Keep the instances' clocks in step (NTP), and give them one start (--start-at).",
    )
    UNREAD_LOG = (
        Severity.WARN,
        "Over 1 % of the log's lines could not be read, so the load was less than the visitors'.",
        "Give the log's own format: --format.",
    )
    FROM_LOG = (
        Severity.WARN,
        "The run is not a load test: it is what an access log says was served.",
        "Its times are the server's own. Hold it against logs of the same server, written in the same way.",
    )
    UNLIKE_LOGS = (
        Severity.BAD,
        "The logs of both sides are not of weeks that can be held against each other: too few days, the same "
        "ones, read in other ways, of other requests, or with times that are too coarse or too few.",
        "Import 14 days or more of each side, in the same way.",
    )
    CUT_TAIL = (
        Severity.BAD,
        "The slow requests of one side are not in its log: it ends in a hard edge where the other goes on.",
        "Find out what leaves them out.",
    )
    FEWER_REQUESTS = (
        Severity.WARN,
        "One side's log has fewer requests a day: in all by 5 %, or of one kind by half.",
        "Find out whether a cache stands before one side only.",
    )
    CLOSED_CONNECTIONS = (
        Severity.WARN,
        "Over 1 % of the requests were sent again: the server had closed their kept-open connections.",
        "Let the server keep idle connections longer than visitors pause, or give a shorter --idle-timeout.",
    )
    CLIENT_QUEUED = (
        Severity.WARN,
        "At p99.9 over 5 % of the response time is waiting for connections of the log's own clients, and not "
        "for the server.",
        "Read the visitors' own addresses from the log, let --clients auto spread a proxy's, or give more "
        "--connections-per-client.",
    )
    COPY = (
        Severity.BAD,
        "Two runs hold the same records: one is a copy of the other.",
        "Leave one of them out.",
    )
    OVERLAP = (Severity.BAD, "Two runs loaded one target at the same time.", "Run one after the other.")
    OTHER_LOAD = (Severity.BAD, "The runs were not of the same load.", "Compare runs that did the same.")
    OTHER_VERSION = (
        Severity.WARN,
        "The load came from different versions of a program.",
        "Run both sides with one version.",
    )
    UNKNOWN_LOAD = (
        Severity.WARN,
        "Some runs do not say what shaped their load.",
        "Run both sides with one version.",
    )
    MIXED_SIDE = (
        Severity.BAD,
        "The runs of one side were of different targets, disks, pools, folders or machines.",
        "Compare runs that were made alike: take the others out of the folder.",
    )
    ONE_STORAGE = (
        Severity.BAD,
        "Both sides lay on one disk, in one pool and folder, though they are called differently.",
        "See in lab.yml on which disk each backend is, and run it again.",
    )
    OTHER_CONNECTIONS = (
        Severity.BAD,
        "The answers came in another way: HTTP/2, TLS or connections that are kept open in some runs only.",
        "Load both sides over the same protocol, and let both servers, and what is before them, keep "
        "connections open.",
    )
    CACHE_IN_FRONT = (
        Severity.BAD,
        "By the answers' own headers, a cache gave over 10 % of them more on one side, or in some of its "
        "runs, so that the times are not the storage's.",
        "Take the cache away, or put the same one in front of both sides; where it is what you compare, put "
        "`answers: false` into gates.yml.",
    )
    OTHER_CACHE_HITS = (
        Severity.WARN,
        "Caches gave 2 to 10 % of the answers more on one side, or only its answers came through one at all.",
        "Put the same cache in front of both sides, and see that it is as warm.",
    )
    OTHER_CIRCUMSTANCES = (
        Severity.WARN,
        "Something else than the storage under test is not the same in all runs: a kernel, a version, a "
        "property of a dataset, the way to the server, what the servers call themselves.",
        "Make it the same, or say beside the verdict why it does not matter.",
    )
    UNKNOWN_FACTS = (
        Severity.WARN,
        "What is known of storage, host or caches, or what was seen of the host, is missing on one side.",
        "Run both sides by one experiment and one version.",
    )
    OTHER_CACHES = (
        Severity.BAD,
        "The runs did not begin with the same caches: cold, warm, or as the run before left them.",
        "Run both sides with one value of `cache` in lab.yml.",
    )
    OTHER_PRECONDITION = (
        Severity.WARN,
        "Some volumes were filled and overwritten before the runs, others not, or in another way.",
        "Run both sides with one `precondition` in lab.yml.",
    )
    NOT_STEADY = (
        Severity.WARN,
        "A volume was filled and overwritten, but not steady yet when the runs began.",
        "Allow it more rounds: precondition.most_rounds and longest_s in lab.yml.",
    )
    POOL_SCANNED = (
        Severity.BAD,
        "A scrub or a resilver of the pool ran during the run, and was not the saturator's.",
        "Wait until it has ended, and run it again.",
    )
    POOL_TRIMMED = (
        Severity.WARN,
        "TRIM of the pool's disks ran during the run.",
        "Wait until it has ended, or let it run before each run (zpool trim -w).",
    )
    POOL_FULL = (
        Severity.WARN,
        "The pool was over 80 % full: ZFS then looks longer for room, and writes in smaller pieces.",
        "Free some of it, or add disks; where yours is as full, say so beside the verdict.",
    )
    DRIVE_FAILING = (
        Severity.BAD,
        "A drive reports that it is failing, or that it no longer protects its data.",
        "Replace it before you measure: see smartctl -a.",
    )
    DRIVE_ERRORS = (
        Severity.BAD,
        "A drive counted more media errors at the end of a run than at its start.",
        "Replace it, or its cable, and run it again: it repeats what it cannot read at once.",
    )
    DRIVE_THROTTLED = (
        Severity.BAD,
        "A drive slowed itself down during a run so as not to get hotter, or was over its critical "
        "temperature.",
        "Cool it, or leave it longer pauses (limits.settle_s), and run it again.",
    )
    DRIVE_HOT = (
        Severity.WARN,
        "A drive was over its own warning temperature before, during or after a run.",
        "Cool it: a drive that gets hotter slows itself down.",
    )
    DRIVE_WORN = (
        Severity.WARN,
        "A drive has used up the life that it is rated for.",
        "Measure on a drive of the age that you are going to use.",
    )
    TRIM_OFF = (
        Severity.WARN,
        "Nothing tells the SSDs under a run what was deleted, as far as the lab can see, so they get slower.",
        "Set autotrim=on for a pool; else mount with discard, or enable fstrim.timer.",
    )
    BUSIER_SIDE = (
        Severity.WARN,
        "Processors or memory were in use on one side by far more than on the other.",
        "See in the report what used them; stop it, and run both sides again.",
    )
    UNEQUAL_REQUESTS = (
        Severity.WARN,
        "The runs have different numbers of requests.",
        "Run both sides for the same time at the same rate.",
    )
    MORE_FAILURES = (
        Severity.BAD,
        "The candidate fails, or answers with errors, more often than the baseline.",
        "Find out why: a failure is worse than a slow answer.",
    )
    FEWER_FAILURES = (
        Severity.WARN,
        "The baseline fails more often than the candidate; failures count at their time-out.",
        "Look at the errors before you call the candidate faster.",
    )
    SLOWER_ROUTES = (
        Severity.WARN,
        "Some kinds of requests are slower on the candidate by more than a gate's ratio, though all requests "
        "together may not be: the gate gets no PASS.",
        "Find out what slows them, or judge them by a gate of their own (metric `measure NAME`).",
    )
    FAILED_MEASURES = (
        Severity.WARN,
        "What is measured beside requests, such as an article saved, failed in over 1 % of its tries.",
        "Look at the errors in events.jsonl, fix what fails, and run it again.",
    )
    EMPTY_ANSWERS = (
        Severity.BAD,
        "The candidate's answers have no body where the baseline's, or the log's, have one.",
        "Find out what the candidate serves.",
    )
    OTHER_ANSWERS = (
        Severity.BAD,
        "The two sides do not answer alike: other status classes, or other sizes.",
        "Give both sides the same site, or put `answers: false` into gates.yml.",
    )
    NOT_AS_LOGGED = (
        Severity.BAD,
        "Over 10 % of the answers are not what the log has.",
        "Replay against the site of the log, or put `answers: false` into gates.yml.",
    )
    PARTLY_AS_LOGGED = (
        Severity.WARN,
        "Over 1 % of the answers are not what the log has.",
        "See whether the target is the site of the log.",
    )
    OTHER_SIZES = (
        Severity.NOTE,
        "Many answers have another size than the log has.",
        "See whether the target is the site of the log, and compresses as it did.",
    )
    ODD_ANSWERS = (
        Severity.WARN,
        "One side answers more requests otherwise than the log has it (status, size) than half of what a "
        "gated percentile passes over: slow ones may be among them, and the gate is not decided in its "
        "favour.",
        "See what that side answers instead, and give both sides the same site.",
    )
    CENSORED = (
        Severity.BAD,
        "So many requests failed that a gated figure is a failure's: it is at least the time-out.",
        "Look at the errors; a longer time-out shows more.",
    )
    NOT_RUN = (Severity.BAD, "A scenario did not run on one side.", "Run it on both sides.")
    FEW_RUNS = (Severity.BAD, "A side has fewer runs than a verdict takes.", "Run more.")
    UNEQUAL_RUNS = (
        Severity.BAD,
        "An experiment has more runs on one side; what is missing may be what went wrong.",
        "Finish it: plimsoll run --resume, or --retry-set-aside if something was set aside.",
    )
    NOT_INTERLEAVED = (
        Severity.BAD,
        "The sides' runs do not alternate in time, which the gates ask for.",
        "Run both in one experiment.",
    )
    ORDER = (
        Severity.WARN,
        "The order of the runs leaves room for drift.",
        "Let one experiment run both (plimsoll run), in blocks.",
    )
    BLOCK_UNFINISHED = (
        Severity.WARN,
        "Runs wait for the rest of their block of four, two a side.",
        "Finish it: plimsoll run --resume; where repeats is odd, give one more (--extend).",
    )
    CLOCK = (
        Severity.WARN,
        "The clocks of the runs contradict one another.",
        "Keep the clocks in step (NTP).",
    )
    CONTROL_DIFFERS = (
        Severity.WARN,
        "The control experiment, which should not depend on the storage, differs.",
        "Find out first what else differs.",
    )
    NO_GATE = (Severity.WARN, "A scenario ran that no gate looks at.", "Add a gate, or leave its runs out.")
    OTHER_GENERATOR = (
        Severity.WARN,
        "The load came from different machines.",
        "Run both sides from one machine.",
    )
    OTHER_SPELLING = (
        Severity.WARN,
        "Runs beside those of a side have almost the same backend's name, and are left out.",
        "Call them as their side is called, or move them out of the folder.",
    )
    LENIENT_GATE = (
        Severity.WARN,
        "A gate keeps hardly anything out: it allows over twice the baseline's time, over 5 % of failures, "
        "or stalls in over half of the runs.",
        "See whether it is meant: a ratio of 1.10 allows 10 % more, a share of 0.001 is 0.1 %.",
    )
    UNFINISHED = (
        Severity.WARN,
        "The experiment has not all of its runs.",
        "Finish it: plimsoll run --resume, or --retry-set-aside if something was set aside.",
    )
    EMULATED = (
        Severity.WARN,
        "A side's storage was emulated: a faster disk, slowed down.",
        "Measure on the real storage before you sign.",
    )
    RARE_STALLS = (
        Severity.WARN,
        "A run of the candidate is far worse than the baseline's lead to expect.",
        "Find out what stalled it, or run more of both sides to see how often it happens.",
    )
    ANOTHER_LOOK = (
        Severity.NOTE,
        "These runs were decided on before, when they were fewer; each look may err less than the last.",
        "Decide how many runs to make before you look.",
    )
    LOOK_NOT_REMEMBERED = (
        Severity.WARN,
        "That these runs were decided on could not be written down beside them.",
        "Make their folder writable before you decide again with more runs.",
    )
    OTHER_GATES = (
        Severity.WARN,
        "These runs were judged by other gates before: of many, some pass by chance, so each set gets its "
        "part of the errors that are allowed.",
        "Write the gates before you look at the runs, and keep to them.",
    )
    OTHER_PLAN = (
        Severity.WARN,
        "These runs were decided on before without this plan; what was stated first counts.",
        "State the plan before the first look: with --planned, or by `looks` in lab.yml.",
    )
    PLAN_EXTENDED = (
        Severity.NOTE,
        "The plan was extended after its end, when its error was spent: only runs made since count.",
        "State as many runs as it takes before the first look.",
    )
    OTHER_CANDIDATES = (
        Severity.NOTE,
        "The baseline's runs were compared with other candidates before; the level of a verdict is its own.",
        "To choose one of several candidates, take one whose PASS holds for the chosen one, too.",
    )
    OTHER_PAGES = (
        Severity.BAD,
        "The candidate serves other pages than the baseline, as plimsoll same found.",
        "See in same.txt which, fix the clone, and compare again.",
    )
    PAGES_UNKNOWN = (
        Severity.BAD,
        "plimsoll same did not end, or could not tell whether both sides serve the same pages.",
        "Compare again, to the end, with both sites running.",
    )
    PAGES_ELSEWHERE = (
        Severity.BAD,
        "The pages that were compared are of other sites, of another log, or of another time than the runs.",
        "Compare the sites that were loaded, by the log that was replayed, within a week of the runs.",
    )
    PAGES_PARTLY = (
        Severity.WARN,
        "Not all pages were compared, or not all of their text.",
        "Compare without the flags that leave pages or text out, or say why they are right.",
    )


@dataclass(frozen=True)
class Finding:
    """One thing found. `text` is a whole sentence that names the runs and the reason (hostile).

    `kind` is a bare severity for what only a page points out: no verdict depends on it, it has no stable
    name, and `text` includes the remedy.
    `scenario` is None where it concerns all; `runs` are the names of the runs (hostile). `worse` says that it
    shows the candidate to be worse: then it breaks the gate instead of leaving it undecided. `remedy` is more
    specific than that of its kind, where given. `spares` are the metrics that it does not reach.
    """

    kind: FindingKind | Severity
    text: str
    runs: tuple[str, ...] = ()
    scenario: str | None = None
    worse: bool = False
    own_remedy: str | None = None
    demoted: bool = False
    spares: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The stable name of its kind; without a kind, its severity."""
        return self.kind.value if isinstance(self.kind, Severity) else self.kind.label

    @property
    def level(self) -> Severity:
        """Its severity: that of its kind, or a doubt where the gates said that it decides nothing."""
        if isinstance(self.kind, Severity):
            return self.kind
        return Severity.WARN if self.demoted else self.kind.level

    @property
    def sentence(self) -> str:
        """The finding and its remedy (hostile)."""
        return f"{self.text} {self.remedy}".rstrip()

    @property
    def remedy(self) -> str:
        """What to do about it; empty where `text` includes it."""
        return self.own_remedy or ("" if isinstance(self.kind, Severity) else self.kind.remedy)

    @property
    def disqualifies(self) -> bool:
        """True where nothing can be decided by the runs that it concerns."""
        return self.level is Severity.BAD

    def bars(self, metric: str) -> bool:
        """Return whether no gate on `metric` can be decided by the runs that it concerns."""
        return self.disqualifies and metric not in self.spares

    def as_json(self) -> dict[str, object]:
        """Return the finding for `--json`."""
        return {
            "name": self.label,
            "level": self.level.value,
            "scenario": self.scenario,
            "runs": list(self.runs),
            "worse": self.worse,
            "text": self.text,
            "remedy": self.remedy,
        }


def disqualifying(findings: Iterable[Finding]) -> list[Finding]:
    """Return those after which nothing can be decided. Pure."""
    return [finding for finding in findings if finding.disqualifies]
