"""Reads exported results with libraries that are not ours and compares them with what was exported.

Each folder below the one that is named holds `case.json` and a result in every format.
"""

import csv
import datetime
import html
import json
import re
import sys
import unicodedata
import wave
from pathlib import Path

import srt
import webvtt
from praatio import textgrid
from pympi.Elan import Eaf


def on_a_line(name):
    spaced = "".join(" " if c.isspace() or unicodedata.category(c) == "Cc" else c for c in name)
    return re.sub("[\ufffe\uffff]", "\ufffd", spaced).strip() or "_"


def distinct(names):
    seen = []
    for name in names:
        number, free = 1, name
        while free in seen:
            number += 1
            free = f"{name} ({number})"
        seen.append(free)
    return seen


def joined(turns):
    """Start and end of each stretch, overlapping ones joined."""
    stretches = []
    for start, end in sorted(turns):
        if stretches and start < stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], end)
        else:
            stretches.append([start, end])
    return [tuple(stretch) for stretch in stretches]


def milliseconds(seconds):
    """Fails unless `seconds` is a whole number of milliseconds."""
    whole = round(float(seconds) * 1000)
    assert abs(float(seconds) * 1000 - whole) < 1e-6, seconds
    return whole


class Case:
    def __init__(self, folder):
        self.folder = folder
        case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
        self.file, self.duration, self.labels = case["file"], case["duration"], case["speakers"]
        self.turns = sorted((start, end, speaker) for start, end, speaker in case["turns"])
        self.names = [on_a_line(label) for label in self.labels]

    def path(self, extension):
        return self.folder / f"result.{extension}"

    def named(self, names):
        return [(start, end, names[speaker]) for start, end, speaker in self.turns]

    def own(self, speaker):
        return joined((start, end) for start, end, other in self.turns if other == speaker)

    def check_csv(self):
        with open(self.path("csv"), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, strict=True))
        found = []
        for row in rows:
            assert row["recording"] == self.file
            start, end = milliseconds(row["start"]), milliseconds(row["end"])
            assert milliseconds(row["duration"]) == end - start
            found.append((start, end, row["speaker"]))
        assert found == self.named(self.labels), found

    def check_srt(self):
        text = self.path("srt").read_text(encoding="utf-8")
        cues = list(srt.parse(text))
        assert [cue.index for cue in cues] == list(range(1, len(cues) + 1))
        unit = datetime.timedelta(milliseconds=1)
        shown = str.maketrans("<>{}", "‹›()")
        names = [name.translate(shown) + ":" for name in self.names]
        found = [(cue.start // unit, cue.end // unit, cue.content) for cue in cues]
        assert found == self.named(names), found

    def check_vtt(self):
        captions = webvtt.read(str(self.path("vtt")))
        found = []
        for caption in captions:
            assert html.unescape(caption.voice) == html.unescape(caption.text), caption
            start, end = caption.start_time.in_milliseconds(), caption.end_time.in_milliseconds()
            found.append((start, end, html.unescape(caption.text)))
        assert found == self.named(self.names), found

    def check_audacity(self):
        lines = self.path("audacity.txt").read_text(encoding="utf-8").split("\n")
        assert lines.pop() == ""
        rows = [line.split("\t") for line in lines]
        found = [(milliseconds(start), milliseconds(end), name) for start, end, name in rows]
        assert found == self.named(self.names), found

    def check_textgrid(self):
        grid = textgrid.openTextgrid(
            str(self.path("TextGrid")), includeEmptyIntervals=True, reportingMode="error"
        )
        end = max(self.duration, 1)
        names = distinct(self.names) or ["no speech"]
        assert list(grid.tierNames) == names, grid.tierNames
        assert (grid.minTimestamp, milliseconds(grid.maxTimestamp)) == (0, end)
        for speaker, name in enumerate(names):
            tier = grid.getTier(name)
            times = [(milliseconds(entry.start), milliseconds(entry.end)) for entry in tier.entries]
            assert times[0][0] == 0 and times[-1][1] == end, times
            assert all(first[1] == second[0] for first, second in zip(times, times[1:])), times
            found = [time for time, entry in zip(times, tier.entries) if entry.label]
            assert found == self.own(speaker), found
            assert {entry.label for entry in tier.entries} <= {"", name}

    def check_eaf(self):
        eaf = Eaf(str(self.path("eaf")))
        names = distinct(self.names)
        assert list(eaf.get_tier_names()) == names, eaf.get_tier_names()
        for speaker, name in enumerate(names):
            found = sorted(eaf.get_annotation_data_for_tier(name))
            expected = [(start, end, name) for start, end in self.own(speaker)]
            assert [(start, end, value) for start, end, value in found] == expected, found
            assert eaf.get_parameters_for_tier(name)["PARTICIPANT"] == name
        (media,) = eaf.get_linked_files()
        assert media["RELATIVE_MEDIA_URL"] == "./" + on_a_line(self.file), media

    def check_wav(self):
        if self.path("speakers").is_dir():
            files = sorted(self.path("speakers").iterdir())
            assert len(files) == len(self.labels), files
            for speaker, path in enumerate(files):
                with wave.open(str(path)) as file:
                    assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16000)
                    assert file.getnframes() == self.duration * 16
                    frames = file.readframes(file.getnframes())
                heard = [any(frames[at:at + 2]) for at in range(0, len(frames), 2)]
                expected = [False] * len(heard)
                for start, end in self.own(speaker):
                    expected[start * 16:end * 16] = [True] * ((end - start) * 16)
                assert heard == expected, path
        else:
            assert self.duration > 1_000_000, "only long recordings are left out"


def main():
    cases = sorted(Path(sys.argv[1]).iterdir())
    assert cases
    for folder in cases:
        case = Case(folder)
        for check in (name for name in dir(case) if name.startswith("check_")):
            try:
                getattr(case, check)()
            except Exception as error:
                raise SystemExit(f"{case.file}: {check}: {type(error).__name__}: {error}")
    print(f"{len(cases)} results agree")


main()
