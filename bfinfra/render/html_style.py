"""The style sheet of the pages of HTML, light and dark, wide and narrow."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #57606a; --line: #c4cbd3;
  --box: #f6f8fa; --alarm: #b3261e; --note: #0b5cad; --quiet: #57606a; --good: #1a6b35;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0f1318; --ink: #e8ecf1; --soft: #a5b0bd; --line: #46505c; --box: #1a2129;
    --alarm: #ff8f85; --note: #86bdff; --quiet: #a5b0bd; --good: #79d192;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere;
}
header, main, footer { max-width: max(90rem, var(--picture, 0px)); margin: 0 auto; padding: 1rem 1.5rem; }
h1 { margin: 0; font-size: 1.5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
main { padding-top: 0; }
main > :first-child h2 { margin-top: .5rem; }
.skip { position: absolute; left: -100rem; }
.skip:focus { position: static; }
.verdict { font-weight: 600; }
.verdict.alarm { color: var(--alarm); }
.verdict.good { color: var(--good); }
.frame { border: 1px solid var(--line); border-radius: 6px; }
svg { display: block; font: 13px system-ui, sans-serif; }
.frame svg { max-width: 100%; height: auto; }
.listed { display: none; list-style: none; margin: 0; padding: 0; }
.listed li { padding: .5rem .75rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.listed li:last-child { border-bottom: 0; }
.listed a { color: var(--note); }
.listed .after { display: block; color: var(--soft); font-size: .9em; }
li.alarm .words { color: var(--alarm); font-weight: 600; }
li.note .words { color: var(--note); }
li.quiet .words { color: var(--quiet); }
.edges path { fill: none; stroke: var(--line); stroke-width: 1.5; }
.box > rect:first-child { fill: var(--box); stroke: var(--line); stroke-width: 1.5; }
.box .kind { fill: var(--soft); font-size: 12px; }
.box .name { fill: var(--ink); font-weight: 600; }
.box .sign { font-size: 20px; font-weight: 700; text-anchor: middle; }
.part { fill: var(--soft); opacity: .55; }
.alarm > rect:first-child { stroke: var(--alarm); stroke-width: 3; }
.alarm .sign { fill: var(--alarm); }
.note > rect:first-child { stroke: var(--note); stroke-width: 2; stroke-dasharray: 6 3; }
.note .sign { fill: var(--note); }
.quiet > rect:first-child { stroke-dasharray: 2 3; }
.quiet .sign { fill: var(--quiet); }
:focus-visible { outline: 3px solid var(--note); outline-offset: 2px; }
a.box:focus-visible, g.box:focus-visible { outline: none; }
a.box:focus-visible > rect:first-child, g.box:focus-visible > rect:first-child {
  stroke: var(--note); stroke-width: 4;
}
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--soft); padding: .25rem .75rem; }
th, td {
  text-align: left; vertical-align: top; padding: .4rem .75rem;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; min-width: 5.5rem;
}
tbody tr:last-child > * { border-bottom: 0; }
th[scope=col] { white-space: nowrap; }
th[scope=row] { min-width: 8rem; }
time { display: inline-block; }
@media (min-width: 80rem) { th[scope=row] { min-width: 17rem; } time { white-space: nowrap; } }
@media (max-width: 64rem) {
  table, caption, tbody, tr, th, td { display: block; }
  thead { position: absolute; left: -100rem; }
  caption { border-bottom: 1px solid var(--line); }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  tr:last-child { border-bottom: 0; }
  th[scope], td { padding: .1rem .75rem; border-bottom: 0; min-width: 0; }
  td:empty { display: none; }
  th + td, td ~ td { display: grid; grid-template-columns: minmax(5rem, 7rem) minmax(0, 1fr); gap: .5rem; }
  th + td::before, td ~ td::before { content: attr(data-head); color: var(--soft); font-weight: normal; }
}
tr:target { background: var(--box); }
code { font: .9em ui-monospace, monospace; }
td.alarm { color: var(--alarm); font-weight: 600; }
td.note { color: var(--note); }
td.quiet { color: var(--quiet); }
.lines { list-style: none; margin: 0; padding: 0; }
.lines li + li { margin-top: .25rem; }
"""
