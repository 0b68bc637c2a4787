"""The names of the files and folders of a run directory: the table of docs/run-format.md."""

FACTS_FILE = "run.json"
REQUESTS_FILE = "requests.npy"
ROUTES_FILE = "routes.json"
ERRORS_FILE = "errors.json"
EVENTS_FILE = "events.jsonl"
HOST_FILE = "host.csv"
SUMMARY_FILE = "summary.json"
PROBES_FILE = "probes.csv"
GRINDER_FILE = "grinder-0-data.log"
HDR_FILE = "latency.hlog"
REJECTS_FILE = "rejects.log"
K6_SUMMARY_FILE = "k6-summary.json"
K6_LOG_FILE = "k6.log"
SCREENSHOTS_FOLDER = "screenshots"
SHARDS_FOLDER = "shards"
REPORT_FILE = "report.html"

# A run is read from these: whoever changes one changes what the run says.
READ = (
    FACTS_FILE,
    REQUESTS_FILE,
    ROUTES_FILE,
    ERRORS_FILE,
    EVENTS_FILE,
    HOST_FILE,
    SUMMARY_FILE,
)
# Only the run itself writes these.
RECORDS = (
    *READ,
    GRINDER_FILE,
    HDR_FILE,
    REJECTS_FILE,
    K6_SUMMARY_FILE,
    K6_LOG_FILE,
    PROBES_FILE,
    SCREENSHOTS_FOLDER,
    SHARDS_FOLDER,
)
# These are made from records, and may be made again.
DERIVED = (REPORT_FILE,)

# An experiment's folder holds these (docs/lab.md).
RUNS_FOLDER = "runs"
EXPERIMENT_FILE = "lab.json"
JOURNAL_FILE = "journal.jsonl"
ROUNDS_FILE = "precondition.jsonl"
REHEARSAL_FILE = "rehearsal.json"
# A folder of runs that loaded one clone at the same time holds this.
TOGETHER_FILE = "together.json"
