"""A hundred thousand users at once, in a virtual machine that may open as many files.

    python -m benchmarks.crowd --kernel FILE [--users 100000]

On many machines, the limit of open files is below what so many connections need, and cannot be raised. A
guest's root may raise it. The guest is a kernel, busybox, nginx and bin/replay, all in memory. Its processor
is emulated, which takes many times as long: what is measured is memory, and whether all get their answers.
"""
