// The page: the overview, the tabs, the keys, and the wait for news.
import {Details, subjectOf} from './details.js';
import {get} from './requests.js';
import {TimeTravel} from './time_travel.js';
import {VirtualTable} from './virtual_table.js';

const TABLES = ['partitions', 'topics', 'brokers', 'replicas', 'groups', 'lags', 'reassignments',
  'configs', 'timeline', 'changes', 'nodes'];
const RETRY_MS = 2000;
const at = id => document.getElementById(id);
const fail = error => { at('error').hidden = false; at('error').textContent = error.message; };
const count = found => {
  at('count').textContent = `${found.matching} of ${found.total} rows`;
  at('note').textContent = found.note;
};
const details = new Details(at('details'), fail, offset => travel.go(offset));
const table = new VirtualTable(at('rows'), at('space'), at('heads'), count, fail, activate);

const travel = new TimeTravel(at('travel'), offset => {
  table.travel(offset);
  return showOverview().catch(fail);
}, fail);

// Explain what a row is about. A group has its partitions in another table.
function activate(columns, values) {
  const subject = subjectOf(columns, values);
  if (subject !== null) { details.open(subject); return; }
  choose('lags');
  at('filter').value = values[columns.indexOf('group')];
  table.search(at('filter').value);
}

function card(value, label, bad) {
  const made = document.createElement('div'), bold = document.createElement('b');
  made.className = bad ? 'card bad' : 'card';
  bold.textContent = value;
  made.append(bold, label);
  return made;
}

async function showOverview() {
  const offset = travel.offset;
  const found = await get(offset === null ? '/api/overview' : `/api/past/overview?at=${offset}`);
  if (offset !== travel.offset) return found.version;
  travel.arrived(found.time);
  at('error').hidden = !found.error;
  at('error').textContent = found.error;
  if (found.cluster_id === undefined) return found.version;
  if (found.cluster_id) at('cluster').textContent = `Cluster ${found.cluster_id}`;
  at('quorum').textContent = found.quorum;
  at('quorum').style.color = found.lost ? 'var(--lost)' : '';
  at('cards').replaceChildren(
    card(found.brokers, 'brokers'), card(found.fenced, 'fenced', found.fenced > 0),
    card(found.topics, 'topics'), card(found.partitions, 'partitions'),
    ...Object.entries(found.counts).map(([state, number]) => card(number, state, number > 0)));
  at('causes').replaceChildren(...[...found.causes, ...found.elections].map(line => {
    const item = document.createElement('li');
    item.textContent = line;
    return item;
  }));
  return found.version;
}

function choose(name) {
  for (const tab of at('tabs').children) {
    const chosen = tab.dataset.table === name;
    tab.setAttribute('aria-selected', String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  table.show(name);
}

TABLES.forEach((name, index) => {
  const tab = document.createElement('button');
  tab.type = 'button';
  tab.setAttribute('role', 'tab');
  tab.dataset.table = name;
  tab.textContent = name;
  tab.addEventListener('click', () => choose(name));
  tab.addEventListener('keydown', event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const next = TABLES[(index + step + TABLES.length) % TABLES.length];
    choose(next);
    at('tabs').querySelector(`[data-table=${next}]`).focus();
  });
  at('tabs').append(tab);
});
at('quorum').addEventListener('click', () => details.open('quorum'));
at('filter').addEventListener('input', () => table.search(at('filter').value));
addEventListener('keydown', event => {
  if (document.querySelector('dialog[open]')) return;
  if (event.key === '/' && document.activeElement !== at('filter')) {
    event.preventDefault();
    at('filter').focus();
  } else if (event.key === 'Escape' && document.activeElement === at('filter')) {
    at('filter').value = '';
    table.search('');
    at('rows').focus();
  }
});

// Wait until the page is visible, so that a hidden page causes no reading of the cluster.
async function visible() {
  while (document.hidden) {
    await new Promise(done => addEventListener('visibilitychange', done, {once: true}));
  }
}

async function follow() {
  let seen = -1;
  for (;;) {
    try {
      await visible();
      const {version} = await get(`/api/news?seen=${seen}&table=${table.name}`);
      // Also without news, because the console drops what no page asks for.
      details.renew();
      if (version === seen) continue;
      if (seen < 0) at('error').hidden = true;
      seen = version;
      if (travel.offset !== null) continue;
      await showOverview();
      table.renew();
    } catch (error) {
      fail(error);
      seen = -1;
      await new Promise(done => setTimeout(done, RETRY_MS));
    }
  }
}
choose(TABLES[0]);
follow();
