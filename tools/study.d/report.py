"""The figures as files: CSV, gnuplot, SVG, PNG, and one page that has all of it."""
import csv
import html
import json
import os
import platform
import resource
import shutil
import subprocess
import time

COLOURS = ("#1b6ca8", "#d1495b", "#2e933c", "#edae49", "#6a4c93", "#0b7a75", "#8d5b4c", "#444444")
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:980px;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.6em}h2{font-size:1.15em;margin-top:2.2em}table{border-collapse:collapse;font-size:13px}
td,th{border:1px solid #ccc;padding:2px 8px;text-align:left}td.n{text-align:right}svg{width:100%;height:auto}
.seen{background:#eef5ee;padding:.5em .8em;border-left:4px solid #2e933c}.not{background:#f6f1ea;border-color:#b0802b}
.pub{color:#555}details{margin:.5em 0}"""


def number(v):
    return "%.4g" % v if isinstance(v, float) else str(v)


# ---- files ----

def write_csv(folder, f):
    with open(os.path.join(folder, f.name + ".csv"), "w", newline="") as out:
        w = csv.writer(out)
        w.writerow(("series", "x", "median", "least", "most"))
        w.writerows(f.rows)


def quoted(text):
    return '"%s"' % text.replace('"', "'")


def common(f):
    yield "set datafile separator ','"
    yield "set encoding utf8"
    yield "set title %s noenhanced" % quoted("%s  %s" % (f.name, f.title))
    yield "set ylabel %s noenhanced" % quoted(f.y)
    yield "set grid ytics lc rgb '#dddddd'"
    yield "set border 3"
    yield "set tics nomirror"
    yield "set key outside right top noenhanced"
    yield "set rmargin %d" % (max(len(s) for s in f.series()) + 8)


def lines_script(f):
    yield from common(f)
    yield "set xlabel %s noenhanced" % quoted(f.x)
    xs = [r[1] for r in f.rows]
    if f.logx:
        yield "set logscale x 2"
        yield "set xtics (%s)" % ", ".join('"%s" %s' % (x, x) for x in f.xs())
    elif min(xs) == 0:
        yield "set xrange [0:%s]" % (max(xs) * 1.03 or 1)
    if f.logy:
        yield "set logscale y"
        yield "set format y '%g'"
    else:
        yield "set yrange [0:*]"
    parts = []
    for i, s in enumerate(f.series()):
        at = "'%s.csv' using (strcol(1) eq %s ? $2 : NaN)" % (f.name, quoted(s))
        look = "lc rgb '%s' lw 2" % COLOURS[i % len(COLOURS)]
        parts.append("%s:3:4:5 skip 1 with yerrorbars %s ps 0.6 pt 7 notitle" % (at, look))
        parts.append("%s:3 skip 1 with lines %s title %s" % (at, look, quoted(s)))
    yield "plot " + ", \\\n     ".join(parts)


def stacked_script(f):
    yield from common(f)
    yield "set style data histograms"
    yield "set style histogram rowstacked"
    yield "set style fill solid 0.9 border lc rgb 'white'"
    yield "set boxwidth 0.75"
    yield "set xtics rotate by -35 left noenhanced font ',9'"
    yield "set bmargin 9"
    yield "set yrange [0:%s]" % ("100" if f.y.endswith("%") else "*")
    yield "$data << E"
    for x in f.xs():
        yield ",".join([quoted(str(x))] + [number(f.at(s, x) or 0.0) for s in f.series()])
    yield "E"
    parts = ["$data using %d%s title %s lc rgb '%s'" % (i + 2, ":xtic(1)" if i == 0 else "", quoted(s), COLOURS[i % len(COLOURS)])
             for i, s in enumerate(f.series())]
    yield "plot " + ", \\\n     ".join(parts)


def plot(folder, f):
    """false: there is no gnuplot. The script draws itself again wherever it lies."""
    script = os.path.join(folder, f.name + ".gp")
    body = "\n".join((stacked_script if f.kind == "stacked" else lines_script)(f))
    with open(script, "w") as out:
        out.write("# gnuplot %s.gp makes %s.svg and %s.png\n" % (f.name, f.name, f.name))
        for term, end in (("svg size 980,460 font 'sans,13'", "svg"), ("pngcairo size 980,460 font 'sans,11'", "png")):
            out.write("set terminal %s\nset output '%s.%s'\n%s\nunset output\nreset\n" % (term, f.name, end, body))
    if not shutil.which("gnuplot"):
        return False
    got = subprocess.run(["gnuplot", f.name + ".gp"], cwd=folder, capture_output=True, text=True)
    if got.returncode:
        print("gnuplot: %s: %s" % (script, got.stderr.strip()[-300:]))
    return got.returncode == 0


# ---- the machine ----

def first_line(path, default="-"):
    try:
        with open(path) as f:
            return f.readline().strip()
    except OSError:
        return default


def said(words):
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=10).stdout.strip().split("\n")[0]
    except (OSError, subprocess.SubprocessError):
        return "-"


def processor():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())


def library(program, name):
    for line in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split("\n"):
        if name in line and "=>" in line:
            return os.path.basename(os.path.realpath(line.split("=>")[1].split()[0]))
    return "-"


def facts(o, study, took_s):
    program = study.b.cuttle[0]
    return [("made", time.strftime("%Y-%m-%d %H:%M")), ("took", "%.0f s" % took_s),
            ("program", said([program, "-v"])), ("kernel", "%s %s" % (platform.system(), platform.release())),
            ("processor", processor()), ("cores", str(os.cpu_count())),
            ("frequency governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
            ("congestion control", first_line("/proc/sys/net/ipv4/tcp_congestion_control")),
            ("descriptors of a process", str(resource.getrlimit(resource.RLIMIT_NOFILE)[1])),
            ("libev", library(program, "libev")), ("C library", " ".join(platform.libc_ver())),
            ("rounds", "%d of %.1f s, arms interleaved" % (o.rounds, o.seconds)),
            ("cold connections", ", ".join(map(str, study.colds))), ("requests/s", ", ".join(map(str, study.rates)))]


# ---- the page ----

def table(f):
    rows = "".join("<tr><td>%s</td><td>%s</td><td class=n>%s</td><td class=n>%s</td><td class=n>%s</td></tr>" % (
        html.escape(str(r[0])), html.escape(str(r[1])), number(r[2]), number(r[3]), number(r[4])) for r in f.rows)
    return ("<details><summary>the numbers</summary><table><tr><th>series</th><th>%s</th><th>median</th><th>least</th>"
            "<th>most</th></tr>%s</table></details>" % (html.escape(f.x or "arm"), rows))


def drawing(folder, f):
    try:
        with open(os.path.join(folder, f.name + ".svg"), encoding="utf-8") as svg:
            text = svg.read()
    except OSError:
        text = ""
    if "<svg" not in text:
        return "<p>It could not be drawn.</p>"
    text = text[text.index("<svg"):]
    return text.replace('id="', 'id="%s-' % f.name).replace("url(#", "url(#%s-" % f.name).replace(
        "xlink:href='#", "xlink:href='#%s-" % f.name).replace('xlink:href="#', 'xlink:href="#%s-' % f.name).replace(
        "id='", "id='%s-" % f.name)


def section(folder, f):
    published = "<p class=pub>Published: %s.</p>" % html.escape(f.published) if f.published else ""
    kind = "seen" if f.seen.startswith("Seen") else "seen not"
    return "<h2>%s &nbsp; %s</h2>%s%s<p class='%s'>%s</p>%s" % (
        f.name, html.escape(f.title), drawing(folder, f), published, kind, html.escape(f.seen), table(f))


def write(o, study, made, took_s):
    made = [f for f in made if f.rows]
    drawn = True
    for f in made:
        order = f.series()
        f.rows = sorted(f.rows, key=lambda r: order.index(r[0]))
        write_csv(o.out, f)
        drawn = plot(o.out, f) and drawn
    if not drawn:
        study.notes.append("Some drawings could not be made: apt-get install gnuplot-nox.")
    notes = list(dict.fromkeys(study.notes))
    head = "".join("<tr><td>%s</td><td>%s</td></tr>" % tuple(map(html.escape, x)) for x in facts(o, study, took_s))
    with open(os.path.join(o.out, "study.json"), "w") as f:
        json.dump({"facts": dict(facts(o, study, took_s)), "notes": notes,
                   "figures": {x.name: {"title": x.title, "seen": x.seen, "rows": x.rows} for x in made}}, f, indent=1)
    page = os.path.join(o.out, "report.html")
    with open(page, "w", encoding="utf-8") as f:
        f.write("<!doctype html><html lang=en><meta charset=utf-8><title>How descriptors scale here</title><style>%s</style>"
                "<h1>How descriptors scale here</h1><table>%s</table>%s%s</html>\n" % (
                    STYLE, head, "".join("<p>%s</p>" % html.escape(n) for n in notes),
                    "".join(section(o.out, x) for x in made)))
    for f in made:
        print("%-5s %s" % (f.name, f.seen))
    return page
