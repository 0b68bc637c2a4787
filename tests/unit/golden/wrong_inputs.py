"""The wrong inputs that people make, and the commands that are given them; errors.txt has what these say."""

import gzip
import json
import shutil
from pathlib import Path

from tests.support.golden import Row
from tests.support.programs import ROOT
from tests.support.rundir import records, write_run

LINE = '127.0.0.1 - - [20/Nov/2026:23:55:22 +0000] "{} / HTTP/1.1" 200 512 "-" "Mozilla/5.0"\n'
LAB = """\
name: move
backends: [{name: sata, clone: {driver: static, target: "http://127.0.0.1:8080"}}]
scenarios: [{scenario: replay, options: {log: access.log}}]
"""
GATES = "gates: [{scenario: replay, metric: p99.9, at_most_ratio: 1.1}]\n"
HOSTS = "hosts: [{name: a, address: 127.0.0.1}]\n"

FILES: dict[str, str | bytes] = {
    "access.log": LINE.format("GET"),
    "posts.log": LINE.format("POST"),
    "empty.log": "",
    "binary.log": bytes(range(256)) * 40,
    "words.log": "it rained all day\n" * 20,
    "access.log.gz": gzip.compress(LINE.format("GET").encode(), mtime=0),
    "cut.log.gz": gzip.compress(b"".join(LINE.format("GET").encode() for _ in range(400)), mtime=0)[:60],
    "bundle.zip": b"PK\x03\x04" + bytes(60),
    "open.txt": "Authorization: Bearer hunter2\n",
    "no-colon.txt": "Authorization Bearer hunter2\n",
    "accounts.txt": "anne\n",
    "full/mine.txt": "not Plimsoll's\n",
    "lab.yml": LAB,
    "empty.yml": "",
    "binary.yml": bytes(range(256)),
    "tab.yml": "name: move\n\tbackends: []\n",
    "bracket.yml": "name: move\nbackends: [{name: sata\n",
    "list.yml": "- name: move\n",
    "twice.yml": "name: move\n" + LAB,
    "knot.yml": LAB + "site: &all {size: *all}\n",
    "no-scenario.yml": LAB.replace("replay,", "replai,"),
    "same-names.yml": LAB.replace(
        "[{name: sata", '[{name: sata, clone: {driver: static, target: "http://a"}}, {name: sata'
    ),
    "unit.yml": LAB + "phases: {during_s: 60s}\n",
    "idle.yml": LAB.replace("log}}]", 'log}}, {scenario: visitors, options: {stages: "9s:1"}}]')
    + "goal_ms: 5\nobserve: {mariadb: {defaults_file: /etc/my.cnf}}\n",
    "percent.yml": LAB + "precondition: {fill_percent: 120}\n",
    "gates.yml": GATES,
    "p42.yml": GATES.replace("p99.9", "p42"),
    "no-limit.yml": GATES.replace(", at_most_ratio: 1.1", ""),
    "much.yml": GATES.replace("1.1", "a lot"),
    "hosts.yml": HOSTS,
    "no-hosts.yml": "hosts: []\n",
    "port.yml": HOSTS.replace("127.0.0.1", "127.0.0.1, port: ssh, user: 5"),
    "broken.toml": "[run\n",
    "typo.toml": "[check]\nno_prob = true\n",
    "secret.toml": "[run]\npassword = 'hunter2'\n",
    "clones.yml": 'clones: [{url: "http://127.0.0.1:1", marker: x}]\n',
}


def write_wrong_inputs(folder: Path) -> None:
    """Fill a folder with wrong files, and with run directories that are damaged."""
    shutil.copy(ROOT / "tests/golden/mistakes.yml", folder)
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(0o644)
    for name in ("no-colon.txt", "accounts.txt"):
        (folder / name).chmod(0o600)
    (folder / "nothing").mkdir()
    run = write_run(folder / "run", records(1000))
    write_run(folder / "other", records(1000, total_us=1500))
    for name in ("newer", "no-json", "no-records", "killed"):
        shutil.copytree(run, folder / name)
    facts = json.loads((run / "run.json").read_text())
    (folder / "newer" / "run.json").write_text(json.dumps(facts | {"format": 99}))
    (folder / "no-json" / "run.json").write_text('{"format": 1,')
    (folder / "no-records" / "requests.npy").write_bytes(b"")
    (folder / "killed" / "requests.npy").unlink()


REPLAY: list[Row] = [
    ("no command", "replay --speed 10"),
    ("a command with a typo", "replay rnu access.log"),
    ("a flag with a typo", "replay run access.log --taget http://127.0.0.1:8080"),
    ("an unknown flag", "replay run access.log --dry-run"),
    ("a flag without its value", "replay run access.log --target"),
    ("no log", "replay run"),
    ("a log that is not there", "replay run no.log"),
    ("a pattern that fits nothing", "replay parse 'no*.log'"),
    ("a folder in place of a log", "replay parse nothing"),
    ("an empty log", "replay parse empty.log"),
    ("a program in place of a log", "replay parse binary.log"),
    ("a log that gzip did not finish", "replay parse --quiet cut.log.gz"),
    ("a log and its packed copy", "replay run access.log access.log.gz"),
    ("a ZIP archive", "replay parse bundle.zip"),
    ("nothing on standard input", "replay parse -"),
    ("a log in no format that is known", "replay parse words.log"),
    ("another format than the log's", "replay parse --quiet --format W3C access.log"),
    ("an unknown preset", "replay parse --format COMBINDE access.log"),
    ("an unknown specifier", "replay parse --format '%h %Q' access.log"),
    ("a format without a date", "replay parse --format '%h %r' access.log"),
    (
        "a date format that strftime does not have",
        "replay parse --format '%h [%d]' --date-format '%Q' access.log",
    ),
    ("a goaccess.conf that is not there", "replay parse --config no.conf access.log"),
    ("an unknown time zone", "replay parse --tz Mars/Base access.log"),
    ("a target without http://", "replay run access.log --target 127.0.0.1:8080"),
    ("a target with a path", "replay run access.log --target http://127.0.0.1:8080/shop"),
    ("a target at which nobody listens", "replay run access.log --target http://127.0.0.1:1"),
    ("a speed of nought", "replay run access.log --speed 0"),
    ("a speed in words", "replay run access.log --speed fast"),
    ("a negative limit", "replay run access.log --limit -1"),
    ("a limit in words", "replay run access.log --limit many"),
    ("a time without its unit", "replay run access.log --duration 30"),
    ("a time-out of a day", "replay run access.log --timeout 24h"),
    ("an end before the beginning", "replay run access.log --from 2026-11-21 --to 2026-11-20"),
    ("a malformed date", "replay run access.log --from yesterday"),
    ("a broken regular expression", "replay run access.log --include '('"),
    ("a route without its name", "replay run access.log --route '^/shop'"),
    ("no request that is to be sent", "replay run posts.log"),
    ("a header without a colon", "replay run access.log --header 'Cookie a=b'"),
    ("a file of headers that others may read", "replay run access.log --header-file open.txt"),
    ("a file of headers without a colon", "replay run access.log --header-file no-colon.txt"),
    ("an account without a password", "replay run access.log --accounts accounts.txt"),
    ("a share of more than all", "replay run access.log --accounts accounts.txt --members-share 1.5"),
    ("a limit of no figure", "replay run access.log --fail-over p42=1s"),
    ("a limit without its unit", "replay run access.log --fail-over p99=800"),
    ("a limit of more than all requests", "replay run access.log --fail-over errors=120%"),
    ("an end at a limit, and no limit", "replay run access.log --abort-on-fail"),
    ("two paces", "replay run access.log --speed 10 --rate 5"),
    ("users and a rate", "replay run access.log --users 5 --rate 5"),
    ("results into a file", "replay run access.log --out access.log"),
    ("figures for others to read, unasked", "replay run access.log --metrics 0.0.0.0:9464"),
    (
        "a listening address that is taken",
        "replay origin --log access.log --root origin --listen 127.0.0.1:{taken}",
    ),
    ("an impossible port", "replay origin --log access.log --root origin --listen 127.0.0.1:99999"),
    ("somebody's folder for the origin's files", "replay origin --log access.log --root full"),
    ("only one site to compare", "replay same access.log --baseline http://127.0.0.1:1"),
    (
        "a site compared that does not answer",
        "replay same access.log --baseline http://127.0.0.1:1 --candidate http://127.0.0.1:1",
    ),
    (
        "a sample of more than all",
        "replay same access.log --baseline http://127.0.0.1:1 --candidate http://127.0.0.1:1 --sample 1.5",
    ),
    ("a log without durations imported", "replay import access.log"),
    ("a folder to watch that is not there", "replay watch no-results"),
    ("too short a time to measure", "replay lag --duration 1ms"),
    ("an unknown shell", "replay completion tcsh"),
]

PLIMSOLL: list[Row] = [
    ("a command with a typo", "plimsoll reprot results"),
    ("a flag with a typo", "plimsoll report run --jsn"),
    ("a plimsoll.toml that is not valid TOML", "PLIMSOLL_CONFIG=broken.toml plimsoll config"),
    ("a key with a typo in it", "PLIMSOLL_CONFIG=typo.toml plimsoll check lab.yml"),
    ("a password in it", "PLIMSOLL_CONFIG=secret.toml plimsoll config"),
    ("a plimsoll.toml that is not there", "PLIMSOLL_CONFIG=no.toml plimsoll config"),
    ("no lab.yml", "plimsoll check"),
    ("a lab.yml that is not there", "plimsoll check no.yml"),
    ("a folder in place of lab.yml", "plimsoll check nothing"),
    ("an empty lab.yml", "plimsoll check empty.yml"),
    ("a program in place of lab.yml", "plimsoll check binary.yml"),
    ("a tab in YAML", "plimsoll check tab.yml"),
    ("a bracket that is not closed", "plimsoll check bracket.yml"),
    ("a list in place of keys", "plimsoll check list.yml"),
    ("a key that is there twice", "plimsoll check twice.yml"),
    ("an alias inside of what it stands for", "plimsoll check knot.yml"),
    ("gates.yml in place of lab.yml", "plimsoll check gates.yml"),
    ("fifty mistakes in one lab.yml", "plimsoll check mistakes.yml"),
    ("a scenario with a typo", "plimsoll check no-scenario.yml"),
    ("two backends of one name", "plimsoll check same-names.yml"),
    ("a unit where the key has it", "plimsoll check unit.yml"),
    ("more per cent than a hundred", "plimsoll check percent.yml"),
    ("keys without effect", "plimsoll check idle.yml"),
    ("the plan of a wrong lab.yml", "plimsoll check --plan no-scenario.yml"),
    ("a run of a wrong lab.yml", "plimsoll run no-scenario.yml"),
    ("nothing to clean up, since lab.yml is wrong", "plimsoll clean list.yml"),
    ("no experiment to resume", "plimsoll run --resume"),
    ("no lab.yml, and nothing to resume", "plimsoll run"),
    ("no experiment to look at", "plimsoll status"),
    ("no experiment of that lab.yml", "plimsoll status lab.yml"),
    ("a report on nothing", "plimsoll report no-results"),
    ("a report on a folder without runs", "plimsoll report nothing"),
    ("a report on a run of a newer Plimsoll", "plimsoll report newer"),
    ("a report on a run whose run.json is cut off", "plimsoll report no-json"),
    ("a report on a run whose records are empty", "plimsoll report no-records"),
    ("a report on a run without records", "plimsoll report killed"),
    ("figures in an unknown format", "plimsoll report run --figures gif"),
    ("one run compared with nothing", "plimsoll compare run"),
    ("one run compared with itself", "plimsoll compare run run"),
    ("a backend that no run has", "plimsoll compare run --baseline sata --candidate nvme"),
    ("a gate of no figure", "plimsoll compare run other --gates p42.yml"),
    ("a gate without a limit", "plimsoll compare run other --gates no-limit.yml"),
    ("a limit that is not a share", "plimsoll compare run other --gates much.yml"),
    ("an unknown time zone", "plimsoll compare run other --time-zone Mars/Base"),
    ("a document to sign without limits", "plimsoll signoff run other --out signed"),
    ("a document to sign where something is", "plimsoll signoff run other --gates gates.yml --out full"),
    ("a history that is not there", "plimsoll regress"),
    ("a history that is not a database", "plimsoll regress --history access.log"),
    ("an export to an unknown format", "plimsoll export run --to excel --out run.xlsx"),
    ("an export of nothing", "plimsoll export nothing --to csv --out requests.csv"),
    ("a merger of no run", "plimsoll merge nothing --out merged"),
    ("a merger onto what is there", "plimsoll merge run --out full"),
    ("an import of something else", "plimsoll import k6 access.log"),
    ("hosts without a command", "plimsoll hosts exec --hosts hosts.yml"),
    ("hosts of a file that is not there", "plimsoll hosts exec --hosts no.yml -- uptime"),
    ("hosts of an empty list", "plimsoll hosts exec --hosts no-hosts.yml -- uptime"),
    ("a port in letters, a user in figures", "plimsoll hosts exec --hosts port.yml -- uptime"),
    ("a host that is not in the file", "plimsoll hosts exec --hosts hosts.yml --host b -- uptime"),
    ("a group that is not in the file", "plimsoll hosts exec --hosts hosts.yml --group db -- uptime"),
    ("no hosts", "plimsoll hosts exec -- uptime"),
    (
        "five wrong answers",
        "plimsoll init --out nothing --log no.log --site shop --disks 'a b c' --duration soon --limits 10",
    ),
    ("an answer missing, and nobody to ask", "plimsoll init --out nothing --log access.log"),
    ("a lab.yml that would be overwritten", "plimsoll init --log access.log"),
    ("a schedule of a wrong lab.yml", "plimsoll schedule install list.yml --cron --state state"),
    ("an impossible time", "plimsoll schedule install lab.yml --cron --at 25:00 --state state"),
    ("two times", "plimsoll schedule install lab.yml --cron --at 03:00 --on-calendar 04:00 --state state"),
    ("an unknown schedule", "plimsoll schedule status nightly --state state"),
    ("a file without a schema", "plimsoll schema site.yml"),
    ("an unknown use", "plimsoll doctor --for everything"),
    ("a volume that is not there", "plimsoll fileio nowhere"),
    ("a size without sense", "plimsoll fileio nothing --file-size plenty"),
    ("a test that sysbench does not have", "plimsoll fileio nothing --tests rndrd,rndread"),
    ("results that are not there shown", "plimsoll serve no-results"),
    ("results shown to others without a token", "plimsoll serve nothing --listen 0.0.0.0:8090"),
    ("a port that is taken", "plimsoll serve nothing --listen 127.0.0.1:{taken}"),
    ("an unknown scenario", "plimsoll scenario dowload --target http://127.0.0.1:1"),
    ("a scenario without a target", "plimsoll scenario download"),
    ("a target without http://", "plimsoll scenario download --target 127.0.0.1:8080"),
    ("a site at which nobody listens", "plimsoll scenario download --target http://127.0.0.1:1"),
    ("a change without consent", "plimsoll scenario save-article --target http://127.0.0.1:1"),
    (
        "a change of a site that is not a clone",
        "plimsoll scenario save-article --target http://127.0.0.1:1 --i-may-change-this-site",
    ),
    (
        "a password that others may read",
        "plimsoll scenario save-article --target http://127.0.0.1:1 --user anne --password-file open.txt",
    ),
    (
        "a list of clones with a typo",
        "plimsoll scenario save-article --target http://127.0.0.1:1 --site-config clones.yml",
    ),
    ("a negative number of users", "plimsoll scenario download --target http://127.0.0.1:1 --users -1"),
    ("a clone that does not answer", "plimsoll clone add http://127.0.0.1:1"),
    ("a clone without http://", "plimsoll clone add 127.0.0.1:8080"),
]


MAKE: list[Row] = [
    ("a target with a typo", "make rplay"),
    ("no log to replay", "make replay"),
    ("a log that is not there", "make replay LOG=no.log"),
    ("a target without http://", "make replay LOG=examples/access.log TARGET=10.0.0.5"),
    ("a limit without its unit", "make replay LOG=examples/access.log LIMITS='p99=800'"),
    ("a report on nothing", "make report DIR=no-results"),
    ("a document to sign, of nothing", "make signoff"),
    ("a document to sign, without limits", "make signoff BASELINE=results/old"),
]
