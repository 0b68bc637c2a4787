"""`plimsoll` as a program whose experiments exclude each other, but none of another test on this machine.

For experiments that neither make disks nor tune, beside those that do: lock and tuning are files of its own.
"""

from plimsoll.cli import main
from plimsoll.lab.experiment import machines
from plimsoll.lab.tuning import apply

if __name__ == "__main__":
    machines.LOCK_PATH = machines.LOCK_PATH.replace("lab", "lab-tests")
    apply.FOLDER += "-tests"
    main()
