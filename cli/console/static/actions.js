// The buttons of --allow-actions. The row that was explained last fills in the fields of a dialog.
import {get} from './requests.js';
import {ActionDialog} from './action_dialog.js';

const at = id => document.getElementById(id);
const chosen = {};

function choose(event) {
  if (event.type === 'keydown' && event.key !== 'Enter') return;
  const row = event.target.closest('.row') || at('rows').querySelector('.current');
  if (row === null) return;
  for (const name of ['topic', 'partition']) {
    const cell = row.querySelector(`[data-column=${name}]`);
    chosen[name] = cell === null ? '' : cell.textContent;
  }
}

async function addButtons() {
  const actions = document.createElement('details'), name = document.createElement('summary');
  const bar = document.createElement('div');
  const dialog = new ActionDialog();
  actions.id = 'actions';
  name.textContent = 'actions';
  bar.className = 'bar';
  actions.append(name, bar);
  for (const action of await get('/api/actions')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = `${action.label} …`;
    button.dataset.action = action.name;
    button.addEventListener('click', () => dialog.open(action, chosen));
    bar.append(button);
  }
  at('tabs').before(actions);
  for (const kind of ['click', 'keydown']) at('rows').addEventListener(kind, choose);
}

addButtons().catch(error => {
  at('error').hidden = false;
  at('error').textContent = error.message;
});
