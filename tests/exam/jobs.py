"""The jobs of a seed: which cause, how much of it, in which framework, seen how, and by which names."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from tests.exam.parts import SHARES, Part
from tests.exam.parts_device import COMPILATION, CONTENTION, DISPATCH, SYNCHRONIZATION, TRANSFERS, WARM_UP
from tests.exam.parts_host import CALLBACKS, HEALTHY_HOST, PERIODIC, PYTHON
from tests.exam.parts_input import HEALTHY_INPUT, INPUT

PLANTED: tuple[Part, ...] = (
    *INPUT,
    *PYTHON,
    *COMPILATION,
    *SYNCHRONIZATION,
    *CALLBACKS,
    *DISPATCH,
    *PERIODIC,
    *CONTENTION,
    *TRANSFERS,
    *WARM_UP,
)
HEALTHY = (*HEALTHY_INPUT, *HEALTHY_HOST)
MODELS = {
    "jax": ("chain", "loop", "scan", "gradient"),
    "tensorflow": ("chain", "loop", "gradient"),
    "keras": ("dense",),
}
NAMED = ("rig", "file", "side", "cell", "cost", "step", "walk", "label")
ROLES = "fghp"
WORDS = (
    "alder",
    "amber",
    "basalt",
    "birch",
    "cedar",
    "cobalt",
    "coral",
    "delta",
    "ember",
    "fjord",
    "flint",
    "grove",
    "hazel",
    "hop",
    "indigo",
    "ivory",
    "jade",
    "kelp",
    "lark",
    "linden",
    "maple",
    "mesa",
    "moss",
    "nectar",
    "ochre",
    "onyx",
    "opal",
    "pebble",
    "pine",
    "plume",
    "quartz",
    "reed",
    "ridge",
    "sable",
    "slate",
    "sorrel",
    "thorn",
    "tick",
    "tide",
    "umber",
    "unit",
    "vale",
    "velvet",
    "willow",
    "wren",
    "zinc",
)
EVERY_CELL = ("input", "python", "compilation", "synchronization", "callbacks", "dispatch", "periodic")
PAIRS = (
    ("input", "periodic"),
    ("input", "python"),
    ("python", "callbacks"),
    ("periodic", "python"),
    ("callbacks", "input"),
    ("python", "dispatch"),
    ("dispatch", "periodic"),
    ("input", "callbacks"),
)
PAIR_SHARES = ((0.4, 0.15), (0.3, 0.12))
HOSTED = ("input", "python", "periodic", "")  # causes that may be planted on one of two hosts
N_HEALTHY = 28
_TAKEN = {"go", "make", "io", "np", "tf", "jax", "os"}


@dataclass(frozen=True)
class Job:
    """One job. `names`: of files, functions and the annotation; `roles`: of each part's functions."""

    number: int
    framework: str
    parts: tuple[Part, ...]
    share: float
    second_share: float
    tracer: int
    is_annotated: bool
    n_devices: int
    n_hosts: int
    lead: int
    model: str
    end: str
    is_fetch_outside: bool
    has_side: bool
    size: int
    layers: int
    target_s: float
    n_steps: int
    names: dict[str, str] = field(hash=False)
    roles: tuple[dict[str, str], ...] = field(hash=False)

    @property
    def name(self) -> str:
        """A neutral name, which does not reveal the cause."""
        return f"j{self.number:03d}"

    @property
    def cause(self) -> str:
        """The first cause; "" where nothing is planted."""
        return self.parts[0].cause if self.parts else ""

    @property
    def second(self) -> str:
        """The second cause of a pair."""
        return self.parts[1].cause if len(self.parts) > 1 else ""

    @property
    def spread(self) -> int:
        """Number of devices that a step is spread over."""
        return self.n_devices * self.n_hosts

    @property
    def label(self) -> str:
        """A readable description."""
        what = " and ".join(f"{part.cause or 'healthy'} ({part.name})" for part in self.parts) or "healthy"
        tracer = "with Python tracer" if self.tracer else "no Python tracer"
        return f"{self.name} {self.framework} {what} {self.share:.0%} {tracer}"


class Draw:
    """The random choices of a seed's jobs."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.uses: dict[Part, int] = {}
        self.n = 0

    def name(self, taken: set[str]) -> str:
        """A neutral name that is not taken."""
        while True:
            word, letter, digits = (
                self.rng.choice(WORDS),
                self.rng.choice("abcdefghkmnpqrstuvz"),
                self.rng.randrange(1, 99),
            )
            name = self.rng.choice(
                (
                    word,
                    word,
                    f"{word}_{letter}",
                    f"{letter}{digits}",
                    f"{letter}_{digits}",
                    f"{word}{digits % 10}",
                )
            )
            if name not in taken:
                taken.add(name)
                return name

    def part(self, cause: str, share: int, framework: str = "") -> Part:
        """The least used part that plants the cause with that share."""
        fits = [
            part
            for part in PLANTED
            if part.cause == cause
            and (share < len(part.shares))
            and (not framework or framework in part.frameworks)
        ]
        fewest = min(self.uses.get(part, 0) for part in fits)
        part = self.rng.choice([part for part in fits if self.uses.get(part, 0) == fewest])
        self.uses[part] = fewest + 1
        return part

    def framework(self, parts: Sequence[Part]) -> str:
        """One that all parts support."""
        supported = [
            one
            for one in ("jax", "jax", "tensorflow", "keras")
            if all(one in part.frameworks for part in parts)
        ]
        return self.rng.choice(supported)

    def job(
        self,
        parts: tuple[Part, ...],
        shares: tuple[float, float],
        seen: tuple[int, bool],
        framework: str = "",
        shape: tuple[int, str] = (0, ""),
    ) -> Job:
        """A job with these parts; `seen`: tracer and annotated; `shape`: devices and the end of a step. The
        rest is drawn.
        """
        rng = self.rng
        self.n += 1
        framework = framework or self.framework(parts)
        model = rng.choice(MODELS[framework])
        is_async = any(part.is_async for part in parts)
        may_be_wide = framework == "jax" and not is_async and all(part.is_wide for part in parts)
        n_devices = (shape[0] or rng.choice((1, 1, 1, 2, 4))) if may_be_wide else 1
        end = "none" if is_async else shape[1] or rng.choice(("wait", "float"))
        if framework == "jax" and n_devices == 1 and rng.random() < 0.3 and self._hides(parts, shares):
            end = "none"
        lap = max([part.lap for part in parts], default=1)
        n_steps = 12 if any(part.tune == "work" for part in parts) else rng.randrange(12, 25)
        taken = set(_TAKEN)
        sizes = (320, 512) if model in ("chain", "gradient") else (160, 384)
        names = {role: self.name(taken) for role in NAMED}
        return Job(
            number=self.n,
            framework=framework,
            parts=parts,
            share=shares[0],
            second_share=shares[1],
            tracer=seen[0],
            is_annotated=seen[1],
            n_devices=n_devices,
            n_hosts=1,
            lead=0,
            model=model,
            end=end,
            is_fetch_outside=rng.random() < 0.4,
            has_side=rng.random() < 0.5,
            size=rng.randrange(*(sizes if framework != "keras" else (256, 512)), 32),
            layers=rng.randrange(1, 3),
            target_s=round(rng.uniform(0.024, 0.056), 4),
            n_steps=-(-n_steps // lap) * lap,
            names=names,
            roles=tuple({role: self.name(taken) for role in ROLES} for _ in parts),
        )

    @staticmethod
    def _hides(parts: Sequence[Part], shares: tuple[float, float]) -> bool:
        """Whether a loop that never waits still shows the cause: one cause that overlaps with the device,
        longer than the device's work.
        """
        return len(parts) == 1 and parts[0].cause in ("input", "python") and shares[0] >= 0.3

    def planted(self) -> Iterator[Job]:
        """Every cause at every share, with and without the Python tracer and annotations."""
        for cause in EVERY_CELL:
            for share, tracer, is_annotated in itertools.product(range(len(SHARES)), (0, 1), (False, True)):
                part = self.part(cause, share)
                yield self.job((part,), (part.shares[share], 0.0), (tracer, is_annotated))
        for cause in ("contention", "transfers"):
            for i, (share, tracer) in enumerate(itertools.product(range(len(SHARES)), (0, 1))):
                part = self.part(cause, share)
                yield self.job((part,), (part.shares[share], 0.0), (tracer, i in (0, 3, 4)))
        for tracer, is_annotated in itertools.product((0, 1), (False, True)):
            yield self.job((self.part("warm_up", 0),), (0.0, 0.0), (tracer, is_annotated))
        for i, (first, second) in enumerate(PAIRS):
            yield self.pair(first, second, PAIR_SHARES[i % 2], i)

    def pair(self, first: str, second: str, shares: tuple[float, float], i: int) -> Job:
        """Two causes whose amounts can be chosen, and whose times add up, in one framework."""
        while True:
            framework = self.rng.choice(("jax", "tensorflow"))
            parts = (self.part(first, 1, framework), self.part(second, 1, framework))
            if all(part.tune == "amount" and part.is_direct for part in parts):
                return self.job(parts, shares, (i % 2, i // 2 % 2 == 0), framework)

    def hosted(self, drawn: Sequence[Job]) -> list[Job]:
        """The jobs, some of them on two hosts, one of which has the cause."""
        fits = [
            job for job in drawn if job.framework == "jax" and job.model != "gradient" and job.end != "none"
        ]
        fits = [job for job in fits if all(part.is_wide and part.tune == "amount" for part in job.parts)]
        groups = ([job for job in fits if job.cause == cause and len(job.parts) < 2] for cause in HOSTED)
        chosen = {job.number for jobs in groups for job in self.rng.sample(jobs, min(2, len(jobs)))}
        return [
            replace(job, n_hosts=2, n_devices=1, lead=self.rng.randrange(2)) if job.number in chosen else job
            for job in drawn
        ]

    def numbered(self, drawn: Sequence[Job]) -> tuple[Job, ...]:
        """The jobs in random order."""
        numbers = list(range(1, len(drawn) + 1))
        self.rng.shuffle(numbers)
        renamed = [replace(job, number=number) for job, number in zip(drawn, numbers, strict=True)]
        return tuple(sorted(renamed, key=lambda job: job.number))

    def healthy(self) -> Iterator[Job]:
        """Nothing is planted; half of them have an input or a callback that is fast."""
        kinds = itertools.cycle(("jax", "tensorflow", "jax", "keras"))
        for i in range(N_HEALTHY):
            framework = next(kinds)
            fits = [part for part in HEALTHY if framework in part.frameworks]
            parts = (self.rng.choice(fits),) if self.rng.random() < 0.5 else ()
            shape = ((1, "none"), (2, "wait"), (1, "float"), (4, "float"), (1, "wait"))[i // 2 % 5]
            yield self.job(parts, (0.0, 0.0), (i // 4 % 2, i // 8 % 2 == 0), framework, shape)


@cache
def jobs(seed: int) -> tuple[Job, ...]:
    """All jobs of a seed."""
    draw = Draw(seed)
    return draw.numbered(draw.hosted([*draw.planted(), *draw.healthy()]))
