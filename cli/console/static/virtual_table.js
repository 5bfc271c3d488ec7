// A table of any length that draws its visible rows only, and fetches them in pages. The arrow keys
// move the current row, and Enter or a click activates a row.
import {get} from './requests.js';

const ROW_PX = 26, PAGE_ROWS = 100, MARGIN_ROWS = 10;
const GOOD = new Set(['ok', 'up', 'Stable', 'Empty', 'leader', 'in sync', 'being added', 'moving',
  'complete', 'active']);

export class VirtualTable {
  constructor(view, space, heads, counted, failed, activated) {
    Object.assign(this, {view, space, heads, counted, failed, activated, current: -1});
    this.source = '/api/table/'; this.at = null;
    this.name = ''; this.filter = ''; this.sort = ''; this.down = false;
    this.generation = 0;
    this.clear();
    view.addEventListener('scroll', () => this.draw(), {passive: true});
    view.addEventListener('keydown', event => this.pressed(event));
    view.addEventListener('click', event => this.activate(event.target.closest('.row')));
    addEventListener('resize', () => this.draw());
  }

  pressed(event) {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (event.key === 'Enter') this.activate(this.space.querySelector('.current'));
    if (!step || !this.matching) return;
    event.preventDefault();
    this.current = Math.min(Math.max(this.current + step, 0), this.matching - 1);
    const top = this.current * ROW_PX, bottom = top + ROW_PX - this.view.clientHeight;
    this.view.scrollTop = Math.max(Math.min(this.view.scrollTop, top), bottom);
    this.draw();
  }

  activate(row) {
    const index = row ? Number(row.dataset.index) : -1;
    const values = this.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
    if (values !== undefined) this.activated(this.columns, values);
  }

  show(name) {
    Object.assign(this, {name, sort: '', down: false, current: -1});
    this.view.scrollTop = 0;
    this.clear();
    this.space.replaceChildren();
    this.renew();
  }

  // Show the state after the record at an offset, or the present one (null).
  travel(offset) {
    this.at = offset;
    this.source = offset === null ? '/api/table/' : '/api/past/table/';
    this.clear();
    this.renew();
  }

  search(text) {
    this.filter = text; this.current = -1;
    this.view.scrollTop = 0;
    this.renew();
  }

  clear() {
    this.pages = new Map(); this.asked = new Set(); this.matching = 0; this.columns = [];
  }

  // Fetch the visible pages again. The old rows stay until the new ones are here.
  renew() {
    this.generation += 1;
    this.asked = new Set();
    const first = this.firstRow();
    this.fetchPage(Math.floor(first / PAGE_ROWS));
  }

  firstRow() { return Math.max(0, Math.floor(this.view.scrollTop / ROW_PX) - MARGIN_ROWS); }

  async fetchPage(number) {
    if (this.asked.has(number)) return;
    this.asked.add(number);
    const generation = this.generation;
    const query = new URLSearchParams({...(this.at === null ? {} : {at: this.at}), filter: this.filter, sort: this.sort,
      down: this.down ? '1' : '0', from: String(number * PAGE_ROWS), limit: String(PAGE_ROWS)});
    try {
      const found = await get(`${this.source}${this.name}?${query}`);
      if (generation !== this.generation) return;
      this.pages.set(number, found.rows);
      this.matching = found.matching;
      this.counted(found);
      if (found.columns.join() !== this.columns.join()) this.columns = found.columns;
      this.drawHeads();
      this.draw();
    } catch (error) {
      if (generation === this.generation) { this.asked.delete(number); this.failed(error); }
    }
  }

  drawHeads() {
    const shown = [...this.columns, this.name, this.sort, this.down].join();
    if (this.heads.dataset.shown === shown) return;
    this.heads.dataset.shown = shown;
    this.heads.replaceChildren(...this.columns.map(column => {
      const button = document.createElement('button');
      const chosen = column === this.sort;
      button.type = 'button';
      button.textContent = chosen ? `${column} ${this.down ? '▾' : '▴'}` : column;
      button.setAttribute('aria-pressed', String(chosen));
      button.dataset.column = column;
      button.addEventListener('click', () => this.sortBy(column));
      return button;
    }));
  }

  sortBy(column) {
    this.down = column === this.sort && !this.down;
    this.sort = column;
    this.renew();
    this.drawHeads();
    this.heads.querySelector('[aria-pressed=true]').focus();
  }

  draw() {
    this.space.style.height = `${this.matching * ROW_PX}px`;
    const first = this.firstRow();
    const last = Math.min(this.matching,
      first + Math.ceil(this.view.clientHeight / ROW_PX) + 2 * MARGIN_ROWS);
    const drawn = [];
    for (let index = first; index < last; index += 1) {
      const number = Math.floor(index / PAGE_ROWS);
      this.fetchPage(number);
      const row = this.pages.get(number)?.[index % PAGE_ROWS];
      if (row !== undefined) drawn.push(this.rowAt(index, row));
    }
    if (drawn.length || !this.matching) this.place(drawn);
  }

  // Replace the rows, unless they are the same: a new row takes no click that began on the old one.
  place(rows) {
    const old = this.space.children;
    const same = old.length === rows.length && rows.every((row, at) => row.isEqualNode(old[at]));
    if (!same) this.space.replaceChildren(...rows);
  }

  rowAt(index, values) {
    const row = document.createElement('div');
    const state = values[this.columns.indexOf('state')];
    row.className = state === undefined || GOOD.has(state) ? 'row' : 'row bad';
    if (index === this.current) row.classList.add('current');
    row.dataset.index = index;
    row.style.top = `${index * ROW_PX}px`;
    row.append(...values.map((value, column) => {
      const cell = document.createElement('span');
      cell.dataset.column = this.columns[column];
      cell.textContent = value === null ? 'none' : Array.isArray(value) ? value.join(', ') : value;
      cell.title = cell.textContent;
      return cell;
    }));
    return row;
  }
}
