"""All verdicts on a text as one HTML page to print, which needs nothing else: no script, no font,
no picture from anywhere."""

from __future__ import annotations

from html import escape

from explorer.analysis.evidence import FAILS, HOLDS, KINDS, SHORT, UNTESTABLE, Claim, Verdict
from explorer.text import claims
from explorer.text.claims import Findings

# The verdicts' colours are those of the app's light theme: blue text for what holds, the primary
# colour for what does not.
COLOURS = {HOLDS: "#1f5f99", FAILS: "#9a4a06", SHORT: "#575049", UNTESTABLE: "#575049"}
_CLASSES = {HOLDS: "holds", FAILS: "fails", SHORT: "open", UNTESTABLE: "open"}
_STYLE = f"""
:root {{ color-scheme: light; }}
body {{ font: 11pt/1.45 system-ui, sans-serif; color: #15110d; background: #fff; max-width: 48rem;
  margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .25rem; border-bottom: 1px solid #999; }}
blockquote {{ margin: .75rem 0; padding: .5rem .75rem; border-left: 4px solid {COLOURS[FAILS]};
  background: #f5f0e6; overflow-wrap: anywhere; white-space: pre-wrap; unicode-bidi: isolate; }}
.card, .note {{ color: #4a4036; margin: .25rem 0; }}
.counts {{ font-size: 1.15rem; margin: .25rem 0; }}
article {{ break-inside: avoid; margin: 1rem 0; }} article p {{ margin: .125rem 0; }}
.head {{ display: flex; gap: .75rem; align-items: baseline; }} .head b {{ flex: 1; }}
.head output {{ font-size: 1.15rem; font-weight: 700; white-space: nowrap; }}
.head small {{ font-size: .8rem; font-weight: 400; display: block; text-align: end; }}
.verdict {{ white-space: nowrap; border: 1px solid; border-radius: 1rem; padding: 0 .5rem;
  font-size: .85rem; }}
.holds {{ color: {COLOURS[HOLDS]}; }}
.fails {{ color: #fff; background: {COLOURS[FAILS]}; border-color: {COLOURS[FAILS]};
  font-weight: 650; print-color-adjust: exact; }}
.open {{ color: {COLOURS[SHORT]}; border-style: dashed; }}
code {{ font: .9em ui-monospace, monospace; background: #f5f0e6; padding: 0 .25rem;
  overflow-wrap: anywhere; }}
.how, .remark {{ font-size: .92em; color: #4a4036; }}
"""


def report(about: str, text: str, output: str, findings: Findings) -> str:
    """The page: a line about the model, the text and the model's output ("" for none), the counts
    of each kind, and every claim with its numbers, those that do not hold first."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Claims, tested on one sentence</title><style>{_STYLE}</style></head><body>",
        "<h1>Textbook claims, tested on one text and model</h1>",
        f'<p class="card">{escape(about)}</p>',
        f'<blockquote dir="auto">{escape(text) or "(no text)"}</blockquote>',
        f'<p class="card">Output:</p><blockquote dir="auto">{escape(output)}</blockquote>'
        if output
        else "",
        *(
            (
                f'<p class="counts"><b>{kind[0].upper()}{kind[1:]}</b>: '
                f"{claims.verdicts(claims.counts(findings, kind))}.</p>"
            )
            for kind in KINDS
        ),
    ]
    for heading, under, own in claims.groups(findings):
        if own[0].id in findings:
            parts.append(f'<h2>{escape(heading)}</h2><p class="note">{escape(under)}</p>')
            parts += [_article(claim, findings[claim.id]) for claim in own]
    return "\n".join([*parts, "</body></html>"])


def _article(claim: Claim, finding: Verdict) -> str:
    mark = f"{claims.MARKS[finding.verdict]} {finding.verdict}"
    chance = f" With permuted weights: {escape(finding.by_chance)}." if finding.by_chance else ""
    because = f" {escape(claim.because)}" if claim.because else ""
    noun = f" <small>{escape(claim.noun)}</small>" if finding.value is not None else ""
    remark = f'<p class="remark">On the note: {escape(claim.remark)}</p>' if claim.remark else ""
    return (
        f'<article id="{claim.id}"><div class="head">'
        f'<span class="verdict {_CLASSES[finding.verdict]}">{mark}</span>'
        f"<b>{escape(claim.statement)}</b><output>{escape(finding.value_text)}{noun}</output></div>"
        f"<p>{escape(finding.why)}{chance}</p>"
        f'<p class="how">{escape(claim.how)} <code>{escape(claim.formula)}</code> '
        f"Holds if the number is {escape(claims.rule(claim))}.</p>"
        f'<p class="how">{escape(claim.kind[0].upper() + claim.kind[1:])}.{because} '
        f"From {escape(claims.NOTES[claim.note])}.</p>{remark}</article>"
    )
