// The page works without this. With it a page is kept up to date by one stream of events, which
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
