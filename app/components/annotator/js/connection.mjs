// The server: requests with a short-lived pass, renewed while the page is open and the person is signed in.

import { say } from "./page.mjs";

const TJ_ASK_AGAIN = 3000; // milliseconds after which a pass that did not come is asked for again
const TJ_PASS_PATIENCE = 20000; // milliseconds that a reading waits for a fresh pass

export class Connection {
  constructor(desk) {
    this.desk = desk;
    this.passWaiters = [];
    this.renewLater();
    desk.signal.addEventListener("abort", () => this.close());
  }

  url(path, query = {}) {
    const parameters = new URLSearchParams({ token: this.desk.data.token, ...query });
    return `${this.desk.data.base}/api/${path}?${parameters}`;
  }

  fetchJson(path, query) {
    return this.fetchFrom(path, query, (answer) => answer.json());
  }

  /** Asks for another pass at half the life of this one. */
  renewLater() {
    this.isAskingForPass = false;
    clearTimeout(this.passTimer);
    this.passTimer = setTimeout(() => this.renew(), (this.desk.data.token_s || 1200) * 500);
  }

  /** Asks until one comes: a word to a server that is away is lost. */
  renew() {
    clearTimeout(this.passTimer);
    if (this.desk.signal.aborted) return;
    this.isAskingForPass = true;
    this.desk.tell("renew");
    this.passTimer = setTimeout(() => this.renew(), TJ_ASK_AGAIN);
  }

  /** True once another pass is here; false when none came in time. */
  freshPass() {
    if (!this.isAskingForPass) this.renew();
    return new Promise((done) => {
      this.passWaiters.push(done);
      setTimeout(() => done(false), TJ_PASS_PATIENCE);
    });
  }

  /** Asks; once more with a fresh pass where this one has run out. */
  async withPass(ask) {
    const answer = await ask();
    return answer.status === 401 && (await this.freshPass()) ? ask() : answer;
  }

  passArrived(isFresh) {
    for (const done of this.passWaiters.splice(0)) done(isFresh);
  }

  /** The answer to a GET as `read` takes it; null, and said why, where there is none. */
  async fetchFrom(path, query, read, { isQuiet = false } = {}) {
    try {
      const answer = await this.withPass(() => fetch(this.url(path, query), { signal: this.desk.signal }));
      if (answer.ok) return await read(answer);
      if (isQuiet) return null;
      const problem = await answer.json().catch(() => ({}));
      say(this.desk, problem.error || `The server answered ${answer.status}`, true);
    } catch (error) {
      if (!this.desk.signal.aborted && !isQuiet) say(this.desk, "No connection to the server", true);
    }
    return null;
  }

  async post(path, body, method = "POST") {
    const text = JSON.stringify(body);
    const answer = await fetch(`${this.desk.data.base}/api/${path}`, {
      method,
      headers: { "Content-Type": "application/json" },
      body: text,
      keepalive: text.length < 60000, // also while the tab is being closed
      signal: AbortSignal.timeout(20000),
    });
    return { status: answer.status, body: await answer.json().catch(() => ({})) };
  }

  close() {
    this.passArrived(false);
    clearTimeout(this.passTimer);
  }
}
