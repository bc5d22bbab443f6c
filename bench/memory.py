"""The anonymous memory of a command and of the processes it starts: what is no page of a mapped file."""
import os
import subprocess
import sys
import threading


def tree(pid):
    yield pid
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
                for child in f.read().split():
                    yield from tree(child)
    except OSError:  # it has ended
        return


def anonymous_now(pid):
    total = 0
    for p in tree(pid):
        try:
            with open(f"/proc/{p}/status", encoding="ascii") as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith(("RssAnon:", "RssShmem:")))
        except OSError:
            pass
    return total * 1024 / 1e6


def watch(pid, peak, done, pause):
    while not done.wait(pause):
        peak[0] = max(peak[0], anonymous_now(pid))


def anonymous(command, pause=0):
    """The largest sum in MB, read all the time, or every `pause` seconds. Not for a timed turn: the reading costs."""
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak, done = [0], threading.Event()
    t = threading.Thread(target=watch, args=(p.pid, peak, done, pause))
    t.start()
    failed = p.wait()
    done.set()
    t.join()
    if failed:
        sys.exit(f"{' '.join(map(str, command))}: exit status {failed}")
    return peak[0]
