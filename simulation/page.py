"""A report as a page with pictures: one file that a browser opens, the pictures beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from simulation.limits import Limits, known
from simulation.outcome import Result
from simulation.pictures import draw
from simulation.report import FACTS, lag_rows, sampled, shares_by_weight

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #333; max-width: 1080px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.25rem; margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px }
td, th { padding: .2rem .8rem .2rem 0; text-align: right; border-bottom: 1px solid #eee; vertical-align: top }
td:first-child, th:first-child, td.text { text-align: left }
tr.baseline td { color: #888 } .held { color: #1f6f54 } .missed { color: #b3423a; font-weight: 600 }
img { max-width: 100% } p.small { font-size: 13px; color: #666 }
"""


def write_report(folder: Path, results: Sequence[Result]) -> Path:
    """Write the page and its pictures; where the page is."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        draw(folder / f"{result.name}.png", result)
    name = results[0].name if len(results) == 1 else "index"
    page = folder / f"{name}.html"
    page.write_text("\n".join(_page(results)), encoding="utf-8")
    return page


def _page(results: Sequence[Result]) -> Iterator[str]:
    yield "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
    yield f"<title>Simulation of Tickwheel</title><style>{_STYLE}</style></head><body>"
    yield "<h1>Simulation of Tickwheel</h1>"
    yield "<p>The code that is deployed, on services in memory with limits and latencies, on virtual time.</p>"
    if len(results) > 1:
        yield from _summary(results)
    for result in results:
        yield from _scenario(result)
    yield from _limits()
    yield "</body></html>"


def _summary(results: Sequence[Result]) -> Iterator[str]:
    yield "<table><tr><th>scenario</th><th>lag p50</th><th>p99</th><th>p99.9</th><th>USD a million</th><th></th></tr>"
    for result in results:
        lag = "".join(f"<td>{value:,.2f} s</td>" for value in (result.lag.p50, result.lag.p99, result.lag.p999))
        cost, link = sum(result.cost.values()), f"<a href='#{result.name}'>{escape(result.title)}</a>"
        yield f"<tr><td>{link}</td>{lag}<td>{cost:.2f}</td><td class='text'>{_mark(is_held=result.is_held)}</td></tr>"
    yield "</table>"


def _scenario(result: Result) -> Iterator[str]:
    yield f"<h2 id='{result.name}'>{escape(result.title)}</h2><p>{escape(result.story)}</p>"
    yield "<table>"
    for verdict in result.verdicts:
        words = f"{escape(verdict.goal.words)}</td><td>{verdict.value:,.6g}</td><td>{escape(verdict.goal.bound)}"
        yield f"<tr><td>{words}</td><td class='text'>{_mark(is_held=verdict.holds)}</td></tr>"
    yield "</table>"
    yield f"<img src='{result.name}.png' alt='{escape(result.title)}'>"
    yield "<table><tr><th>lag, s</th><th>jobs</th><th>p50</th><th>p95</th><th>p99</th><th>p99.9</th><th>longest</th>"
    yield "<th>Jain</th><th></th></tr>"
    for number, (words, lag, even, note) in enumerate(lag_rows(result)):
        figures = "".join(f"<td>{value:,.2f}</td>" for value in (lag.p50, lag.p95, lag.p99, lag.p999, lag.longest))
        cells = f"<td>{lag.count:,}</td>{figures}<td>{'' if even is None else f'{even:.3f}'}</td>"
        kind = "" if number <= len(result.by_class) else " class='baseline'"
        yield f"<tr{kind}><td>{escape(words)}</td>{cells}<td class='text'>{escape(note)}</td></tr>"
    yield "</table><table>"
    for name, words, digits in FACTS:
        yield f"<tr><td>{escape(words)}</td><td>{result.facts[name]:,.{digits}f}</td></tr>"
    for words, value in shares_by_weight(result):
        yield f"<tr><td>{escape(words)}</td><td>{value:.2f}</td></tr>"
    for unit, usd in result.cost.items():
        yield f"<tr><td>USD a million jobs: {escape(unit.replace('_', ' '))}s</td><td>{usd:.3f}</td></tr>"
    yield "</table>"
    yield "".join(f"<p class='small'>{escape(line)}</p>" for line in result.stage)
    notes = [sampled(result), *result.notes, f"seed {result.seed}, {result.jobs:,} jobs, {result.seconds:.0f} s of CPU"]
    yield f"<p class='small'>{escape('; '.join(notes))}</p>"


def _limits() -> Iterator[str]:
    yield "<h2>Limits</h2><table><tr><th>limit</th><th>value</th><th></th><th></th></tr>"
    for each in known(Limits()):
        texts = "".join(f"<td class='text'>{escape(text)}</td>" for text in (each.unit, each.source))
        yield f"<tr><td>{escape(each.name.replace('_', ' '))}</td><td>{each.value:,.6g}</td>{texts}</tr>"
    yield "</table>"


def _mark(*, is_held: bool) -> str:
    return "<span class='held'>✔ held</span>" if is_held else "<span class='missed'>✘ missed</span>"
