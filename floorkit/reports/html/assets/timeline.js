// One audit timeline: which event is shown, and how far in. Drawing is in drawing.js.

floorkit.seconds = (time) => `${Number(time.toFixed(3))} s`;

floorkit.Timeline = class {
  constructor(figure) {
    this.figure = figure;
    this.events = floorkit.data(figure.id);
    this.canvas = figure.querySelector("canvas");
    this.filters = [...figure.querySelectorAll("select[data-filter]")];
    this.chooser = figure.querySelector("select.event");
    this.details = figure.querySelector("details.lanes");
    this.pointer = null;
    for (const filter of this.filters) filter.addEventListener("change", () => this.filter());
    this.chooser.addEventListener("change", () => this.show(this.chooser.selectedIndex));
    figure.querySelectorAll("button[data-action]").forEach((button) => {
      button.addEventListener("click", () => this.act(button.dataset.action));
    });
    this.details.addEventListener("toggle", () => this.listLanes());
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    floorkit.redraws.push(() => this.draw());
    this.filter();
  }

  // --- choosing events ---

  filter() {
    const wanted = this.filters
      .filter((select) => select.selectedIndex > 0)
      .map((select) => [select.dataset.filter, select.value]);
    const before = this.event;
    this.chosen = this.events.filter((event) => wanted.every(([name, value]) => event[name] === value));
    this.chooser.replaceChildren(
      ...this.chosen.map((event) => {
        const words = [event.id, event.run, event.unit, floorkit.seconds(event.anchor), event.status, event.outcome];
        return floorkit.make("option", words.filter(Boolean).join(" · "));
      }),
    );
    this.chooser.disabled = !this.chosen.length;
    this.show(Math.max(0, this.chosen.indexOf(before)));
  }

  show(index) {
    this.index = index;
    this.event = this.chosen[index];
    this.chooser.selectedIndex = this.event ? index : -1;
    this.figure.querySelector(".position").textContent = this.event
      ? `event ${index + 1} of ${this.chosen.length}`
      : "no event fits the filters";
    const end = this.chosen.length - 1;
    for (const button of this.figure.querySelectorAll("button[data-action]")) {
      const off = { previous: index <= 0, next: index >= end }[button.dataset.action] ?? false;
      button.disabled = !this.event || off;
    }
    this.describe();
    this.listLanes();
    if (this.event) {
      this.extent = this.extentOf(this.event);
      this.act(this.extent[1] - this.extent[0] > 60 ? "anchor" : "all");
    } else this.draw();
  }

  extentOf(event) {
    const times = [event.anchor, ...event.span, ...(event.window ?? []), event.competing, event.end];
    for (const lane of event.lanes) {
      for (const [start, stop] of lane.intervals) times.push(start, stop);
      if (lane.path.length) times.push(lane.path[0][0], lane.path.at(-1)[0]);
    }
    const known = times.filter((time) => time !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const pad = Math.max(0.02 * (high - low), 0.1);
    return [low - pad, high + pad];
  }

  // --- moving ---

  act(action) {
    if (!this.event) return;
    const middle = (this.view?.[0] + this.view?.[1]) / 2;
    const anchor = this.event.anchor;
    if (action === "previous" && this.index > 0) this.show(this.index - 1);
    else if (action === "next" && this.index < this.chosen.length - 1) this.show(this.index + 1);
    else if (action === "in") this.zoom(0.5, middle);
    else if (action === "out") this.zoom(2, middle);
    else if (action === "left") this.move(-0.2 * (this.view[1] - this.view[0]));
    else if (action === "right") this.move(0.2 * (this.view[1] - this.view[0]));
    else if (action === "all") this.look(...this.extent);
    else if (action === "anchor") this.look(anchor - 10, anchor + 10);
  }

  look(from, to) {
    this.view = [from, to];
    this.draw();
  }

  zoom(factor, around) {
    const span = this.view[1] - this.view[0];
    const widest = 2 * (this.extent[1] - this.extent[0]);
    const next = Math.min(Math.max(span * factor, 0.05), Math.max(widest, 20));
    const share = (around - this.view[0]) / span;
    this.look(around - share * next, around + (1 - share) * next);
  }

  move(by) {
    this.look(this.view[0] + by, this.view[1] + by);
  }

  listen() {
    const keys = {
      n: "next", PageDown: "next", p: "previous", PageUp: "previous", "+": "in", "=": "in", "-": "out",
      ArrowLeft: "left", ArrowRight: "right", 0: "all", Home: "anchor",
    };
    this.canvas.addEventListener("keydown", (press) => {
      const action = keys[press.key];
      if (!action || press.ctrlKey || press.metaKey || press.altKey) return;
      press.preventDefault();
      this.act(action);
    });
    let dragged = null;
    this.canvas.addEventListener("pointerdown", (press) => {
      dragged = press.offsetX;
      this.canvas.setPointerCapture(press.pointerId);
    });
    this.canvas.addEventListener("pointermove", (press) => {
      if (!this.event) return;
      if (dragged !== null) {
        this.move(this.timeAt(dragged) - this.timeAt(press.offsetX));
        dragged = press.offsetX;
      }
      this.pointer = this.timeAt(press.offsetX);
      this.readOut(press.offsetY);
      this.draw();
    });
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => (dragged = null));
    this.canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.figure.querySelector(".readout").textContent = "";
      this.draw();
    });
    this.canvas.addEventListener(
      "wheel",
      (turn) => {
        if (!(turn.ctrlKey || turn.metaKey) || !this.event) return;
        turn.preventDefault();
        this.zoom(turn.deltaY > 0 ? 1.25 : 0.8, this.timeAt(turn.offsetX));
      },
      { passive: false },
    );
  }

  timeAt(x) {
    const { left, width } = floorkit.timelineArea(this.canvas);
    return this.view[0] + ((x - left) / width) * (this.view[1] - this.view[0]);
  }

  // --- words ---

  readOut(y) {
    const time = this.pointer;
    const parts = [floorkit.seconds(time)];
    const lane = floorkit.laneAt(this.event, y);
    if (lane) {
      parts.push(lane.name);
      const inside = lane.intervals.find(([start, stop]) => start <= time && time < stop);
      if (inside) parts.push(`${floorkit.seconds(inside[0])} to ${floorkit.seconds(inside[1])}`, inside[2]);
      const sample = floorkit.nearestSample(lane.path, time);
      if (sample) parts.push(`${sample[1] === null ? "no value" : sample[1]} at ${floorkit.seconds(sample[0])}`);
    }
    this.figure.querySelector(".readout").textContent = parts.filter(Boolean).join("  ");
  }

  describe() {
    const words = this.figure.querySelector(".words");
    const event = this.event;
    if (!event) {
      words.replaceChildren();
      return;
    }
    const at = floorkit.seconds;
    const lines = [
      `${event.id}, ${event.kind}, run ${event.run}, in ${event.unit}: ${event.status}, ${event.outcome}` +
        (event.score === null ? "." : `, score ${Number(event.score.toPrecision(6))}.`),
      `Anchor at ${at(event.anchor)}` +
        (event.window ? `, window from ${at(event.window[0])} to ${at(event.window[1])}` : "") +
        (event.competing === null ? "" : `, competing boundary at ${at(event.competing)}`) +
        (event.end === null ? "." : `, outcome at ${at(event.end)}.`),
    ];
    if (event.facts.length) lines.push(event.facts.map(([name, value]) => `${name}: ${value}`).join("; ") + ".");
    if (event.lanes.some((lane) => lane.more)) lines.push("Some lanes of this event are drawn in part.");
    words.replaceChildren(...lines.map((line) => floorkit.make("p", line)));
  }

  listLanes() {
    this.details.querySelector(".scroll")?.remove();
    if (!this.details.open || !this.event) return;
    const table = floorkit.make("table");
    const head = table.createTHead().insertRow();
    for (const heading of ["lane", "from", "to", "text or value"]) {
      head.append(floorkit.make("th", heading, { scope: "col" }));
    }
    const body = table.createTBody();
    const add = (lane, ...values) => {
      const row = body.insertRow();
      row.append(floorkit.make("th", lane, { scope: "row" }), ...values.map((value) => floorkit.make("td", value)));
    };
    for (const lane of this.event.lanes) {
      for (const [start, stop, text] of lane.intervals) add(lane.name, floorkit.seconds(start), floorkit.seconds(stop), text);
      for (const [time, value] of lane.path) add(lane.name, floorkit.seconds(time), "", value === null ? "no value" : String(value));
    }
    const region = floorkit.make("div", undefined, { class: "scroll", tabindex: "0", role: "group", "aria-label": "Lanes" });
    region.append(table);
    this.details.append(region);
  }

  draw() {
    if (this.canvas.clientWidth) floorkit.drawTimeline(this);
  }
};
