// Copyright (c) 2026 The weir authors
// Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

// Made from the .css and .js files beside it by `./dev generate`: change those, not this.
// clang-format off

#ifndef WEIR_CONSOLE_WEB_GENERATED_HPP
#define WEIR_CONSOLE_WEB_GENERATED_HPP


#include <cstddef>

namespace weir::detail::web {


inline constexpr char page_css[] = R"css(:root {
  color-scheme: light dark;
  --paper: #fbfbfa; --card: #fff; --ink: #1c1f23; --quiet: #667079; --line: #e2e4e6;
  --accent: #1858b8; --on-accent: #fff; --bad: #b3261e; --bad-paper: #fbe9e7;
  --pending: #7a5b00; --pending-paper: #fdf3d4; --leased: #1858b8; --leased-paper: #e5eefb;
  --completed: #1b6e3c; --completed-paper: #e2f3e8; --cancelled: #5c646c; --cancelled-paper: #eceef0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1b1f23; --ink: #e4e7ea; --quiet: #98a2ab; --line: #2d3338;
    --accent: #7db0f5; --on-accent: #0e1a2b; --bad: #ff8a80; --bad-paper: #3a1d1b;
    --pending: #f0ce6a; --pending-paper: #352c10; --leased: #8fbcf8; --leased-paper: #16293f;
    --completed: #7fd6a0; --completed-paper: #14301f; --cancelled: #a6b0b8; --cancelled-paper: #282e33;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body {
  margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
}
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .3rem .6rem; z-index: 2; }
header {
  display: flex; align-items: center; gap: .25rem 1.25rem; padding: 0 1.5rem; min-height: 3.25rem;
  background: var(--card); border-bottom: 1px solid var(--line);
}
.brand { font-weight: 650; color: var(--ink); white-space: nowrap; }
header nav { display: flex; flex: 1; gap: .15rem; overflow-x: auto; scrollbar-width: none; align-self: stretch; }
header nav a {
  display: flex; align-items: center; color: var(--quiet); padding: 0 .6rem; white-space: nowrap;
  border-bottom: 2px solid transparent; border-top: 2px solid transparent;
}
header nav a:focus-visible, .tabs a:focus-visible { outline-offset: -3px; }
header nav a[aria-current], .tabs a[aria-current] { color: var(--ink); border-bottom-color: var(--accent); }
.mode { color: var(--quiet); font-size: 12px; border: 1px solid var(--line); border-radius: 99px; padding: .1rem .6rem; white-space: nowrap; }
main { max-width: 76rem; margin: 0 auto; padding: 1.25rem 1.5rem 4rem; }
h1 { font-size: 1.35rem; line-height: 1.3; margin: .25rem 0 1rem; font-weight: 650; }
h2 { font-size: .95rem; margin: 1.75rem 0 .5rem; font-weight: 650; }
.head { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .75rem; margin-bottom: .75rem; }
.head h1, .head p { margin: 0; }
.head .actions { margin-left: auto; }
.way { margin: 0; color: var(--quiet); font-size: 13px; }
.hint, .empty, .more { color: var(--quiet); }
.empty { padding: 2rem; text-align: center; background: var(--card); border: 1px dashed var(--line); border-radius: 8px; }
.problem { color: var(--bad); background: var(--bad-paper); padding: .75rem 1rem; border-radius: 8px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem; min-height: 5.5rem; position: relative; overflow: hidden; }
.card h2 { margin: 0; font-size: 12px; font-weight: 500; color: var(--quiet); }
.big { margin: .1rem 0; font-size: 1.7rem; line-height: 1.2; font-weight: 600; font-variant-numeric: tabular-nums; }
.big small { font-size: .85rem; color: var(--quiet); font-weight: 400; }
.card.dead .big { color: var(--bad); }
.card svg { position: absolute; inset: auto 0 0 0; width: 100%; height: 2rem; opacity: .75; }
.card:has(svg) { padding-bottom: 2.25rem; }
polyline { fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.completed polyline { stroke: var(--completed); }
table { width: 100%; border-collapse: separate; border-spacing: 0; overflow: hidden; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
th { text-align: left; font-size: 12px; font-weight: 500; color: var(--quiet); padding: .45rem .75rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
td { padding: .4rem .75rem; border-bottom: 1px solid var(--line); vertical-align: baseline; }
tr:last-child td { border-bottom: 0; }
tbody tr:hover { background: color-mix(in srgb, var(--accent) 5%, transparent); }
th.num, td.num { text-align: right; width: 1%; font-variant-numeric: tabular-nums; white-space: nowrap; }
.none { color: var(--quiet); }
.bad, .bad a { color: var(--bad); font-weight: 600; }
.name { font-weight: 550; max-width: 24rem; }
.id { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12.5px; }
h1.id { font-size: 1.05rem; }
.note { color: var(--quiet); max-width: 28rem; }
td.act { text-align: right; white-space: nowrap; padding-block: .25rem; }
.name, .ask b { white-space: pre-wrap; }
.name a, .note span, .way a { display: -webkit-inline-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; vertical-align: top; }
time { white-space: nowrap; }
.state { font-size: 12px; padding: .05rem .5rem; border-radius: 99px; white-space: nowrap; color: var(--cancelled); background: var(--cancelled-paper); font-weight: 500; }
.state.dead { color: var(--bad); background: var(--bad-paper); }
.state.pending, .state.paused, .state.stopping { color: var(--pending); background: var(--pending-paper); }
.state.leased { color: var(--leased); background: var(--leased-paper); }
.state.completed { color: var(--completed); background: var(--completed-paper); }
.tabs { display: flex; gap: .25rem; overflow-x: auto; scrollbar-width: none; border-bottom: 1px solid var(--line); margin-bottom: .75rem; }
.tabs a { color: var(--quiet); padding: .4rem .7rem; border-bottom: 2px solid transparent; white-space: nowrap; }
.tabs b { font-weight: 500; font-variant-numeric: tabular-nums; margin-left: .25rem; }
.filter { display: flex; flex-wrap: wrap; align-items: end; gap: .5rem .75rem; margin: 0 0 .75rem; color: var(--quiet); font-size: 12px; }
.filter label { display: grid; gap: .15rem; }
input, select, button, .button {
  font: inherit; font-size: 13px; line-height: 1.4; color: var(--ink); background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: .3rem .7rem; max-width: 100%;
}
button, .button { cursor: pointer; display: inline-block; font-weight: 500; }
button:hover, .button:hover { border-color: var(--quiet); text-decoration: none; }
.button.final { color: var(--bad); }
button.go { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
button.final { background: var(--bad); border-color: var(--bad); color: var(--on-accent); }
main > .ask { max-width: 34rem; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem 1.5rem; }
.ask h1 { margin-top: 0; }
#live[aria-pressed="true"]::before { content: ""; display: inline-block; width: .5rem; height: .5rem; border-radius: 50%; background: var(--completed); margin-right: .4rem; }
.columns { display: grid; grid-template-columns: 3fr 2fr; gap: 0 2.5rem; }
.columns > * { min-width: 0; }
.columns h2 { margin-top: 1rem; }
.why { margin: 0; padding-left: 1.1rem; }
.unknown { color: var(--quiet); }
.timeline { list-style: none; margin: 0; padding: 0 0 0 .35rem; }
.timeline li { position: relative; padding: .1rem 0 .5rem 1.1rem; border-left: 2px solid var(--line); }
.timeline li:last-child { border-color: transparent; }
.timeline li::before { content: ""; position: absolute; left: -6px; top: .5rem; width: 8px; height: 8px; border-radius: 50%; background: var(--accent); border: 1px solid var(--paper); }
.timeline time { font-weight: 550; }
dl { margin: 0 0 1rem; display: grid; gap: .25rem; }
dl div { display: grid; grid-template-columns: 8rem 1fr; gap: .75rem; }
dt { color: var(--quiet); }
dd { margin: 0; }
pre { margin: 0; padding: .75rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; white-space: pre-wrap; max-height: 26rem; overflow: auto; font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
progress { width: 100%; height: .75rem; accent-color: var(--accent); }
dialog { border: 1px solid var(--line); border-radius: 10px; background: var(--card); color: var(--ink); width: min(30rem, calc(100vw - 2rem)); padding: 1.25rem 1.5rem; }
dialog::backdrop { background: rgb(0 0 0 / .45); }
@media (max-width: 46rem) {
  header { flex-wrap: wrap; padding: .5rem 1rem 0; }
  header nav { order: 3; flex-basis: 100%; min-height: 2.5rem; }
  .brand { flex: 1; }
  main { padding: 1rem 1rem 3rem; }
  .cards { grid-template-columns: 1fr 1fr; }
  .columns { grid-template-columns: 1fr; }
  .head .actions { margin-left: 0; flex-basis: 100%; }
  thead { display: none; }
  table, tbody { display: block; }
  table { background: none; border: 0; }
  tr { display: grid; grid-template-columns: 1fr 1fr; gap: .1rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem; margin-bottom: .5rem; }
  td { border: 0; padding: .05rem 0; display: flex; gap: .5rem; justify-content: space-between; }
  td::before { content: attr(data-label); color: var(--quiet); font-weight: 400; overflow-wrap: normal; }
  td.num { width: auto; }
  td.note { justify-content: start; gap: 1rem; }
  .card:last-child:nth-child(odd) { grid-column: 1 / -1; }
  td.name, td.id, td.note, td.act { grid-column: 1 / -1; max-width: none; }
  td.name::before, td.id::before, td.act::before { content: none; }
  td.act { justify-content: end; }
  td:empty, td.num.none { display: none; }
  button, .button, input, select { padding-block: .5rem; }
}
)css";

inline constexpr char page_js[] = R"js(// The page works without this. With it a page is kept up to date by one stream of events, which
// rests while nobody sees it; questions are asked in a dialog; actions on many go on by themselves.
'use strict';

const main = document.getElementById('main');
const live = document.getElementById('live');
let stream = null;
let wanted = true;

const parsed = (text) => new DOMParser().parseFromString(text, 'text/html');
const nameOf = (element) => element && (element.id || element.getAttribute('href'));

// Puts new contents into the parts that live, and leaves alone what somebody is about to use.
function update(fresh) {
  const selection = getSelection();
  for (const part of main.querySelectorAll('[data-live]')) {
    const next = fresh.getElementById(part.id);
    if (!next || next.innerHTML === part.innerHTML) continue;
    if (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) continue;
    const focused = part.contains(document.activeElement) ? nameOf(document.activeElement) : null;
    const scrolled = [...part.querySelectorAll('pre')].map((pre) => pre.scrollTop);
    part.replaceChildren(...next.childNodes);
    part.querySelectorAll('pre').forEach((pre, i) => { pre.scrollTop = scrolled[i] || 0; });
    if (!focused) continue;
    for (const element of part.querySelectorAll('a, button')) {
      if (nameOf(element) === focused) { element.focus({ preventScroll: true }); break; }
    }
  }
}

// A page that is not to be had now, such as of a job that is gone: that is said above what it was.
function tell(fresh) {
  const problem = fresh.querySelector('.problem');
  let notice = document.getElementById('notice');
  if (fresh.querySelector('[data-live]') || !problem) { if (notice) notice.remove(); return; }
  if (!notice) {
    notice = problem.cloneNode();
    notice.id = 'notice';
    main.prepend(notice);
  }
  const text = `${fresh.querySelector('h1').textContent}. ${problem.textContent}`;
  if (notice.textContent !== text) notice.textContent = text;
}

function watch() {
  const should = wanted && !document.hidden && main.dataset.events && main.querySelector('[data-live]');
  live.setAttribute('aria-pressed', String(wanted));
  live.textContent = wanted ? 'Live' : 'Paused';
  if (should && !stream) {
    stream = new EventSource(main.dataset.events);
    stream.onmessage = (event) => {
      const fresh = parsed(event.data);
      update(fresh);
      tell(fresh);
    };
  } else if (!should && stream) {
    stream.close();
    stream = null;
  }
}

// A question in place of its page.
async function ask(target) {
  const answer = await fetch(target);
  const page = parsed(await answer.text()).getElementById('main');
  if (!answer.ok || !page) { location.href = target; return; }
  const dialog = document.createElement('dialog');
  dialog.setAttribute('aria-label', 'Confirm');
  dialog.append(...page.childNodes);
  dialog.querySelector('form a').addEventListener('click', (event) => {
    event.preventDefault();
    dialog.close();
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// Goes on with an action on many until it has ended, or somebody leaves.
async function goOn() {
  for (;;) {
    const form = main.querySelector('form[data-auto]');
    if (!form) return;
    const answer = await fetch(form.action, { method: 'POST' });
    const page = parsed(await answer.text()).getElementById('main');
    if (!page) { location.reload(); return; }
    main.replaceChildren(...page.childNodes);
  }
}

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-confirm]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  ask(link.href);
});

// The keys of many lists: j and k go through the rows, / to the filter.
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, dialog')) return;
  if (event.key === '/') {
    const field = main.querySelector('input[type=search]');
    if (field) { event.preventDefault(); field.focus(); }
  }
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const rows = [...main.querySelectorAll('tbody tr')].map((row) => row.querySelector('a')).filter(Boolean);
  const at = rows.findIndex((link) => link.closest('tr').contains(document.activeElement));
  const next = rows[at < 0 ? 0 : at + step];
  if (next) next.focus();
});

const here = document.querySelector('header [aria-current]');
if (here) here.scrollIntoView({ inline: 'center', block: 'nearest' });
if (live) {
  live.hidden = !main.querySelector('[data-live]');
  live.addEventListener('click', () => { wanted = !wanted; watch(); });
  document.addEventListener('visibilitychange', watch);
  addEventListener('pagehide', () => { if (stream) { stream.close(); stream = null; } });
  addEventListener('pageshow', watch);
  watch();
}
goOn();
)js";

}  // namespace weir::detail::web

#endif
