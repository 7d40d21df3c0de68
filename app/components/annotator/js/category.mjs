// TRAIL categories by keyboard: a field that narrows the list while one types, with the last used ones first.

import { el, replaceIn } from "./page.mjs";

const TJ_RECENT = 4; // categories used last that stand on top

/**
 * The categories that a query means, best first: `tse` and `tool sel` both find Tool Selection Errors.
 *
 * Every word of the query starts a word of the name; or the query is the beginning of its initials; or it stands
 * somewhere in it. Names are given back in their own order where they fit alike.
 */
export function matchCategories(names, query) {
  const wanted = query.toLowerCase().split(/[\s-]+/).filter(Boolean);
  if (!wanted.length) return [...names];
  const ranked = names.map((name, place) => ({ name, place, rank: categoryRank(name.toLowerCase(), wanted) })).filter(({ rank }) => rank !== null);
  return ranked.sort((one, other) => one.rank - other.rank || one.place - other.place).map(({ name }) => name);
}

function categoryRank(name, wanted) {
  const words = name.split(/[\s-]+/);
  const joined = wanted.join("");
  const initials = words.map((word) => word[0]).join("");
  if (joined.length > 1 && initials.startsWith(joined)) return 0;
  if (words[0].startsWith(wanted[0]) && wanted.every((part) => words.some((word) => word.startsWith(part)))) return 1;
  if (wanted.every((part) => words.some((word) => word.startsWith(part)))) return 2;
  return name.includes(wanted.join(" ")) ? 3 : null;
}

/** The last used first, each once. */
export function usedNow(recent, name) {
  return [name, ...recent.filter((other) => other !== name)].slice(0, TJ_RECENT);
}

/** One field, drawn anew with every card; what is typed in it and chosen lives here. */
export class CategoryField {
  constructor({ groups, user, storage, pick, leave }) {
    Object.assign(this, { storage, pick, leave });
    this.names = groups.flatMap(({ names }) => names);
    this.groupOf = new Map(groups.flatMap(({ group, names }) => names.map((name) => [name, group])));
    this.storeName = "tj:categories:" + user;
    this.close();
  }

  close() {
    this.isOpen = false;
    this.query = null;
    this.at = 0;
  }

  get recent() {
    try {
      return JSON.parse(this.storage.getItem(this.storeName) || "[]").filter((name) => this.groupOf.has(name));
    } catch {
      return []; // a convenience, not a label
    }
  }

  /** What can be picked now; an empty name takes the category back. */
  options(error) {
    const { recent } = this;
    const found = this.query ? matchCategories(this.names, this.query) : [...recent, ...this.names.filter((name) => !recent.includes(name))];
    return error.category && !this.query ? ["", ...found] : found;
  }

  draw(error, isClosed) {
    const list = el("ul", { class: "tj-options", id: "tj-categories", role: "listbox", "aria-label": "TRAIL categories" });
    const field = el("input", {
      class: "tj-field",
      type: "text",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "TRAIL category: type to find, 1–9 to pick",
      "aria-label": "TRAIL category",
      "aria-autocomplete": "list",
      "aria-controls": "tj-categories",
      "aria-expanded": "false",
      "data-hold": "category",
      disabled: isClosed,
    });
    field.value = this.isOpen && this.query !== null ? this.query : error.category || "";
    field.onfocus = () => this.open(field, list, error);
    field.onclick = () => this.open(field, list, error);
    field.oninput = () => {
      this.query = field.value;
      this.at = 0;
      this.open(field, list, error);
    };
    field.onkeydown = (event) => this.key(event, field, list, error);
    field.onblur = () => {
      this.close();
      this.show(field, list, error);
      field.value = error.category || "";
    };
    this.show(field, list, error);
    return el("div", { class: "tj-category" }, field, list);
  }

  open(field, list, error) {
    if (!this.isOpen) field.select();
    this.isOpen = true;
    this.show(field, list, error);
  }

  show(field, list, error) {
    const options = this.isOpen ? this.options(error) : [];
    this.at = Math.max(0, Math.min(this.at, options.length - 1));
    list.hidden = !this.isOpen;
    field.setAttribute("aria-expanded", String(this.isOpen));
    if (options.length) field.setAttribute("aria-activedescendant", `tj-category-${this.at}`);
    else field.removeAttribute("aria-activedescendant");
    const rows = options.map((name, place) => this.option(name, place, field, error));
    if (this.isOpen && !rows.length) rows.push(el("li", { class: "tj-empty", role: "option", "aria-disabled": "true", "aria-selected": "false", text: "No matching category" }));
    replaceIn(list, ...rows);
    list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  option(name, place, field, error) {
    const isNow = place === this.at;
    return el(
      "li",
      { id: `tj-category-${place}`, role: "option", class: "tj-option", "aria-selected": String(isNow), on: { mousedown: (event) => event.preventDefault(), click: () => this.take(name, field, error) } },
      el("i", { text: place < 9 ? place + 1 : "", "aria-hidden": "true" }),
      el("span", { text: name || "No category" }),
      name ? el("small", { text: this.groupOf.get(name) || "" }) : null,
    );
  }

  key(event, field, list, error) {
    const options = this.options(error);
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.isComposing) return;
    if (steps[event.key]) {
      this.at = (this.at + steps[event.key] + options.length) % Math.max(1, options.length);
      this.open(field, list, error);
    } else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      if (this.isOpen && options.length) this.take(options[this.at], field, error);
    } else if (/^[1-9]$/.test(event.key) && options.length >= +event.key) {
      this.take(options[+event.key - 1], field, error);
    } else return;
    event.preventDefault();
  }

  take(name, field, error) {
    this.close();
    field.onblur = null; // the card is drawn anew
    if (name) this.remember(usedNow(this.recent, name));
    if ((error.category || "") !== name) this.pick(error, name || null);
    this.leave();
  }

  remember(names) {
    try {
      this.storage.setItem(this.storeName, JSON.stringify(names));
    } catch {
      return; // a convenience, not a label
    }
  }
}
