// The chaos run in progress, above the tables.
import {get} from './requests.js';

const PERIOD_MS = 2000;
const at = id => document.getElementById(id);
const SAID = {running: 'runs', silent: 'does not report any more', good: 'GOOD', bad: 'BAD'};

function made(tag, properties, ...content) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
}

function list(id, name, lines) {
  const items = lines.map(line => made('li', {}, line));
  return lines.length ? [made('h3', {}, name), made('ul', {id}, ...items)] : [];
}

function draw(section, run) {
  section.hidden = run.scenario === undefined && run.error === undefined;
  if (run.error !== undefined) {
    section.replaceChildren(made('p', {className: 'bad'}, run.error));
  } else if (!section.hidden) {
    const seconds = `${(run.ms / 1000).toFixed(0)} s`;
    const bad = run.state === 'bad' || run.state === 'silent' || run.problems.length;
    section.replaceChildren(
      made('h2', {}, `Chaos run ${run.scenario}: `,
        made('span', {id: 'run', className: bad ? 'bad' : ''}, SAID[run.state])),
      made('p', {}, `${run.title}. ${seconds}, ${run.acknowledged.toLocaleString('en')} records `
        + 'acknowledged.'),
      ...run.step ? [made('p', {id: 'step'}, run.step)] : [],
      ...list('problems', 'problems so far', run.problems),
      ...list('checks', 'checks', run.checks),
      ...list('events', 'newest events', run.events));
  }
}

async function follow() {
  const section = made('section', {id: 'chaos', hidden: true});
  section.setAttribute('aria-label', 'chaos run');
  at('causes').after(section);
  for (let shown = ''; ; await new Promise(done => setTimeout(done, PERIOD_MS))) {
    if (document.hidden) continue;
    try {
      const run = await get('/api/chaos');
      const key = JSON.stringify(run);
      if (key !== shown) draw(section, run);
      shown = key;
    } catch {
      // The page says elsewhere that the console does not answer.
      shown = '';
    }
  }
}
follow();
