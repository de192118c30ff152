"""Runs the blocks of the book's pages, each page in an empty folder, and compares the quoted output.

A page is Markdown. Its blocks, in order, by their info string:

    wf,file=NAME        a file that is written (also python,file=NAME, csv,file=NAME and the like)
    wf,part             lines that must stand in a file written before
    sh                  commands, run one after another by bash; each must succeed
    sh,fails            the last one must fail; what it prints is errors and output
    sh,all              what is compared is warnings and output
    sh,no_run           only read: for machines that this one is not
    sh,python           run if the package `weakform` can be imported, else passed over
    text                the output of the block before, where that is `sh`; a line `…` stands for any lines
    text,varies         the same, not compared: it depends on the machine

Comments above a block: `<!-- copy: meshes/part.msh -->` brings a file of the repository, and
`<!-- small: wf run … -->` is run in the place of the next block, whose output is then not compared.

Numbers agree if they differ by at most 1.5 units of the last printed digit, or 1e-8 of themselves. Below 1e-8 they are
rounding: only both must be so small. Counts of iterations may differ by a fifth. Lines with seconds or residuals are compared without numbers,
and so is such a last column of a table.

With `--fill` a `text` block of one line, `?` or `? PATTERN`, is replaced by the output: by the lines in which the
pattern is found, without those that depend on the machine.
"""

import argparse
import concurrent.futures
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
ROUNDING = 1e-8
ITERATIONS = re.compile(r"iterations|linear\)")
VARIES = re.compile(r"seconds| s$|DoF/s|roughly|available|residual|\[\d+ s\]")
PROGRESS = re.compile(r"\[\d+ s\]$|^waiting for the compiler")
COLUMN = re.compile(r"(seconds|residual)\s*$")


class Failure(Exception):
    """A block that does not do what its page says."""


def blocks(text):
    """Yields (line, kind, attributes, lines, directives) of each fenced block."""
    directives, lines = {}, iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        comment = re.fullmatch(r"<!-- (\w+): (.*) -->", line.strip())
        if comment:
            directives.setdefault(comment[1], []).append(comment[2])
        elif line.startswith("```"):
            kind, *rest = line.strip("`").split(",")
            attributes = dict(item.partition("=")[::2] for item in rest)
            inside = []
            for _, line in lines:
                if line.startswith("```"):
                    break
                inside.append(line)
            yield number, kind, attributes, inside, directives
            directives = {}


def unit(text):
    """Returns the unit of the last digit of a printed number."""
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - digits)


def same_number(wanted, found, loose):
    a, b = float(wanted.replace(",", "")), float(found.replace(",", ""))
    if abs(a) < ROUNDING and abs(b) < ROUNDING:
        return True
    wide = max(1.0, abs(a) / 5) if loose else 0.0
    return abs(a - b) <= max(1.5 * max(unit(wanted), unit(found)), wide) or math.isclose(a, b, rel_tol=ROUNDING)


def same_line(wanted, found, varies=False):
    """Compares two lines, without the last number of a column that varies: words to the letter, numbers to their digits."""
    if varies:
        wanted, found = (line.rpartition(" ")[0] for line in (wanted, found))
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip() for line in (wanted, found)]
    if words[0] != words[1]:
        return False
    if VARIES.search(wanted):
        return True
    loose = ITERATIONS.search(wanted) is not None
    pairs = zip(NUMBER.findall(wanted), NUMBER.findall(found))
    return all(same_number(a, b, loose) for a, b in pairs)


def compare(page, number, wanted, found):
    """Compares the lines of a `text` block with an output."""
    at, skips, column = 0, False, False
    for line in wanted:
        if line.strip() == "…":
            skips = True
            continue
        ahead = range(at, len(found)) if skips else range(at, min(at + 1, len(found)))
        varies = column and line.startswith("  ")
        match = next((i for i in ahead if same_line(line, found[i], varies)), None)
        if match is None:
            rest = "\n".join("      " + line for line in found[at:][:40])
            raise Failure(f"{page}:{number}: no line\n      {line}\n  in\n{rest}")
        at, skips, column = match + 1, False, varies or bool(COLUMN.search(line))
    if not skips and at < len(found):
        rest = "\n".join("      " + line for line in found[at:])
        raise Failure(f"{page}:{number}: not shown are\n{rest}")


def shown(output, wanted):
    """Returns the lines of an output that a page shows for a line `?`."""
    pattern = wanted[1:].strip()
    lines = []
    for line in output:
        machine = re.match(r"  (kernels|throughput|seconds|available|roughly) ", line)
        if re.search(pattern, line) and not machine:
            lines.append(line)
        elif lines[-1:] != ["…"]:
            lines.append("…")
    return lines


class Page:
    """A page whose blocks run in a folder."""

    def __init__(self, path, folder, environment, arguments):
        self.path, self.folder, self.environment = path, folder, environment
        self.show, self.fill = arguments.show, arguments.fill
        self.written, self.output, self.ran = [], None, 0

    def run(self):
        name = self.path.relative_to(ROOT)
        text = self.path.read_text()
        for number, kind, attributes, lines, directives in blocks(text):
            for source in directives.get("copy", []):
                shutil.copy(ROOT / source, self.folder)
            output, self.output = self.output, None
            if kind == "sh":
                self.shell(name, number, attributes, lines, directives.get("small"))
            elif kind == "text" and output is not None and "varies" not in attributes:
                if self.fill and len(lines) == 1 and lines[0].startswith("?"):
                    filled = "```text\n" + "\n".join(shown(output, lines[0])) + "\n```"
                    text = text.replace(f"```text\n{lines[0]}\n```", filled, 1)
                    self.path.write_text(text)
                    continue
                compare(name, number, lines, output)
            elif "file" in attributes:
                (self.folder / attributes["file"]).write_text("\n".join([*lines, ""]))
                self.written += lines
            elif "part" in attributes:
                known = {line.strip() for line in self.written}
                for line in lines:
                    if line.strip() not in known | {"", "…"}:
                        raise Failure(f"{name}:{number}: no file says `{line}`")

    def shell(self, name, number, attributes, lines, small):
        if "no_run" in attributes or "python" in attributes and "WF_BOOK_PYTHON" not in self.environment:
            return
        script = "\n".join(["set -e", *(small or lines)])
        both = "fails" in attributes or "all" in attributes
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if both else subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=600,
        )
        self.ran += 1
        if self.show:
            print(f"--- {name}:{number}\n" + "\n".join(lines) + "\n" + done.stdout, flush=True)
        if (done.returncode != 0) != ("fails" in attributes):
            log = f"{done.stdout}{done.stderr or ''}"
            raise Failure(f"{name}:{number}: exit code {done.returncode}\n{script}\n{log}")
        if not small:
            output = done.stdout.splitlines()
            # Progress on a slow machine is no output.
            self.output = [line for line in output if not PROGRESS.search(line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="default: the tutorial and docs/solvers.md")
    parser.add_argument("--wf", default=ROOT / "target/release/wf", type=Path, help="the program")
    parser.add_argument("--python", type=Path, help="a Python that has the package weakform")
    parser.add_argument("--pictures", action="store_true", help="keep the drawn pictures in docs/tutorial")
    parser.add_argument("--fill", action="store_true", help="write output into blocks with `?`")
    parser.add_argument("--show", action="store_true", help="print all output")
    arguments = parser.parse_args()
    pages = arguments.pages or [*sorted((ROOT / "docs/tutorial").glob("*.md")), ROOT / "docs/solvers.md"]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        environment = {"WF_CACHE_DIR": str(folder / "kernels"), **os.environ, "NO_COLOR": "1"}
        path = [str(arguments.wf.resolve().parent), environment["PATH"]]
        if arguments.python:
            environment["WF_BOOK_PYTHON"] = "1"
            path.insert(0, str(arguments.python.parent))
        environment["PATH"] = ":".join(path)

        def one(page):
            page, started = page.resolve(), time.monotonic()
            place = folder / page.stem
            place.mkdir()
            run = Page(page, place, environment, arguments)
            try:
                run.run()
            except (Failure, OSError, subprocess.TimeoutExpired) as error:
                return f"{page.relative_to(ROOT)}: failed", error
            if arguments.pictures:
                text = page.read_text()
                for picture in place.glob("*.png"):
                    if f"]({picture.name})" in text:
                        shutil.copy(picture, page.parent)
            seconds = time.monotonic() - started
            return f"{page.relative_to(ROOT)}: {run.ran} blocks of commands in {seconds:.1f} s", None

        failed = False
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for line, error in pool.map(one, pages):
                print(line, flush=True)
                if error:
                    print(error, flush=True)
                    failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
