"""Copied beside each generated program under a name of its own: finds the numbers of a job, profiles it, writes what it measured.

The program gives three functions: one that builds everything anew from the numbers in `P`, one that goes n steps and appends their starts
and ends to `P.rows`, and nothing else. Whether the cause is there says `P.on` (and `P.also` for the second of a pair). Names are plain: a
profile shows some of them.
"""

import contextlib
import gc
import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

clock = time.perf_counter
ROUNDS, REPEATS, WAIT_S, NEAR = 5, 2, 120, 0.08
LOOK_S, QUIET_CORES = 0.2, 0.25
LONGEST_S = 0.4  # of a step where the cause costs what it costs


class Sheet:
    """The numbers of a job, and what it measured."""

    on = also = True
    amount = more = 0.0  # how much of the first and of the second cause
    work = 1  # how much a healthy step computes
    spent = extra = 0.0  # seconds in the first and in the second cause, whichever thread they took
    turn = 0  # grows each time everything is built anew; threads of before end by it
    first = 0
    end = 0.0

    def __init__(self):
        self.rows = []


with open(sys.argv[2]) as given:
    SPEC = json.load(given)
P = Sheet()
P.meet, P.n_hosts, P.host = f"localhost:{SPEC['port']}", SPEC["hosts"], SPEC["host"]


class Noise:
    """What other processes take of the processors: `cores` since it was made."""

    def __init__(self):
        self.begin = self.now()

    @staticmethod
    def now():
        """Seconds that passed, that all processors were busy, and that this process was."""
        own = os.times()
        try:
            with open("/proc/stat") as file:
                ticks = [int(value) for value in file.readline().split()[1:9]]
        except OSError:
            return clock(), 0.0, 0.0
        return clock(), (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK"), own.user + own.system

    def cores(self):
        passed, busy, own = (after - before for before, after in zip(self.begin, self.now(), strict=True))
        return max(0.0, busy - own) / passed


class Desk:
    """One job on the way from its spec to its truth."""

    def __init__(self, make, walk):
        self.make, self.walk = make, walk
        self.out, self.spec = sys.argv[1], SPEC
        self.lead = self.spec["host"] == self.spec["lead"]
        self.n_said, self.patience_s = 0, self.spec["patience_s"]
        P.amount, P.more, P.work = self.spec["amount"], self.spec["more"], self.spec["work"]

    def turned(self, on, also):
        """Everything anew, with or without the causes."""
        P.on, P.also = on and self.lead, also and self.lead
        P.turn += 1
        gc.collect()
        self.make()

    def timed(self, n):
        """Goes n steps; `usual_s`: a step that nothing from outside held up."""
        P.rows.clear()
        P.spent = P.extra = 0.0
        self.walk(n)
        starts = [row[0] for row in P.rows] + [P.end]
        mean = (P.end - starts[0]) / n
        each = [after - before for before, after in itertools.pairwise(starts)]
        usual = statistics.median(each) if self.spec["is_steady"] else mean
        return {"step_s": mean, "usual_s": usual, "spent_s": P.spent / n, "extra_s": P.extra / n}

    def tried(self, on, also=None):
        """A few steps under a profile that is thrown away."""
        self.turned(on, on if also is None else also)
        self.walk(max(3, self.spec["lap"]))
        with self.traced(None):
            return self.timed(max(8, 2 * self.spec["lap"]))

    def hush(self):
        """Stays until other processes leave the processors alone, though not for long."""
        self.turned(False, False)
        while self.patience_s > 0:
            noise = Noise()
            time.sleep(LOOK_S)
            self.patience_s -= LOOK_S
            if noise.cores() < QUIET_CORES:
                return

    @contextlib.contextmanager
    def traced(self, folder):
        """Under the profiler; `folder` None: what it wrote is thrown away."""
        target = folder or tempfile.mkdtemp()
        if self.spec["framework"] == "jax":
            import jax

            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = self.spec["tracer"]
            jax.profiler.start_trace(target, profiler_options=options)
            yield
            jax.profiler.stop_trace()
        else:
            import tensorflow as tf

            options = tf.profiler.experimental.ProfilerOptions(python_tracer_level=self.spec["tracer"])
            tf.profiler.experimental.start(target, options)
            yield
            tf.profiler.experimental.stop(save=folder is not None)
        if folder is None:
            shutil.rmtree(target, ignore_errors=True)

    def same(self, value):
        """Hosts of one job go on with what the one that has the cause found."""
        if self.spec["hosts"] == 1:
            return value
        self.n_said += 1
        path = os.path.join(self.spec["shared"], f"said{self.n_said}.json")
        if self.lead:
            with open(path + ".new", "w") as file:
                json.dump(value, file)
            os.replace(path + ".new", path)
            return value
        until = clock() + WAIT_S
        while not os.path.exists(path):
            if clock() > until:
                raise TimeoutError(path)
            time.sleep(0.005)
        with open(path) as file:
            return json.load(file)

    def scaled_work(self, wanted):
        """Twice: `P.work` so that a step without a cause takes that long."""
        for _ in range(2):
            took = self.tried(False)["usual_s"]
            P.work = self.same(max(1, round(P.work * min(50.0, max(0.02, wanted / took)))))

    def grown(self, amount, factor, full):
        """A better amount: at most 4 times as much, or a fifth; and steps stay short."""
        most = max(1.0, min(4.0, 6 * self.spec["target_s"] / full))
        return amount * min(most, max(0.2, factor))

    def by_amount(self, second=False):
        """Sets the amount of one cause, the other one away, so that its share of a step with all causes is met."""
        share = self.spec["second_share" if second else "share"]
        rest = 1 - self.spec["share"] - self.spec["second_share"]
        is_direct = self.spec["is_direct"][second]
        for _ in range(ROUNDS):
            amount = P.more if second else P.amount
            found = self.tried(not second, second)
            full, spent = found["usual_s"], found["extra_s" if second else "spent_s"]
            if is_direct:
                wanted = (found["step_s"] - spent) * share / rest
                factor = wanted / max(spent, 1e-7)
            else:
                bare = self.tried(False)["usual_s"]
                unit = (spent if spent > 0 else max(full - bare, 1e-4)) / amount
                wanted = bare * share / rest
                factor = 1 + (bare + wanted - full) / unit / amount
                spent = full - bare
            is_near = abs(spent / wanted - 1) < NEAR
            amount, is_near = self.same([amount if is_near else self.grown(amount, factor, full), is_near])
            if second:
                P.more = amount
            else:
                P.amount = amount
            if is_near:
                return

    def by_work(self):
        """Sets how much a step computes, so that the cause, whose cost is given, has its share."""
        share = self.spec["share"]
        for _ in range(ROUNDS):
            found = self.tried(True)
            cost = found["spent_s"] if self.spec["is_direct"][0] else found["usual_s"] - self.tried(False)["usual_s"]
            rest = (found["step_s"] if self.spec["is_direct"][0] else found["usual_s"]) - cost
            wanted = min(LONGEST_S, max(cost, 1e-4) * (1 - share) / share)
            factor, is_near = self.same([min(6.0, max(0.15, wanted / rest)), abs(rest / wanted - 1) < NEAR])
            if is_near:
                return
            P.work = max(1, round(P.work * factor))

    def numbers(self):
        """What was found before, or what is found now."""
        given = self.spec["numbers"]
        if given:
            P.amount, P.more, P.work = given["amount"], given["more"], given["work"]
            return given
        if self.spec["tune"] == "work":
            self.by_work()
        else:
            self.scaled_work(self.spec["target_s"] * (1 - self.spec["share"] - self.spec["second_share"]))
        if self.spec["tune"] == "amount":
            self.by_amount()
        if self.spec["second_share"]:
            self.by_amount(True)
        return {"amount": P.amount, "more": P.more, "work": P.work}

    def told(self, folder, on, is_cold):
        """Profile one way: the steps and their means."""
        self.hush()
        self.turned(on, True)
        if not is_cold:
            self.walk(max(3, self.spec["lap"]))
        P.first = 100
        with self.traced(folder):
            noise = Noise()
            found = self.timed(self.spec["n"])
            found["outside_cores"] = noise.cores()
        P.first = 0
        return {**found, "steps": list(P.rows), "end": P.end}

    def go(self):
        """All of it, into OUT/truth.json; a part of a run that is there already is kept."""
        path = os.path.join(self.out, "truth.json")
        truth = {"numbers": self.numbers()}
        is_cold = self.spec["tune"] == "cold"
        for part in self.spec["parts"]:
            folder = os.path.join(self.out, part)
            os.makedirs(folder, exist_ok=True)
            truth[part] = self.told(folder, part == "with", is_cold and part == "with")
        if "without" in self.spec["parts"]:
            ways = {"with": (True, True), "without": (False, True)}
            if self.spec["second_share"]:
                ways["without_second"] = (True, False)
            self.hush()
            truth["repeats"] = [{way: self.tried(*states) for way, states in ways.items()} for _ in range(REPEATS)]
        with open(path, "w") as file:
            json.dump(truth, file)


def go(make, walk):
    desk = Desk(make, walk)
    desk.go()
    desk.turned(False, False)
    sys.stdout.flush()
    os._exit(0)
