// The slider over the offsets of the metadata log. It shows an earlier state, or the present one.
import {get} from './requests.js';

const PAUSE_MS = 150;

export class TimeTravel {
  // `travelled` is called with the offset that the page has to show, or null for the present. Its
  // promise ends when the state has arrived or failed.
  constructor(bar, travelled, failed) {
    Object.assign(this, {bar, travelled, failed, offset: null, why: '', timer: 0,
      reading: false});
    this.slider = document.createElement('input');
    this.live = document.createElement('button');
    this.text = document.createElement('span');
    Object.assign(this.slider, {type: 'range', step: 1});
    this.slider.setAttribute('aria-label', 'offset of the metadata log');
    Object.assign(this.live, {type: 'button', textContent: 'now', hidden: true});
    this.text.className = 'soft';
    bar.append(this.slider, this.live, this.text);
    this.slider.addEventListener('input', () => this.moved());
    for (const begun of ['pointerenter', 'focus']) {
      this.slider.addEventListener(begun, () => this.measure());
    }
    this.live.addEventListener('click', () => this.go(null));
    this.measure();
  }

  // Read the range of the log again, because the log grows.
  async measure() {
    try {
      const found = await get('/api/past');
      this.why = found.why || '';
      this.slider.hidden = Boolean(this.why);
      if (!this.why) Object.assign(this.slider, {min: found.first, max: found.last});
      if (this.offset !== null) return;
      this.slider.value = this.slider.max;
      this.text.textContent = this.why
        || `now; the log in the directory covers offsets ${found.first} to ${found.last}`;
    } catch (error) { this.failed(error); }
  }

  // Go to the offset when the slider rests and the last state has arrived: the console refuses
  // requests if too many wait for states that the page shows no more.
  moved() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.reading) this.moved(); else this.go(Number(this.slider.value));
    }, PAUSE_MS);
  }

  go(offset) {
    if (this.why && offset !== null) { this.failed(new Error(this.why)); return; }
    clearTimeout(this.timer);
    this.offset = offset;
    this.reading = true;
    this.live.hidden = offset === null;
    this.bar.className = offset === null ? 'bar' : 'bar past';
    if (offset === null) {
      this.measure();
    } else {
      this.slider.value = offset;
      this.text.textContent = `offset ${offset}: reading`;
    }
    this.travelled(offset).finally(() => { this.reading = false; });
  }

  // Show the time of the state that has arrived. Present states have none.
  arrived(time) {
    if (this.offset === null) return;
    this.text.textContent = `the cluster at offset ${this.offset}, ${time} UTC`;
  }
}
