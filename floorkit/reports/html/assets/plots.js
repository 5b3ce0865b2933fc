// Plots: from the data of a PlotSection to Plotly, drawn when they come near the screen.

floorkit.plotStyle = {
  colours: ["#2b7fc4", "#d1602a", "#2a9d73", "#b85fb0", "#c59a1c", "#5b6fd6", "#c2486a", "#6b8e23"],
  control: "#8b939b",
  symbols: ["circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "cross"],
  dashes: ["dash", "dot", "dashdot", "longdash"],
};

floorkit.escapePlotly = (text) =>
  String(text).replace(/[&<>]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[character]);

floorkit.plotNumber = (value) => (typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value));

floorkit.hoverTexts = (series) =>
  series.x.map((_, index) => {
    const parts = [];
    if (series.low[index] != null && series.high[index] != null) {
      parts.push(`interval [${floorkit.plotNumber(series.low[index])}, ${floorkit.plotNumber(series.high[index])}]`);
    }
    if (series.texts[index]) parts.push(floorkit.escapePlotly(series.texts[index]));
    if (series.marked.includes(index)) parts.push("chosen operating point");
    return parts.join("<br>");
  });

floorkit.plotBand = (series, colour) => {
  // One closed outline for each stretch without a gap.
  const bands = [];
  let stretch = [];
  const close = () => {
    if (stretch.length > 1) {
      bands.push({
        type: "scatter",
        mode: "lines",
        fill: "toself",
        fillcolor: `${colour}2b`,
        line: { width: 0 },
        hoverinfo: "skip",
        showlegend: false,
        x: [...stretch.map((i) => series.x[i]), ...stretch.map((i) => series.x[i]).reverse()],
        y: [...stretch.map((i) => series.high[i]), ...stretch.map((i) => series.low[i]).reverse()],
      });
    }
    stretch = [];
  };
  series.x.forEach((_, index) => {
    if (series.low[index] == null || series.high[index] == null) close();
    else stretch.push(index);
  });
  close();
  return bands;
};

floorkit.plotTraces = (plot) => {
  const style = floorkit.plotStyle;
  const bars = plot.kind === "bar" || plot.kind === "histogram";
  const counts = { control: 0, run: 0 };
  return plot.series.flatMap((series) => {
    const place = counts[series.control ? "control" : "run"]++;
    const colour = series.control ? style.control : style.colours[place % style.colours.length];
    const trace = {
      type: bars ? "bar" : "scatter",
      name: floorkit.escapePlotly(series.name),
      x: series.x.map((x) => (typeof x === "string" ? floorkit.escapePlotly(x) : x)),
      y: series.y,
      text: floorkit.hoverTexts(series),
      textposition: bars ? "none" : undefined,
      hovertemplate: "%{x}, %{y}<br>%{text}",
      marker: { color: colour, symbol: style.symbols[place % style.symbols.length], size: 7 },
    };
    if (bars) {
      trace.opacity = plot.kind === "histogram" && plot.series.length > 1 ? 0.6 : 1;
      if (series.control) trace.marker.pattern = { shape: "/" };
    } else {
      const many = series.x.length > 60;
      trace.mode = plot.kind === "scatter" ? "markers" : many ? "lines" : "lines+markers";
      trace.line = { color: colour, width: 2, shape: plot.kind === "step" ? "hv" : "linear" };
      if (series.control) trace.line.dash = style.dashes[place % style.dashes.length];
    }
    const traces = [trace];
    if (series.low.length) {
      if (plot.kind === "line" || plot.kind === "step") traces.unshift(...floorkit.plotBand(series, colour));
      else {
        const beyond = (bound) => series.y.map((y, i) => (y == null || bound[i] == null ? 0 : Math.abs(bound[i] - y)));
        trace.error_y = { type: "data", symmetric: false, array: beyond(series.high), arrayminus: beyond(series.low),
          color: colour, thickness: 1.5 };
      }
    }
    if (series.marked.length) {
      traces.push({
        type: "scatter",
        mode: "markers",
        x: series.marked.map((i) => trace.x[i]),
        y: series.marked.map((i) => series.y[i]),
        hoverinfo: "skip",
        showlegend: false,
        marker: { symbol: "circle-open", size: 15, color: colour, line: { width: 3 } },
      });
    }
    return traces;
  });
};

floorkit.loadPlotly = () => {
  // The library's five megabytes are read when the first plot is drawn, so that the page opens without them.
  if (window.Plotly) return;
  const source = document.getElementById("plotly");
  document.head.append(floorkit.make("script", source.textContent));
};

floorkit.drawPlot = (figure) => {
  if (figure.dataset.drawn) return;
  floorkit.loadPlotly();
  figure.dataset.drawn = "yes";
  const plot = floorkit.data(figure.id);
  const axis = (title) => ({
    title: { text: floorkit.escapePlotly(title) },
    automargin: true,
    gridcolor: "rgba(128,128,128,0.3)",
    zerolinecolor: "rgba(128,128,128,0.5)",
  });
  const names = plot.series.some((series) => series.x.some((x) => typeof x === "string"));
  const layout = {
    xaxis: { ...axis(plot.x), type: names ? "category" : undefined },
    yaxis: axis(plot.y),
    barmode: plot.kind === "histogram" ? "overlay" : "group",
    bargap: plot.kind === "histogram" ? 0.02 : 0.2,
    hovermode: "closest",
    hoverlabel: { font: { color: "#ffffff" } },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "inherit", color: "#777777", size: 13 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    margin: { l: 60, r: 15, t: 25, b: 50 },
    height: 400,
    showlegend: true,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: "#808080", activecolor: "#2b7fc4" },
  };
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
  const drawing = figure.querySelector(".drawing");
  Plotly.newPlot(drawing, floorkit.plotTraces(plot), layout, config);
  // Its label and the table of its data speak for the drawing; the loose texts in it do not.
  for (const picture of drawing.querySelectorAll(".main-svg")) picture.setAttribute("aria-hidden", "true");
};

floorkit.plotTable = (figure) => {
  const details = figure.querySelector("details.data");
  if (details.querySelector("table")) return;
  const plot = floorkit.data(figure.id);
  const table = floorkit.make("table", undefined, { class: "sortable" });
  const head = table.createTHead().insertRow();
  for (const heading of ["series", plot.x, plot.y, "low", "high", "remark"]) {
    head.append(floorkit.make("th", heading, { scope: "col" }));
  }
  const body = table.createTBody();
  for (const series of plot.series) {
    series.x.forEach((x, index) => {
      const remark = [series.texts[index], series.marked.includes(index) ? "chosen operating point" : ""];
      const values = [x, series.y[index], series.low[index], series.high[index]];
      const row = body.insertRow();
      row.append(floorkit.make("th", series.name, { scope: "row" }));
      for (const value of values) row.append(floorkit.make("td", value == null ? "–" : floorkit.plotNumber(value)));
      row.append(floorkit.make("td", remark.filter(Boolean).join("; ")));
    });
  }
  const region = floorkit.make("div", undefined, { class: "scroll", tabindex: "0", role: "group" });
  region.setAttribute("aria-label", `Data of ${figure.querySelector("h3").textContent}`);
  region.append(table);
  details.append(region);
  floorkit.sortable(table);
};

floorkit.plots = (figures) => {
  const near = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => floorkit.drawPlot(entry.target)),
    { rootMargin: "600px" },
  );
  for (const figure of figures) {
    near.observe(figure);
    figure.querySelector("details.data").addEventListener("toggle", () => floorkit.plotTable(figure));
  }
  addEventListener("beforeprint", () => figures.forEach(floorkit.drawPlot));
};
