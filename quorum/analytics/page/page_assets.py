"""The style sheet and the scripts of the report's page. They are inlined, so nothing is
downloaded. The page of `quorate chaos` uses STYLE and SCRIPT too, and the console STYLE. A page is
printed in its light colours, without its controls, and with everything that scrolls on a screen.
"""

STYLE = """
:root { color-scheme: light dark; --bg:#fbfbfa; --fg:#1c1e21; --soft:#6b7077; --line:#dfe1e4;
  --panel:#fff; --up:#2f7d3b; --part:#d99a1b; --track:#eceef0;
  --lost:#d4212c; --lost2:#f4a3a8; --accent:#2b6cb0;
  --b0:#4c78a8; --b1:#a8590b; --b2:#3f8546; --b3:#8f63b8; --b4:#137887; --b5:#8f6a1c;
  --b6:#b34f80; --b7:#65742c; --b8:#9c6b4e; --b9:#5a6b7b; --on:#fff; }
@media screen and (prefers-color-scheme: dark) { :root { --bg:#15171a; --fg:#e6e7e9; --soft:#989ea6;
  --line:#2d3136; --panel:#1c1f23; --up:#72c480; --part:#e2ad45; --track:#292d32;
  --lost:#ff5a5f; --lost2:#7a2529;
  --accent:#78b0ea; --b0:#6f9bd0; --b1:#e9a355; --b2:#72b878; --b3:#ad88d2; --b4:#4db0bf;
  --b5:#d3aa55; --b6:#d980ae; --b7:#9db057; --b8:#bd8c6f; --b9:#8496a7; --on:#101214; } }
* { box-sizing: border-box; }
body { margin:0 auto; padding:1.5rem; max-width:96rem; background:var(--bg); color:var(--fg);
  font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif; }
h1 { font-size:1.35rem; margin:0 0 .2rem; } h2 { font-size:1.05rem; margin:2rem 0 .6rem; }
p { margin:.2rem 0 .6rem; } .soft { color:var(--soft); } code { font-size:.92em; }
.cards { display:flex; flex-wrap:wrap; gap:.6rem; margin:1rem 0; }
.card { background:var(--panel); border:1px solid var(--line); border-radius:8px;
  padding:.5rem .8rem; min-width:8.5rem; }
.card b { display:block; font-size:1.25rem; font-variant-numeric:tabular-nums; }
.card.bad b { color:var(--lost); }
.bar { display:flex; flex-wrap:wrap; gap:.5rem 1.2rem; align-items:center; margin:.5rem 0; }
.bar input[type=search] { padding:.25rem .5rem; border:1px solid var(--line); border-radius:6px;
  background:var(--panel); color:var(--fg); min-width:14rem; }
.key { display:inline-flex; align-items:center; gap:.3rem; white-space:nowrap; }
.key i { width:.9rem; height:.9rem; border-radius:3px; display:inline-block; }
.chart { background:var(--panel); border:1px solid var(--line); border-radius:8px; padding:.5rem;
  max-height:78vh; overflow:auto; }
.scale { width:calc(var(--label) + (100% - var(--label)) * var(--zoom)); --label:11rem; --zoom:1;
  min-width:46rem; }
@media (max-width:40rem) { .scale { --label:6.5rem; } body { padding:1rem; } }
.lane { display:flex; align-items:center; height:22px; } .dense .lane { height:14px; }
.lane > span { flex:0 0 calc(var(--label) + .5rem); position:sticky; left:-.5rem; z-index:3;
  overflow:hidden; text-overflow:ellipsis; white-space:nowrap; margin-left:-.5rem;
  padding:0 .5rem; background:var(--panel); font-size:12px; line-height:22px; }
.dense .lane > span { font-size:10px; line-height:14px; }
.track { position:relative; flex:1; height:76%; background:var(--track); border-radius:2px; }
.track i { position:absolute; top:0; bottom:0; min-width:1px; overflow:hidden; font-style:normal;
  font-size:11px; line-height:1.5; padding-left:3px; color:var(--on);
  border-left:1px solid var(--panel); }
.dense .track i { font-size:0; padding:0; }
.gone { opacity:.55; }
i.lost { min-width:2px; z-index:1; color:var(--fg); background:repeating-linear-gradient(
  45deg,var(--lost) 0 5px,var(--lost2) 5px 8px); }
i.idle { background:transparent; }
.axis { height:20px; position:sticky; top:-.5rem; z-index:4; background:var(--panel); }
.dense .axis { height:20px; }
.axis > span, .dense .axis > span { font-size:11px; line-height:20px; }
.axis .track { background:none; overflow:hidden; }
.axis em { position:absolute; font-style:normal; font-size:11px;
  color:var(--soft); white-space:nowrap; border-left:1px solid var(--line); padding-left:3px; }
.rule { width:max-content; font-size:11px; color:var(--soft); margin:.6rem 0 .1rem;
  position:sticky; left:0; }
table { border-collapse:collapse; width:100%; background:var(--panel); font-size:13px; }
.frame { border:1px solid var(--line); border-radius:8px; overflow:auto; max-height:60vh; }
th,td { text-align:left; padding:.28rem .6rem; border-bottom:1px solid var(--line);
  vertical-align:top; } th { position:sticky; top:0; background:var(--panel); cursor:pointer;
  white-space:nowrap; } td.n,th.n { text-align:right; white-space:nowrap;
  font-variant-numeric:tabular-nums; }
td time { white-space:nowrap; font-variant-numeric:tabular-nums; } tr.bad td { color:var(--lost); }
.meter { display:inline-block; width:6rem; height:.55rem; background:var(--track);
  border-radius:3px; overflow:hidden; margin-right:.4rem; }
.meter i { display:block; height:100%; background:var(--lost); }
.meter.up { background:var(--lost); } .meter.up i { background:var(--up); }
.track i.isr { top:auto; height:34%; z-index:2; min-width:2px; border-left:0; padding:0; }
i.isr.part { background:var(--part); } i.isr.low { background:var(--lost); }
.head.pinned { position:sticky; top:calc(20px - .5rem); z-index:4; background:var(--panel);
  border-bottom:1px solid var(--line); }
th button { all:unset; cursor:pointer; } th button:focus-visible,
.chart:focus-visible, .frame:focus-visible { outline:2px solid var(--accent); }
h1, p { overflow-wrap:anywhere; } td { overflow-wrap:break-word; }
th[aria-sort=ascending]::after { content:" \\25b4"; }
th[aria-sort=descending]::after { content:" \\25be"; }
.none { padding:.5rem; color:var(--soft); }
.b0{background:var(--b0)} .b1{background:var(--b1)} .b2{background:var(--b2)}
.b3{background:var(--b3)} .b4{background:var(--b4)} .b5{background:var(--b5)}
.b6{background:var(--b6)} .b7{background:var(--b7)} .b8{background:var(--b8)}
.b9{background:var(--b9)}
[hidden] { display:none !important; }
@media print { body { padding:0; } .chart,.frame { max-height:none; overflow:visible; }
  .scale { --zoom:1 !important; min-width:0; } .bar input,.bar label { display:none; }
  .axis,.head.pinned,.rule,.lane > span,th { position:static; }
  th,th.n,td.n,td time { white-space:normal; }
  .lane,tr,.card { break-inside:avoid; } h2 { break-after:avoid; }
  .track,.track i,.key i,.meter,.meter i,.bars i,.marks b { print-color-adjust:exact; } }
"""

SCRIPT = """
'use strict';
for (const search of document.querySelectorAll('input[data-filters]')) {
  search.addEventListener('input', () => {
    const wanted = search.value.trim().toLowerCase().split(/\\s+/);
    for (const row of document.querySelectorAll(search.dataset.filters)) {
      const text = (row.dataset.name || row.textContent).toLowerCase();
      row.hidden = !wanted.every(word => text.includes(word));
    }
    search.dispatchEvent(new CustomEvent('filtered', {bubbles: true}));
  });
}
for (const zoom of document.querySelectorAll('input[data-zooms]')) {
  zoom.addEventListener('input', () => {
    const scale = document.querySelector(zoom.dataset.zooms);
    const view = scale.parentElement;
    const middle = (view.scrollLeft + view.clientWidth / 2) / scale.clientWidth;
    scale.style.setProperty('--zoom', Math.pow(1.35, zoom.value));
    view.scrollLeft = middle * scale.clientWidth - view.clientWidth / 2;
  });
}
for (const head of document.querySelectorAll('th')) {
  const label = head.querySelector('button');
  if (label) label.type = 'button';
  head.addEventListener('click', () => {
    const body = head.closest('table').tBodies[0];
    const at = head.cellIndex;
    const down = head.dataset.down = head.dataset.down === '1' ? '0' : '1';
    const value = row => row.cells[at].dataset.v ?? row.cells[at].textContent;
    const rows = [...body.rows].sort((a, b) => {
      const x = value(a), y = value(b);
      const order = x !== '' && y !== '' && !isNaN(x) && !isNaN(y) ? x - y : x.localeCompare(y);
      return down === '1' ? -order : order;
    });
    body.append(...rows);
    for (const other of head.parentElement.cells) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', down === '1' ? 'descending' : 'ascending');
  });
}
"""

ZOOM_SCRIPT = """
const lanes = document.getElementById('lanes');
const axis = lanes.querySelector('.axis');
const steps = JSON.parse(axis.dataset.steps);
const start = Number(lanes.dataset.start), end = Number(lanes.dataset.end);
const whole = Math.max(end - start, 1);
const DAY = 86400000, inSeconds = axis.dataset.unit === 'seconds';
function tick(at, step) {
  if (inSeconds) return String(at / 1000);
  const text = new Date(at).toISOString();
  if (step >= DAY || at % DAY === 0) return text.slice(0, 10);
  return text.slice(11, step >= 60000 ? 16 : step >= 1000 ? 19 : 23);
}
function drawAxis() {
  const track = axis.querySelector('.track');
  const chart = lanes.parentElement;
  const label = axis.firstElementChild.offsetWidth;
  const seen = Math.max(chart.clientWidth - label, 1) / Math.max(track.clientWidth, 1);
  const room = Math.max(Math.min(Number(axis.dataset.ticks), (chart.clientWidth - label) / 70), 1);
  const step = steps.find(each => whole * seen / each <= room) || steps[steps.length - 1];
  const from = start + whole * (chart.scrollLeft / track.clientWidth - seen);
  const to = start + whole * (chart.scrollLeft / track.clientWidth + 2 * seen);
  const marks = [];
  const last = Math.min(to, end);
  for (let at = Math.ceil(Math.max(from, start) / step) * step; at <= last; at += step) {
    const left = (at - start) * 100 / whole;
    if (left > 100 - 5 * seen) break;
    const mark = document.createElement('em');
    mark.style.left = left + '%';
    mark.textContent = tick(at, step);
    marks.push(mark);
  }
  track.replaceChildren(...marks);
  if (inSeconds) return;
  const left = Math.min(start + whole * chart.scrollLeft / Math.max(track.clientWidth, 1), end);
  axis.firstElementChild.textContent = 'UTC ' + new Date(left).toISOString().slice(0, 10);
}
for (const zoom of document.querySelectorAll('input[data-zooms]')) {
  zoom.addEventListener('input', drawAxis);
}
lanes.parentElement.addEventListener('scroll', drawAxis, {passive: true});
window.addEventListener('resize', drawAxis);
drawAxis();
const none = document.createElement('div');
none.className = 'none';
none.textContent = 'No partition of this page matches. It shows the worst ones only.';
none.hidden = true;
lanes.append(none);
document.addEventListener('filtered', () => {
  none.hidden = !!lanes.querySelector('.rule ~ .lane:not([hidden])');
});
"""
