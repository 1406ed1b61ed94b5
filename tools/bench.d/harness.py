"""What tools/bench and tools/study share: processes that are started, watched and ended, a load, a
proxy that tells of itself, the noise of others."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
CONNECTIONS = 64
START_S = 20
WAIT_S = 600        # of any single load
NOISY = 0.15        # cores that others may use


def pin(core):
    def in_child():
        os.setsid()
        if os.cpu_count() > 1:
            os.sched_setaffinity(0, {core})
    return in_child


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process):
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("%s does not listen on port %d" % (process.args[0], port))


def stop(process, with_signal=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(with_signal)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Load:
    """A process of bench.d/load: it stands ready, waits for go(), and reports."""

    def __init__(self, words):
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, preexec_fn=pin(0), text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("the load could not get ready: %s" % " ".join(self.process.args[1:]))

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self

    def result(self):
        return json.loads(self.process.communicate(timeout=WAIT_S)[0])

    def close(self):
        stop(self.process)
        self.process.stdin.close()
        self.process.stdout.close()


class Proxy:
    """A proxy in the foreground, cuttle or another that reads squid.conf."""

    def __init__(self, folder, program, lines, origin_port, workers=1):
        self.folder, self.port, self.origin_port = folder, free_port(), origin_port
        conf = os.path.join(folder, "conf")
        with open(conf, "w") as f:
            f.write("\n".join(self.common() + list(lines)) + "\n")
        self.process = subprocess.Popen(
            program + ["-N", "-f", conf], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(folder, "stderr"), "w"), cwd=folder,
            preexec_fn=pin(1) if workers == 1 else None)
        wait_for_port(self.port, self.process)

    def common(self):
        return ["http_port 127.0.0.1:%d" % self.port,
                "acl here src 127.0.0.0/8",
                "http_access allow here",
                "http_access deny all",
                "access_log stdio:%s/access.log" % self.folder,
                "cache_log %s/cache.log" % self.folder,
                "pid_filename none",
                "shutdown_lifetime 0 seconds",
                "client_idle_pconn_timeout 1 hour",
                "request_start_timeout 1 hour",
                "visible_hostname bench.localhost"]

    @property
    def pid(self):
        return self.process.pid

    def page(self, name):
        url = "http://127.0.0.1:%d/squid-internal-mgr/%s" % (self.port, name)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=30) as r:
            return r.read().decode(errors="replace")

    def readiness(self):
        """Calls, events, CPU in the call and CPU of the workers, since start."""
        block = self.page("readiness").split("All workers", 1)[1].split("All workers", 1)[0]

        def value(name):
            return float(re.search(r"^ +%s = ([\d.]+)" % name, block, re.M).group(1))
        return {"backend": re.search(r"backend = (\S+)", block).group(1),
                "calls": value("calls"), "events": value("events"),
                "call_s": value("cpu_in_call"), "cpu_s": value("cpu_of_thread"),
                "changes": value("interest_changes")}

    def census(self):
        """Descriptors by purpose, as the manager counts them."""
        text = self.page("filedescriptors").split("Descriptors by purpose:", 1)[1]
        rows = re.findall(r"^([A-Za-z][A-Za-z ]*?) +(\d+) +[\d.]+ +(\d+) .* (\d+) +(\d+)$",
                          text.split("\n\n")[0], re.M)
        return {name: int(now) for name, now, _, _, _ in rows}

    def report(self, name, *wanted):
        text = self.page(name)
        found = [re.search(r"^\s*%s\s*[:=]?\s*([\d.]+)" % re.escape(w), text, re.M) for w in wanted]
        return [float(f.group(1)) if f else None for f in found]

    def pss_kb(self):
        with open("/proc/%d/smaps_rollup" % self.pid) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))

    def cpu_s(self):
        return sum(task_cpu_s(self.pid, t) for t in os.listdir("/proc/%d/task" % self.pid))

    def busiest_task(self):
        return int(max(os.listdir("/proc/%d/task" % self.pid),
                       key=lambda t: task_cpu_s(self.pid, t)))

    def descriptors(self):
        time.sleep(0.3)  # what has just been closed is gone by then
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def close(self):
        stop(self.process)


def task_cpu_s(pid, task):
    try:
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
            return int(f.read().split()[0]) / 1e9
    except OSError:
        return 0.0


class Bench:
    def __init__(self, options):
        self.options = options
        self.cuttle = [os.path.abspath(os.environ.get("CUTTLE") or
                                       os.path.join(HERE, "..", "..", "build", "cuttle"))]
        if not os.access(self.cuttle[0], os.X_OK):
            sys.exit("%s is not there: run tools/run once, or name a program in CUTTLE" %
                     self.cuttle[0])
        self.folder = tempfile.mkdtemp(prefix="cuttle-bench-")
        self.running = []
        self.tables = {}
        self.noise = Noise(options.patience)
        self.origin_port = free_port()

    def prepare(self):
        for name in "load", "origin":
            subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", os.path.join(self.folder, name),
                            os.path.join(HERE, name + ".c")], check=True)
        origin = subprocess.Popen([os.path.join(self.folder, "origin"), str(self.origin_port)],
                                  preexec_fn=pin(0))
        self.running.append(lambda: stop(origin))
        wait_for_port(self.origin_port, origin)

    def kept(self, thing):
        self.running.append(thing.close)
        return thing

    def proxy(self, *lines, workers=1):
        folder = tempfile.mkdtemp(prefix="proxy-", dir=self.folder)
        return self.kept(Proxy(folder, self.cuttle, lines + ("workers %d" % workers,),
                               self.origin_port, workers))

    def load(self, proxy, mix="hit", rate=0, seconds=WAIT_S / 2, most=0, connections=CONNECTIONS):
        return self.kept(Load([os.path.join(self.folder, "load"), "run", proxy.port,
                               self.origin_port, connections, mix, rate, seconds, most]))

    def idle(self, proxy, n, used=False):
        return self.kept(Load([os.path.join(self.folder, "load"), "idle", proxy.port,
                               self.origin_port, n, int(used)]))

    def end_all(self):
        """What was started last ends first."""
        while len(self.running) > 1:
            self.running.pop()()

    def close(self):
        while self.running:
            self.running.pop()()
        shutil.rmtree(self.folder, ignore_errors=True)

    def table(self, name, title, columns):
        return Table(self.tables.setdefault(name, []), title, columns)


class Table:
    """Printed row by row; the rows are kept with their full precision for --json."""

    def __init__(self, rows, title, columns):
        self.rows, self.columns = rows, columns
        print("\n%s\n" % title)
        print("| %s |" % " | ".join(columns))
        print("|%s" % ("---|" * len(columns)), flush=True)

    def add(self, *values):
        self.rows.append(dict(zip(self.columns, values)))
        print("| %s |" % " | ".join(shown(v) for v in values), flush=True)


def shown(v):
    if v is None:
        return "-"
    if isinstance(v, float):
        return "%.0f" % v if abs(v) >= 1000 else "%.1f" % v if abs(v) >= 10 else "%.2f" % v
    return "{:,}".format(v) if isinstance(v, int) else str(v)


class Noise:
    """CPU that neither we nor our children use, in cores, between two looks; time that the machine
    below took away counts as well."""

    def __init__(self, patience_s):
        self.patience_s = patience_s
        self.before = self.look()

    @staticmethod
    def look():
        with open("/proc/stat") as f:
            user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
        busy = user + nice + system + irq + softirq + steal
        me = str(os.getpid())
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as f:
                    words = f.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if pid == me:
                busy -= sum(map(int, words[11:15]))
            elif words[1] == me:
                busy -= sum(map(int, words[11:13]))
        return time.monotonic(), busy

    def cores(self):
        began, before = self.before
        self.before = ended, now = self.look()
        took = max(ended - began, 0.01)
        return max(0.0, (now - before) / os.sysconf("SC_CLK_TCK") / took)

    def wait_for_quiet(self):
        """As long as our patience lasts, which is shared by all waits of this run."""
        while self.patience_s > 0:
            self.cores()
            time.sleep(0.5)
            if self.cores() <= NOISY:
                return
            self.patience_s -= 0.5


def median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else None
