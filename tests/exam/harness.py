"""Copied next to each generated program under a neutral name: finds the numbers of a job, profiles it, and
writes the measurements.

The program gives three functions: one that builds everything anew from the numbers in `P`, one that goes n
steps and appends their starts and ends to `P.rows`, and nothing else. Whether the cause is there says `P.on`
(and `P.also` for the second of a pair). Names are plain: a profile shows some of them.
"""

import contextlib
import gc
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

clock = time.perf_counter
ROUNDS, REPEATS, WAIT_S, NEAR = 5, 2, 120, 0.08
LOOK_S, QUIET_CORES = 0.2, 0.25
LONGEST_S = 0.4  # of a step whose cause has a fixed cost


class Enough(Exception):
    """A capture from outside has ended."""


class Rows(list):
    """Starts and ends of steps, with the seconds spent so far and whether a profiler recorded. Raises Enough
    to end a walk.
    """

    def __init__(self):
        super().__init__()
        self.is_recorded = self.is_over = lambda: False

    def append(self, row):
        super().append((*row, P.spent, P.extra, self.is_recorded()))
        if self.is_over():
            raise Enough


class Sheet:
    """The numbers of a job and its measurements."""

    on = also = True
    amount = more = 0.0  # how much of the first and of the second cause
    work = 1  # how much a healthy step computes
    spent = extra = 0.0  # seconds in the first and in the second cause, on any thread
    turn = 0  # grows with each rebuild, which ends the threads of earlier ones
    first = 0
    end = 0.0

    def __init__(self):
        self.rows = Rows()


with open(sys.argv[2]) as given:
    SPEC = json.load(given)
P = Sheet()
P.meet, P.n_hosts, P.host = f"localhost:{SPEC['port']}", SPEC["hosts"], SPEC["host"]


class Noise:
    """Processors that other processes use: `cores` since its creation."""

    def __init__(self):
        self.begin = self.now()

    @staticmethod
    def now():
        """Seconds elapsed, busy on all processors, and busy in this process."""
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
    """Turns the spec of a job into its truth."""

    def __init__(self, make, walk):
        self.make, self.walk = make, walk
        self.out, self.spec = sys.argv[1], SPEC
        self.lead = self.spec["host"] == self.spec["lead"]
        self.is_served, self.first_s, self.last_s = False, 0.0, 0.0
        self.is_outside = self.spec["framework"] != "jax" and self.spec["tracer"] > 0
        self.n_said, self.patience_s = 0, self.spec["patience_s"]
        P.amount, P.more, P.work = self.spec["amount"], self.spec["more"], self.spec["work"]

    def turned(self, on, also):
        """Rebuilds everything, with or without the causes."""
        P.on, P.also = on and self.lead, also and self.lead
        P.turn += 1
        gc.collect()
        self.make()

    def timed(self, n):
        """Runs n steps; `usual_s`: a step without outside interference."""
        P.rows.clear()
        P.spent = P.extra = 0.0
        self.walk(n)
        starts = [row[0] for row in P.rows] + [P.end]
        mean = (P.end - starts[0]) / n
        each = [after - before for before, after in itertools.pairwise(starts)]
        usual = statistics.median(each) if self.spec["is_steady"] else mean
        return {"step_s": mean, "usual_s": usual, "spent_s": P.spent / n, "extra_s": P.extra / n}

    def tried(self, on, also=None):
        """Runs a few steps under a profile that is discarded."""
        self.turned(on, on if also is None else also)
        begin = clock()
        self.walk(max(3, self.spec["lap"]))
        self.first_s = clock() - begin
        with self.traced(None):
            found = self.timed(max(8, 2 * self.spec["lap"]))
        self.last_s = found["step_s"]
        return found

    def hush(self):
        """Waits for a quiet machine, within the job's patience."""
        self.turned(False, False)
        while self.patience_s > 0:
            noise = Noise()
            time.sleep(LOOK_S)
            self.patience_s -= LOOK_S
            if noise.cores() < QUIET_CORES:
                return

    @contextlib.contextmanager
    def traced(self, folder):
        """Runs under the profiler; discards the profile if `folder` is None."""
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

            tf.profiler.experimental.start(
                target, tf.profiler.experimental.ProfilerOptions(python_tracer_level=0)
            )
            yield
            tf.profiler.experimental.stop(save=folder is not None)
        if folder is None:
            shutil.rmtree(target, ignore_errors=True)

    def same(self, value):
        """The value that the host with the cause found, shared with the job's other hosts."""
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
        """Sets `P.work`, in two rounds, so that a step without a cause takes `wanted` seconds."""
        for _ in range(2):
            took = self.tried(False)["usual_s"]
            P.work = self.same(max(1, round(P.work * min(50.0, max(0.02, wanted / took)))))

    def grown(self, amount, factor, full):
        """A better amount: between a fifth and 4 times as much, within the limit of a step."""
        most = max(1.0, min(4.0, 6 * self.spec["target_s"] / full))
        return amount * min(most, max(0.2, factor))

    def by_amount(self, second=False):
        """Sets the amount of one cause, without the other one, to meet its share of a step with all
        causes.
        """
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
        """Sets the work of a step so that a cause of fixed cost has its share."""
        share = self.spec["share"]
        for _ in range(ROUNDS):
            found = self.tried(True)
            cost = (
                found["spent_s"]
                if self.spec["is_direct"][0]
                else found["usual_s"] - self.tried(False)["usual_s"]
            )
            rest = (found["step_s"] if self.spec["is_direct"][0] else found["usual_s"]) - cost
            wanted = min(LONGEST_S, max(cost, 1e-4) * (1 - share) / share)
            factor, is_near = self.same([min(6.0, max(0.15, wanted / rest)), abs(rest / wanted - 1) < NEAR])
            if is_near:
                return
            P.work = max(1, round(P.work * factor))

    def corrected(self):
        """Corrects the numbers after a trial capture: frames recorded from outside make Python slower."""
        folder = tempfile.mkdtemp()
        bare = self.tried(False)["step_s"]
        self.tried(True)
        found = self.captured(folder, False)
        shutil.rmtree(folder, ignore_errors=True)
        if not self.spec["is_direct"][0]:
            found["spent_s"] = max(1e-4, found["step_s"] - bare)
        rest = found["step_s"] - found["spent_s"] - found["extra_s"]
        left = 1 - self.spec["share"] - self.spec["second_share"]
        if self.spec["tune"] == "work":
            wanted = min(LONGEST_S, found["spent_s"] * left / self.spec["share"])
            P.work = max(1, round(P.work * min(6.0, max(0.15, wanted / rest))))
            return
        P.amount *= rest * self.spec["share"] / left / found["spent_s"]
        if found["extra_s"] > 0:
            P.more *= rest * self.spec["second_share"] / left / found["extra_s"]

    def numbers(self):
        """The given numbers, or newly tuned ones."""
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
        if self.is_outside and (
            self.spec["tune"] == "work" or (self.spec["tune"] == "amount" and all(self.spec["is_direct"]))
        ):
            self.corrected()
        return {"amount": P.amount, "more": P.more, "work": P.work}

    def captured(self, folder, is_cold):
        """Runs while another process captures: a TensorFlow program's own profile has no Python functions."""
        import tensorflow as tf
        from tensorflow.python.profiler import trace

        if not self.is_served:
            tf.profiler.experimental.server.start(self.spec["port"])
            self.is_served = True
        lasts_s = self.spec["n"] * self.last_s + self.first_s * is_cold
        command = [*self.spec["capture"], "--logdir", folder, "--duration_ms", str(round(lasts_s * 1e3))]
        P.rows.clear()
        with open(os.path.join(self.out, "capture.txt"), "w") as told:
            process = subprocess.Popen(
                command, cwd=tempfile.gettempdir(), stdin=subprocess.DEVNULL, stdout=told, stderr=told
            )
            P.rows.is_recorded, P.rows.is_over = trace.enabled, lambda: process.poll() is not None
            while is_cold and not trace.enabled() and process.poll() is None:
                time.sleep(0.001)
            with contextlib.suppress(Enough):
                self.walk(1_000_000)
            P.rows.is_recorded = P.rows.is_over = lambda: False
        if process.returncode:
            with open(told.name) as said:
                raise RuntimeError(said.read())
        rows = [
            row
            for before, row in zip([P.rows[0], *P.rows], P.rows, strict=False)
            if (before[4] or is_cold) and row[4]
        ]
        n = (len(rows) - 1) // self.spec["lap"] * self.spec["lap"]
        if not n:
            raise RuntimeError(f"{len(rows)} steps in {lasts_s} s")
        first, last, steps = rows[0], rows[n], rows[:n]
        each = [after[0] - before[0] for before, after in itertools.pairwise(rows[: n + 1])]
        mean = (last[0] - first[0]) / n
        usual = statistics.median(each) if self.spec["is_steady"] else mean
        found = {
            "step_s": mean,
            "usual_s": usual,
            "spent_s": (last[2] - first[2]) / n,
            "extra_s": (last[3] - first[3]) / n,
        }
        return {**found, "steps": [row[:2] for row in steps], "end": last[0]}

    def told(self, folder, on, also=True, is_cold=False):
        """Profile one way: the steps and their means."""
        if self.is_outside:
            self.tried(on, also)
        self.hush()
        self.turned(on, also)
        if not is_cold:
            self.walk(max(3, self.spec["lap"]))
        P.first = 100
        noise = Noise()
        if self.is_outside:
            found = self.captured(folder, is_cold)
        else:
            with self.traced(folder):
                noise = Noise()
                found = {**self.timed(self.spec["n"]), "steps": [row[:2] for row in P.rows], "end": P.end}
        P.first = 0
        return {**found, "outside_cores": noise.cores()}

    def repeats(self):
        """Repeats the ways in turn; with captures from outside, only those not profiled yet."""
        ways = {"with": (True, True), "without": (False, True)}
        if self.is_outside:
            ways = {}
        if self.spec["second_share"]:
            ways["without_second"] = (True, False)
        if self.is_outside:
            return [{way: self.told(tempfile.mkdtemp(), *states) for way, states in ways.items()}]
        self.hush()
        return [{way: self.tried(*states) for way, states in ways.items()} for _ in range(REPEATS)]

    def go(self):
        """Measures everything and writes OUT/truth.json."""
        path = os.path.join(self.out, "truth.json")
        truth = {"numbers": self.numbers()}
        is_cold = self.spec["tune"] == "cold"
        for part in self.spec["parts"]:
            folder = os.path.join(self.out, part)
            os.makedirs(folder, exist_ok=True)
            truth[part] = self.told(folder, part == "with", is_cold=is_cold and part == "with")
        if "without" in self.spec["parts"] and not is_cold:
            truth["repeats"] = self.repeats()
        with open(path, "w") as file:
            json.dump(truth, file)


def go(make, walk):
    desk = Desk(make, walk)
    desk.go()
    desk.turned(False, False)
    sys.stdout.flush()
    os._exit(0)
