// The dialog of an action: first its fields, then its question, then the result.
import {post} from './requests.js';

function made(tag, properties, ...content) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...content);
  return element;
}

export class ActionDialog {
  constructor() {
    this.form = made('form', {});
    this.dialog = made('dialog', {id: 'action'}, this.form);
    this.form.addEventListener('submit', event => { event.preventDefault(); this.next(); });
    // The keys of the page do nothing while the dialog is open.
    this.dialog.addEventListener('keydown', event => event.stopPropagation());
    this.dialog.addEventListener('cancel', event => { if (this.busy) event.preventDefault(); });
    document.body.append(this.dialog);
  }

  open(action, values) {
    this.action = action;
    this.values = Object.fromEntries(action.fields.map(field =>
      [field.name, field.same_as === null ? values[field.name] || '' : '']));
    this.dialog.showModal();
    if (this.fields(false).length) this.showFields(); else this.showQuestion();
  }

  // The fields of the first step, or those that are repeated with the confirmation.
  fields(repeated) {
    return this.action.fields.filter(field => (field.same_as !== null) === repeated);
  }

  showFields() {
    this.show(this.action.label, this.fields(false), () => this.showQuestion(),
      this.button('submit', 'continue'), this.button('button', 'cancel', () => this.close()));
  }

  showQuestion() {
    const question = this.action.question.replace(/{(\w+)}/g, (_, name) =>
      this.values[name] || this.action.fields.find(field => field.name === name).blank);
    const back = this.button('button', 'back', () => this.again());
    this.show(question, this.fields(true), () => this.take(),
      this.button('submit', this.action.label), back);
    if (!this.fields(true).length) back.focus();
  }

  async take() {
    this.show('The cluster carries out the action.', [], () => {});
    this.busy = true;
    try {
      const {done} = await post(`/api/actions/${this.action.name}`, this.values);
      this.show(done, [], () => this.close(), this.button('submit', 'close'));
    } catch (error) {
      this.show(error.message, [], () => this.close(), this.button('submit', 'close'),
        this.button('button', 'back', () => this.again()));
      this.form.className = 'bad';
    } finally {
      this.busy = false;
    }
  }

  // Return to the fields, with their values.
  again() { this.close(); this.open(this.action, this.values); }

  show(text, fields, next, ...buttons) {
    const said = made('p', {id: 'said', role: 'status'}, text);
    const asked = fields.map(field => this.input(field));
    this.form.className = '';
    this.form.replaceChildren(said, ...asked, made('div', {className: 'bar'}, ...buttons));
    this.dialog.setAttribute('aria-labelledby', 'said');
    this.next = next;
    this.form.querySelector('input, button')?.focus();
  }

  input(field) {
    const input = made('input', {type: 'text', name: field.name, value: this.values[field.name],
      maxLength: field.max_chars, placeholder: field.blank || '', autocomplete: 'off',
      required: field.blank === null});
    input.addEventListener('input', () => { this.values[field.name] = input.value.trim(); });
    return made('label', {}, field.label, input);
  }

  button(type, text, clicked = () => {}) {
    const button = made('button', {type, textContent: text});
    button.addEventListener('click', clicked);
    return button;
  }

  close() { this.dialog.close(); }
}
