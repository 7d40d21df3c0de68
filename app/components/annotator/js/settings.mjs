// One person's keys and way of reading: the server keeps them, this browser only a copy for when it is away.

/**
 * `get()` gives `{revision, keys, pretty, panes}` or null; `put({base_revision, keys, pretty, panes})` gives `{status, body}` or
 * throws when offline. `changed()` is called when other values hold, `problem(message)` when some are not kept.
 */
export class Settings {
  constructor({ storage, user, get, put, changed = () => {}, problem = () => {} }) {
    Object.assign(this, { storage, get, put, changed, problem });
    this.name = "tj:settings:" + user;
    this.values = { keys: {}, pretty: true, panes: {} };
    this.revision = 0;
    this.isUnsent = false;
    this.sending = Promise.resolve();
    this.recall();
  }

  recall() {
    try {
      const { revision, isUnsent, keys, pretty, panes = {} } = JSON.parse(this.storage.getItem(this.name));
      Object.assign(this, { revision, isUnsent, values: { keys, pretty, panes } });
    } catch {
      return; // nothing kept here yet
    }
  }

  remember() {
    try {
      this.storage.setItem(this.name, JSON.stringify({ revision: this.revision, isUnsent: this.isUnsent, ...this.values }));
    } catch {
      return; // the server has them
    }
  }

  /** What the server holds; a change that has not reached it goes there first, unless it was changed elsewhere too. */
  async load() {
    const found = await this.get();
    if (!found) return;
    if (this.isUnsent && found.revision === this.revision) await this.send();
    else this.take(found);
  }

  take({ revision, keys, pretty, panes }) {
    Object.assign(this, { revision, isUnsent: false, values: { keys, pretty, panes } });
    this.remember();
    this.changed();
  }

  /** A change by the person: it holds at once and is on its way. */
  set(changes) {
    this.values = { ...this.values, ...changes };
    this.isUnsent = true;
    this.remember();
    this.changed();
    this.sending = this.sending.then(() => this.send());
    return this.sending;
  }

  async send() {
    if (!this.isUnsent) return;
    const sent = this.values;
    let answer;
    try {
      answer = await this.put({ base_revision: this.revision, ...sent });
    } catch {
      return; // offline: it is sent when a trace is opened next
    }
    if (answer.status === 200) {
      this.revision = answer.body.revision;
      this.isUnsent = this.values !== sent;
      return this.remember();
    }
    if (answer.status === 409 || answer.status === 422) {
      const found = await this.get();
      if (found) this.take(found);
      this.problem(`Settings not saved: ${answer.body.error || "the server refused it"}`);
    }
  }
}
