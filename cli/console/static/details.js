// The explanation of a partition, a topic, a broker or the quorum, in a dialog.
import {leaderBar} from './leader_bar.js';
import {get} from './requests.js';

// Return the subject that a row of a table is about, or null if it has no explanation.
export function subjectOf(columns, values) {
  const value = name => values[columns.indexOf(name)];
  if (columns.includes('subject')) return value('subject');
  if (columns.includes('partition')) return `${value('topic')}-${value('partition')}`;
  if (columns.includes('kind')) return `${value('kind')} ${value('name')}`;
  if (columns.includes('topic')) return `topic ${value('topic')}`;
  return columns.includes('broker') ? `broker ${value('broker')}` : null;
}

function element(kind, text, name = '') {
  const made = document.createElement(kind);
  made.textContent = text;
  made.className = name;
  return made;
}

const shown = value => value === null ? 'none' : Array.isArray(value) ? value.join(', ') : value;

export class Details {
  constructor(dialog, failed, travel) {
    Object.assign(this, {dialog, failed, travel, subject: null});
  }

  // Open the dialog, unless another one was opened meanwhile.
  async open(subject) {
    this.subject = subject;
    if (await this.load() && !document.querySelector('dialog[open]')) this.dialog.showModal();
  }

  // Fetch the explanation again, if the dialog shows one.
  renew() { if (this.dialog.open) this.load(); }

  // Draw the explanation of the subject. Return true unless another one was opened meanwhile.
  async load() {
    const subject = this.subject;
    try {
      const found = await get(`/api/explain?${new URLSearchParams({subject})}`);
      if (subject !== this.subject) return false;
      this.draw(found);
      return true;
    } catch (error) { this.failed(error); return false; }
  }

  draw({subject, now, missing, in_flight: delayed, columns, events, total, note}) {
    const close = element('button', 'close');
    close.type = 'button';
    close.addEventListener('click', () => this.dialog.close());
    const state = document.createElement('dl');
    for (const [name, value] of now) state.append(element('dt', name), element('dd', shown(value)));
    const at = name => columns.indexOf(name);
    const list = document.createElement('ol');
    list.append(...events.map(event => {
      const item = document.createElement('li'), offset = event[at('offset')];
      const when = element('button', `${event[at('time')]}, offset ${offset}`, 'when');
      when.type = 'button';
      when.addEventListener('click', () => { this.dialog.close(); this.travel(offset); });
      item.append(when,
        element('div', event[at('what')]), element('div', event[at('why')], 'soft'));
      return item;
    }));
    const buttons = () => [...this.dialog.querySelectorAll('button')];
    const focused = buttons().indexOf(document.activeElement);
    const bar = leaderBar(events.map(event => [event[at('time')], event[at('leader')]]));
    this.dialog.replaceChildren(close, element('h2', subject), state,
      ...(missing ? [element('p', 'It does not exist now.')] : []),
      ...delayed.map(sentence => element('p', sentence)), ...(bar ? [bar] : []),
      element('p', `${events.length} of ${total} events, the newest first; ${note}`, 'soft'), list);
    // Keep the place of a reader with a keyboard.
    buttons()[focused]?.focus({preventScroll: true});
  }
}
