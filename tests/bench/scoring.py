"""Times our scoring against pyannote.metrics on a made-up recording of 20 speakers, one turn every 1.8 s.

usage: scoring.py [TURNS]       (default 2000; needs pyannote.metrics; builds the program)

20000 turns make 10 hours; pyannote.metrics then takes many minutes.
"""
import json
import random
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

# The package warns that no UEM is given.
warnings.filterwarnings("ignore")
from pyannote.core import Annotation, Segment
from pyannote.metrics.diarization import DiarizationErrorRate

ROOT = Path(__file__).resolve().parents[2]
TURNS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
SPEAKERS, STEP = 20, 1.8


def make(path, generator, jitter):
    """Turns of one speaker never overlap here, since pyannote.metrics does not merge them."""
    lines = []
    for i in range(TURNS):
        start = STEP * i + generator.uniform(0, jitter)
        # One label in ten is wrong on the side with jitter.
        speaker = generator.randrange(SPEAKERS) if jitter and i % 10 == 0 else i * 7 % SPEAKERS
        lines.append(f"SPEAKER long 1 {start:.3f} 1.500 <NA> <NA> s{speaker} <NA> <NA>\n")
    path.write_text("".join(lines))


def load(path):
    annotation = Annotation()
    for number, line in enumerate(path.read_text().splitlines()):
        field = line.split()
        start, duration = float(field[3]), float(field[4])
        annotation[Segment(start, start + duration), number] = field[7]
    return annotation


def main():
    subprocess.run(["cargo", "build", "--quiet", "--release"], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        reference, hypothesis = Path(folder, "reference.rttm"), Path(folder, "hypothesis.rttm")
        make(reference, random.Random(1), 0.0)
        make(hypothesis, random.Random(2), 0.25)
        start = time.perf_counter()
        command = ["cargo", "run", "--quiet", "--release", "--", "score", "--format", "json", reference, hypothesis]
        text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        ours_seconds = time.perf_counter() - start
        ours = [100 * total["der"] for total in json.loads(text)["total"]]

        start = time.perf_counter()
        annotations = load(reference), load(hypothesis)
        # pyannote.metrics takes the total width of the collar.
        theirs = [100 * DiarizationErrorRate(collar=2 * collar)(*annotations) for collar in (0.0, 0.25)]
        theirs_seconds = time.perf_counter() - start
    print(f"{TURNS} turns, {TURNS * STEP / 3600:.1f} hours")
    print(f"speakrs-app       {ours_seconds:7.2f} s, DER {ours[0]:.2f} % and {ours[1]:.2f} % (collar 0.25 s)")
    print(f"pyannote.metrics  {theirs_seconds:7.2f} s, DER {theirs[0]:.2f} % and {theirs[1]:.2f} %")
    assert all(abs(a - b) < 0.006 for a, b in zip(ours, theirs)), "the scores differ"


if __name__ == "__main__":
    main()
