// The panes' widths: two bars between them, moved by mouse or key, folded with Enter, kept with the person's settings.

export const TJ_PANES = ["tree", "text", "errors", "scores"];
const TJ_WIDEST = 60; // percent of the desk
const TJ_STEP = 2;
const TJ_NARROWEST = 10; // a narrower pane is folded

/** `panes` with the pane `name` at `percent` of the desk's width: none below the least width, at most the widest. */
export function resized(panes, name, percent) {
  const width = Math.round(Math.min(TJ_WIDEST, percent));
  return { ...panes, [name]: width < TJ_NARROWEST ? 0 : width };
}

/** `panes` with the pane folded, or at its own width again. */
export function folded(panes, name) {
  const { [name]: width, ...others } = panes;
  return width === 0 ? others : { ...panes, [name]: 0 };
}

export class Panes {
  constructor(desk) {
    this.desk = desk;
    this.columns = desk.root.querySelector(".tj-columns");
    for (const bar of this.bars) this.listen(bar);
    this.draw();
  }

  get bars() {
    return [...this.columns.querySelectorAll("[data-split]")];
  }

  get panes() {
    return this.moving || this.desk.settings.values.panes;
  }

  draw() {
    for (const bar of this.bars) {
      const width = this.panes[bar.dataset.split];
      this.columns.classList.toggle("tj-folded-" + bar.dataset.split, width === 0);
      if (width === undefined) this.columns.style.removeProperty("--tj-" + bar.dataset.split);
      else this.columns.style.setProperty("--tj-" + bar.dataset.split, width + "%");
      bar.setAttribute("aria-valuenow", String(Math.round(this.shareOf(bar))));
    }
  }

  /** The width of a bar's pane now, in percent of the desk. */
  shareOf(bar) {
    const pane = bar.dataset.split === "left" ? bar.previousElementSibling : bar.nextElementSibling;
    return (100 * pane.getBoundingClientRect().width) / (this.columns.clientWidth || 1);
  }

  listen(bar) {
    const name = bar.dataset.split;
    const isLeft = name === "left";
    bar.onkeydown = (event) => {
      const grow = { ArrowRight: isLeft ? 1 : -1, ArrowLeft: isLeft ? -1 : 1 }[event.key];
      if (grow) this.set(resized(this.panes, name, this.shareOf(bar) + grow * TJ_STEP));
      else if (event.key === "Enter") this.set(folded(this.panes, name));
      else return;
      event.preventDefault();
    };
    bar.ondblclick = () => this.set(folded(this.panes, name));
    bar.onpointerdown = (event) => bar.setPointerCapture(event.pointerId);
    bar.onpointermove = (event) => {
      if (!bar.hasPointerCapture(event.pointerId)) return;
      const box = this.columns.getBoundingClientRect();
      const share = (100 * (isLeft ? event.clientX - box.left : box.right - event.clientX)) / box.width;
      this.moving = resized(this.panes, name, share);
      this.draw();
    };
    bar.onlostpointercapture = () => {
      if (this.moving) this.set(this.moving);
    };
  }

  set(panes) {
    this.moving = null;
    this.desk.settings.set({ panes });
    this.draw();
  }

  /** A pane that gets the focus is not folded. */
  unfold(pane) {
    const name = { tree: "left", errors: "side", scores: "side" }[pane];
    if (name && this.panes[name] === 0) this.set(folded(this.panes, name));
  }
}
