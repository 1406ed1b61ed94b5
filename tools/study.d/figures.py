"""The arms of the study and what is made of them. A figure is rows of (series, x, median, least, most)."""
import os
import resource
import subprocess
import time

from harness import Bench, median, pin, stop, wait_for_port

NAMES = ("F1", "F2", "F3", "F4", "F6", "F9", "F10", "F11", "F12")
MATRIX = {"F1", "F2", "F3", "F4", "F6"}
BACKENDS = ("epoll", "io_uring", "poll", "select")
SPARE = 2000          # descriptors of a process that are not for cold connections
HERE = os.path.dirname(os.path.abspath(__file__))


class Figure:
    def __init__(self, name, title, x, y, published, kind="lines", logx=False, logy=False):
        self.name, self.title, self.x, self.y, self.published = name, title, x, y, published
        self.kind, self.logx, self.logy = kind, logx, logy
        self.rows, self.seen = [], ""

    def add(self, series, x, values):
        values = [v for v in values if v is not None]
        if values:
            self.rows.append((series, x, median(values), min(values), max(values)))

    def at(self, series, x):
        return next((r[2] for r in self.rows if r[0] == series and r[1] == x), None)

    def series(self):
        return list(dict.fromkeys(r[0] for r in self.rows))

    def xs(self):
        return list(dict.fromkeys(r[1] for r in self.rows))


def ratio(a, b):
    return a / b if a is not None and b else None


def said(v, text="%.1f"):
    return "-" if v is None else text % v


def cpu_split(pid):
    """User and kernel CPU of a process in seconds."""
    with open("/proc/%d/stat" % pid) as f:
        words = f.read().rsplit(")", 1)[1].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(words[11]) / tick, int(words[12]) / tick


class Study:
    def __init__(self, o):
        self.o, self.b = o, Bench(o)
        self.points, self.notes = {}, []
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        wanted = (0, 2000) if o.quick else (0, 1000, 2000, 8000, 18000)
        self.colds = sorted({min(c, max(0, most - SPARE)) for c in wanted})
        if max(wanted) > max(self.colds):
            self.notes.append("Cold connections end at %d: a process may open %d descriptors here."
                              % (max(self.colds), most))
        self.rates = (500, 4000) if o.quick else (500, 2000, 4000, 8000)

    def close(self):
        self.b.close()

    def run(self):
        self.b.prepare()
        wanted, made = set(self.o.figures), []
        if wanted & MATRIX:
            self.matrix()
        for name in self.o.figures:
            made += getattr(self, name.lower())()
        return made

    def say(self, text):
        print(time.strftime("%H:%M:%S ") + text, flush=True)

    # ---- the matrix: backend x cold connections x load ----

    def matrix(self):
        for n in range(self.o.rounds):
            arms = [(backend, cold) for cold in self.colds for backend in BACKENDS]
            n %= len(arms)
            for backend, cold in arms[n:] + arms[:n]:
                self.arm(backend, cold)

    def arm(self, backend, cold):
        proxy = self.b.proxy("event_backend " + backend)
        if cold:
            self.b.idle(proxy, cold, used=True)
        for rate in self.rates + (0,):
            got = self.measure(proxy, rate)
            if got["backend"] != backend:
                self.notes.append("%s is not available here; its place was taken by %s." % (backend, got["backend"]))
                break
            self.points.setdefault((backend, cold, rate), []).append(got)
        self.say("%s, %d cold connections" % (backend, cold))
        self.b.end_all()

    def measure(self, proxy, rate):
        """A moment to settle, then what lies between two looks."""
        seconds = self.o.seconds
        load = self.b.load(proxy, rate=rate, seconds=seconds + 0.6)
        load.go()
        time.sleep(0.4)
        x, x_cpu, x_split, x_t = proxy.readiness(), proxy.cpu_s(), cpu_split(proxy.pid), time.monotonic()
        time.sleep(seconds)
        y, y_cpu, y_split, y_t = proxy.readiness(), proxy.cpu_s(), cpu_split(proxy.pid), time.monotonic()
        got = load.result()
        load.close()
        took, cpu = y_t - x_t, max(y_cpu - x_cpu, 1e-9)
        calls, events = max(y["calls"] - x["calls"], 1), y["events"] - x["events"]
        share = min((y["call_s"] - x["call_s"]) / max(y["cpu_s"] - x["cpu_s"], 1e-9), 1)
        user, kernel = (y_split[i] - x_split[i] for i in (0, 1))
        user_share = user / max(user + kernel, 1e-9) * 1.0
        return {"backend": y["backend"], "req/s": got["requests"] / got["seconds"], "p50": got["p50_us"],
                "p99": got["p99_us"], "p999": got["p999_us"], "share": share, "user": min(user_share, 1 - share),
                "us a call": 1e6 * (y["call_s"] - x["call_s"]) / calls, "events a call": events / calls,
                "calls/s": calls / took, "changes": y["changes"] - x["changes"], "cpu": cpu / took}

    def values(self, key, what):
        return [p[what] for p in self.points.get(key, [])]

    def each_backend(self, figure, xs, key, what):
        for backend in BACKENDS:
            for x in xs:
                figure.add(backend, x, self.values(key(backend, x), what))

    # ---- figures of the matrix ----

    def f1(self):
        f = Figure("F1", "What a readiness call costs, by idle descriptors (%d requests/s)" % self.rates[0],
                   "idle descriptors", "CPU in the call, µs",
                   "Linear in the number of idle descriptors for select (Banga and Mogul 1998)", logy=True)
        self.each_backend(f, self.colds, lambda b, c: (b, c, self.rates[0]), "us a call")
        far = max(self.colds)
        slopes = {b: ratio((f.at(b, far) or 0) - (f.at(b, 0) or 0), far / 1000) for b in f.series()}
        linear = [b for b, s in slopes.items() if s and s > 20]
        f.seen = "%s: µs more for each 1,000 idle descriptors: %s." % (
            "Seen for " + " and ".join(linear) if linear else "Not seen",
            ", ".join("%s %.1f" % (b, s or 0) for b, s in slopes.items()))
        return [f]

    def f2(self):
        f = Figure("F2", "Saturated throughput, by cold connections", "cold connections", "requests/s",
                   "The 1998 proxy lost 44 % of its throughput at 2,000 cold connections, 14 % with both repairs")
        self.each_backend(f, self.colds, lambda b, c: (b, c, 0), "req/s")
        near = 2000 if 2000 in self.colds else max(self.colds)
        lost = {b: 100 * (1 - (ratio(f.at(b, near), f.at(b, 0)) or 0)) for b in f.series()}
        f.seen = "%s: lost at %d cold connections: %s." % (
            "Seen" if max(lost.values(), default=0) > 14 else "Not seen", near,
            ", ".join("%s %.0f %%" % (b, v) for b, v in lost.items()))
        return [f]

    def f3(self):
        f = Figure("F3", "Latency by offered load", "requests/s offered", "p99, ms",
                   "The newer interface has the lower latency before saturation (Banga, Mogul and Druschel 1999)", logy=True)
        g = Figure("F3b", "Latency by offered load, further percentiles", "requests/s offered", "ms", "", logy=True)
        some = sorted({self.colds[0], self.colds[-1]})
        for backend in ("epoll", "poll"):
            for cold in some:
                for rate in self.rates:
                    ms = {p: [v / 1e3 for v in self.values((backend, cold, rate), p)] for p in ("p50", "p99", "p999")}
                    f.add("%s %d cold" % (backend, cold), rate, ms["p99"])
                    for p in ("p50", "p999"):
                        g.add("%s %d cold %s" % (backend, cold, p), rate, ms[p])
        rate, cold = self.rates[-1], some[-1]
        a, b = f.at("epoll %d cold" % cold, rate), f.at("poll %d cold" % cold, rate)
        f.seen = "%s: p99 at %d requests/s and %d cold connections: epoll %s ms, poll %s ms." % (
            "Seen" if a and b and a < b else "Not seen", rate, cold, said(a, "%.2f"), said(b, "%.2f"))
        g.seen = "The same arms as F3."
        return [f, g]

    def f4(self):
        f = Figure("F4", "Where the CPU of the worker goes, %d requests/s and saturated" % self.rates[-1],
                   "", "share of non-idle CPU, %",
                   "The readiness call took 44 % of Squid's CPU, 25 % with the better kernel; NetCache 40 and 30 %", "stacked")
        for rate in (self.rates[-1], 0):
            for cold in (self.colds[0], self.colds[-1]):
                for backend in BACKENDS:
                    got = self.points.get((backend, cold, rate), [])
                    arm = "%s, %d cold, %s" % (backend, cold, rate or "saturated")
                    f.add("readiness call", arm, [100 * p["share"] for p in got])
                    f.add("user code", arm, [100 * p["user"] for p in got])
                    f.add("sockets and the rest of the kernel", arm, [100 * (1 - p["share"] - p["user"]) for p in got])
        arm = "%%s, %d cold, %s" % (self.colds[-1], self.rates[-1])
        shares = {b: f.at("readiness call", arm % b) for b in BACKENDS}
        f.seen = "%s: with %d cold connections and %d requests/s: %s." % (
            "Seen" if (shares.get("poll") or 0) > 25 else "Not seen", self.colds[-1], self.rates[-1],
            ", ".join("%s %s %%" % (b, said(v)) for b, v in shares.items()))
        return [f]

    def f6(self):
        f = Figure("F6", "Events a readiness call brings, by offered load (no cold connections)", "requests/s offered",
                   "events a call", "With the faster select NetCache called it seven times as often, usually for one event")
        g = Figure("F6b", "Readiness calls, by offered load (%d cold connections)" % self.colds[-1], "requests/s offered",
                   "calls a second", "")
        self.each_backend(f, self.rates, lambda b, r: (b, self.colds[0], r), "events a call")
        self.each_backend(g, self.rates, lambda b, r: (b, self.colds[-1], r), "calls/s")
        rate = self.rates[-1]
        more = ratio(g.at("epoll", rate), g.at("poll", rate))
        f.seen = "At %d requests/s epoll brings %s events a call." % (rate, said(f.at("epoll", rate), "%.2f"))
        g.seen = "%s: at %d requests/s epoll is called %s times as often as poll." % (
            "Seen" if more and more > 2 else "Not seen", rate, said(more))
        return [f, g]

    # ---- figures of their own ----

    def f9(self):
        f = Figure("F9", "Opening and closing a descriptor among many", "open descriptors", "ns for both",
                   "Linear in the laboratory of 1998 (ufalloc), not noticeable on the live proxy")
        program = os.path.join(self.b.folder, "holes")
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", program, os.path.join(HERE, "holes.c")], check=True)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 100
        for n in [n for n in (10, 1000, 5000, 10000, 18000, 50000) if n <= most]:
            got = {"low": [], "high": []}
            for _ in range(self.o.rounds + 2):
                out = subprocess.run([program, str(n), "100000"], check=True, capture_output=True, text=True,
                                     preexec_fn=pin(1)).stdout
                for line in out.splitlines():
                    word, value = line.split()
                    if word in got:
                        got[word].append(float(value))
            for word, values in got.items():
                f.add("free number " + word, n, values)
        series = f.series()
        growth = max((ratio(f.at(s, f.xs()[-1]), f.at(s, f.xs()[0])) or 0) for s in series)
        f.seen = "%s: with %d descriptors open it takes %.1f times what it takes with %d." % (
            "Seen" if growth > 2 else "Not seen", f.xs()[-1], growth, f.xs()[0])
        self.say("descriptors among many")
        return [f]

    def f10(self):
        f = Figure("F10", "System calls of a hit (2,000 requests/s)", "", "calls a request",
                   "epoll moves the cost from the wait to the change of interest (Gammo et al. 2004)", "stacked")
        for backend in BACKENDS:
            proxy = self.b.proxy("event_backend " + backend)
            load = self.b.load(proxy, rate=2000, seconds=self.o.seconds + 2.5)
            load.go()
            time.sleep(0.5)
            counts = self.strace(proxy)
            load.result()
            self.b.end_all()
            if counts is None:
                self.notes.append("strace is not there: no F10.")
                return []
            served = max(counts.get("sendmsg", 0) + counts.get("sendto", 0), 1)
            for kind, calls in grouped(counts).items():
                f.add(kind, backend, [calls / served])
        f.seen = "Interest changes a request: %s." % ", ".join(
            "%s %s" % (b, said(f.at("epoll_ctl", b) or 0, "%.3f")) for b in f.xs())
        self.say("system calls")
        return [f]

    def strace(self, proxy):
        out = os.path.join(self.b.folder, "strace.txt")
        try:
            p = subprocess.Popen(["strace", "-c", "-f", "-o", out, "-p", str(proxy.pid)], stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            return None
        time.sleep(max(1, self.o.seconds))
        stop(p, 2)
        counts = {}
        with open(out) as f:
            for line in f:
                words = line.split()
                if len(words) >= 5 and words[0][0].isdigit() and words[-1] != "total":
                    counts[words[-1]] = int(words[3])
        return counts

    def f11(self):
        f = Figure("F11", "Workers, cached set, saturated (%d cores)" % os.cpu_count(), "workers", "requests/s",
                   "Copies of an event-driven server equal the best servers of other architectures (Harji et al. 2012)")
        g = Figure("F11b", "Latency by workers", "workers", "p99, ms", "")
        numbers = (1, 2) if self.o.quick else (1, 2, 4, 8)
        got = {n: [] for n in numbers}
        for _ in range(self.o.rounds):
            for n in numbers:
                proxy = self.b.proxy(workers=n)
                load = self.b.load(proxy, seconds=self.o.seconds)
                load.go()
                got[n].append(load.result())
                self.b.end_all()
        for n in numbers:
            f.add("cuttle", n, [r["requests"] / r["seconds"] for r in got[n]])
            g.add("cuttle", n, [r["p99_us"] / 1e3 for r in got[n]])
        best = max(numbers, key=lambda n: f.at("cuttle", n) or 0)
        f.seen = "Most with %d: %s requests/s, with one %s. The clients take their share of the same cores." % (
            best, said(f.at("cuttle", best), "%.0f"), said(f.at("cuttle", 1), "%.0f"))
        g.seen = "The same arms."
        self.say("workers")
        return [f, g]

    def f12(self):
        f = Figure("F12", "Ways of sending, by object size", "object size, KB", "MB for a second of CPU",
                   "Blocking sendfile wins when the files do not fit; copies win below some size (Harji et al. 2012, JAWS)",
                   logx=True)
        sizes = (16, 512) if self.o.quick else (1, 4, 16, 64, 128, 256, 512, 1024)
        for kb in sizes:
            self.sizes_arm(f, kb)
        sent = {kb: ratio(f.at("disk sendfile", kb), f.at("disk copied", kb)) for kb in sizes}
        wins = [kb for kb in sizes if (sent[kb] or 0) > 1.1]
        f.seen = "sendfile moves more for its CPU from %s KB on; at %d KB %s times as much as copying." % (
            min(wins) if wins else "no size", sizes[-1], said(sent[sizes[-1]]))
        return [f]

    def sizes_arm(self, f, kb):
        port, folder = self.b.origin_port, self.b.folder
        self.b.origin_port = port + 1
        origin = subprocess.Popen([os.path.join(folder, "origin"), str(self.b.origin_port), str(kb << 10)], preexec_fn=pin(0))
        try:
            wait_for_port(self.b.origin_port, origin)
            for name, lines in (("memory", ("cache_mem 2 GB", "maximum_object_size_in_memory 8 MB")),
                                ("disk sendfile", ("sendfile on", "cache_mem 8 MB", "maximum_object_size_in_memory 0")),
                                ("disk copied", ("sendfile off", "cache_mem 8 MB", "maximum_object_size_in_memory 0"))):
                disk = ("cache_dir ufs %s/store-%d-%s 2500" % (folder, kb, name[-4:]),) if name != "memory" else ()
                proxy = self.b.proxy("maximum_object_size 8 MB", *lines, *disk)
                f.add(name, kb, [self.mb_a_second(proxy, kb) for _ in range(self.o.rounds)])
                self.b.end_all()
        finally:
            stop(origin)
            self.b.origin_port = port
        self.say("objects of %d KB" % kb)

    def mb_a_second(self, proxy, kb):
        load = self.b.load(proxy, seconds=self.o.seconds)
        time.sleep(0.3)
        before = proxy.cpu_s()
        load.go()
        got = load.result()
        load.close()
        return got["requests"] * kb / 1024 / max(proxy.cpu_s() - before, 1e-6)


def grouped(counts):
    """The calls that matter by name, the others together."""
    waits = {"epoll_wait", "epoll_pwait", "poll", "ppoll", "select", "pselect6", "io_uring_enter"}
    out = {"readiness call": 0, "epoll_ctl": 0, "read": 0, "sendmsg": 0, "other": 0}
    for name, n in counts.items():
        out["readiness call" if name in waits else name if name in out else "other"] += n
    return out
