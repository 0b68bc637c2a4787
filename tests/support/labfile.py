"""lab.yml in tests: read from text, and small ones on a clone that exists."""

from plimsoll.common.validation import parse_model
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.problems import key_problems

ALONE = """
name: lab
backends:
  - name: a
    clone: {driver: static, target: "http://127.0.0.1:8080"}
scenarios:
  - scenario: download
"""
TOGETHER = """
name: lab
backends:
  - name: a
    clone: {driver: static, target: "http://127.0.0.1:8080"}
scenarios:
  - name: rush-hour
    together:
      - scenario: save-article
      - {scenario: replay, options: {log: a.log}}
phases: {before_s: 10, during_s: 20, after_s: 10}
"""
UPGRADES = TOGETHER.replace("save-article", "upgrade-wordpress")
ENDLESS = TOGETHER.replace("before_s: 10, during_s: 20, after_s: 10", "during_s: null")


def parse_lab(text: str) -> Lab:
    return parse_model(text, "lab.yml", Lab, MANUAL, key_problems)
