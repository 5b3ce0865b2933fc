"use strict";
// Theme, sortable tables, and the data that the page carries.

const floorkit = {
  data(id) {
    return JSON.parse(document.getElementById(`${id}-data`).textContent);
  },
  make(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  },
  redraws: [],
};

// --- theme ---

floorkit.theme = () => {
  const themes = ["system", "light", "dark"];
  const names = { system: "theme: as the system", light: "theme: light", dark: "theme: dark" };
  const root = document.documentElement;
  const button = document.getElementById("theme");
  let current = "system";
  const show = (theme) => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    for (const redraw of floorkit.redraws) redraw();
  };
  const choose = (theme) => {
    current = theme;
    button.textContent = names[theme];
    show(theme);
  };
  button.hidden = false;
  button.addEventListener("click", () => choose(themes[(themes.indexOf(current) + 1) % themes.length]));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(current));
  addEventListener("beforeprint", () => show("light"));
  addEventListener("afterprint", () => show(current));
};

// --- tables ---

floorkit.sortable = (table) => {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const original = [...body.rows];
  const key = (row, column) => row.cells[column].dataset.key ?? row.cells[column].textContent;
  const order = (column, sign) => {
    const keys = new Map(original.map((row) => [row, key(row, column)]));
    const missing = (text) => text === "" || text === "–";
    const numeric = original.every((row) => missing(keys.get(row)) || !Number.isNaN(Number(keys.get(row))));
    const between = numeric ? (a, b) => Number(a) - Number(b) : (a, b) => a.localeCompare(b, "en", { numeric: true });
    return [...original].sort((one, other) => {
      const [a, b] = [keys.get(one), keys.get(other)];
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return sign * between(a, b);
    });
  };
  headings.forEach((heading, column) => {
    const button = floorkit.make("button", undefined, { type: "button" });
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "none" }[heading.getAttribute("aria-sort")] ?? "ascending";
      for (const one of headings) one.removeAttribute("aria-sort");
      if (next !== "none") heading.setAttribute("aria-sort", next);
      body.append(...(next === "none" ? original : order(column, next === "ascending" ? 1 : -1)));
    });
  });
};

document.addEventListener("DOMContentLoaded", () => {
  floorkit.theme();
  document.querySelectorAll("table.sortable").forEach(floorkit.sortable);
  document.querySelectorAll("figure.timeline").forEach((figure) => new floorkit.Timeline(figure));
  floorkit.plots(document.querySelectorAll("figure.plot"));
});
