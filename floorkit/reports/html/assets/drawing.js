// Drawing one event of a timeline on its canvas.

floorkit.sizes = { gutter: 205, right: 12, axis: 24, tags: 34, lane: 24, path: 76, gap: 5 };

floorkit.timelineArea = (canvas) => {
  const { gutter, right } = floorkit.sizes;
  const left = Math.min(gutter, canvas.clientWidth * 0.3);
  return { left, width: Math.max(1, canvas.clientWidth - left - right) };
};

floorkit.lanePlaces = (event) => {
  // Top and height of every lane, in the order of the lanes.
  const { axis, tags, lane, path, gap } = floorkit.sizes;
  let top = axis + tags;
  return event.lanes.map((one) => {
    const height = one.path.length ? path : lane;
    const place = { top, height };
    top += height + gap;
    return place;
  });
};

floorkit.laneAt = (event, y) => {
  const places = floorkit.lanePlaces(event);
  return event.lanes[places.findIndex(({ top, height }) => y >= top && y < top + height)];
};

floorkit.nearestSample = (path, time) =>
  path.reduce((best, one) => (!best || Math.abs(one[0] - time) < Math.abs(best[0] - time) ? one : best), null);

floorkit.timelineColours = (figure) => {
  const colours = {};
  for (const key of figure.querySelectorAll(".legend [data-role]")) colours[key.dataset.role] = getComputedStyle(key).color;
  colours.ink = getComputedStyle(figure).color;
  colours.quiet = getComputedStyle(figure.querySelector(".signature")).color;
  colours.rule = getComputedStyle(figure.querySelector("canvas")).borderTopColor;
  return colours;
};

floorkit.drawTimeline = ({ figure, canvas, event, view, pointer }) => {
  const scale = devicePixelRatio || 1;
  const places = event ? floorkit.lanePlaces(event) : [];
  const last = places.at(-1);
  const height = last ? last.top + last.height + 8 : 60;
  const width = canvas.clientWidth;
  canvas.style.height = `${height + 2}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const colours = floorkit.timelineColours(figure);
  pen.font = `12px ${getComputedStyle(figure).fontFamily}`;
  if (!event) {
    pen.fillStyle = colours.quiet;
    pen.fillText("No event fits the filters.", 12, 34);
    return;
  }
  const { left, width: inner } = floorkit.timelineArea(canvas);
  const x = (time) => left + ((time - view[0]) / (view[1] - view[0])) * inner;
  const area = { pen, x, left, right: left + inner, height, view, colours };

  floorkit.drawAxis(area);
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, inner, height);
  pen.clip();
  if (event.window) {
    pen.globalAlpha = 0.18;
    pen.fillStyle = colours.window;
    pen.fillRect(x(event.window[0]), floorkit.sizes.axis, Math.max(2, x(event.window[1]) - x(event.window[0])), height);
    pen.globalAlpha = 1;
  }
  event.lanes.forEach((lane, index) => {
    if (lane.path.length) floorkit.drawPath(area, lane, places[index], event.threshold);
    floorkit.drawIntervals(area, lane, places[index]);
  });
  floorkit.drawMarks(area, event);
  if (pointer !== null) floorkit.drawLine(area, pointer, colours.quiet, [1, 3], 1);
  pen.restore();
  event.lanes.forEach((lane, index) => floorkit.drawLaneName(area, lane, places[index]));
};

floorkit.drawAxis = ({ pen, x, right, left, height, view, colours }) => {
  const target = (view[1] - view[0]) / Math.max(2, (right - left) / 90);
  const power = 10 ** Math.floor(Math.log10(target));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= target);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let tick = Math.ceil(view[0] / step); tick * step <= view[1]; tick++) {
    const place = x(tick * step);
    pen.fillStyle = colours.quiet;
    pen.fillText(`${(tick * step).toFixed(decimals)} s`, place, floorkit.sizes.axis / 2);
    pen.fillStyle = colours.rule;
    pen.fillRect(Math.round(place), floorkit.sizes.axis, 1, height);
  }
};

floorkit.drawLaneName = ({ pen, left, colours }, lane, { top, height }) => {
  pen.fillStyle = colours.ink;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  let name = lane.name;
  const room = left - 30;
  while (name.length > 1 && pen.measureText(name).width > room) name = `${name.slice(0, -2)}…`;
  pen.fillText(name, 8, top + height / 2);
};

floorkit.drawIntervals = ({ pen, x, left, right, colours }, lane, { top, height }) => {
  const colour = colours[lane.role];
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillStyle = colours.rule;
  if (!lane.path.length) pen.fillRect(left, top + height, right - left, 1);
  for (const [start, stop, text] of lane.intervals) {
    const from = Math.max(x(start), left - 5);
    const to = Math.min(x(stop), right + 5);
    if (to < left || from > right) continue;
    const size = Math.max(stop > start ? 1 : 3, to - from);
    pen.globalAlpha = lane.role === "window" ? 0.45 : 0.85;
    pen.fillStyle = colour;
    pen.fillRect(from, top, size, height);
    pen.globalAlpha = 1;
    if (lane.role === "excluded") floorkit.hatch(pen, from, top, size, height, colours.quiet);
    if (size > 3) {
      pen.strokeStyle = colour;
      pen.lineWidth = 1;
      pen.strokeRect(from + 0.5, top + 0.5, size - 1, height - 1);
    }
    if (text && pen.measureText(text).width < size - 8) floorkit.drawPlate(pen, text, Math.max(from, left) + 4, top + height / 2, colours);
  }
};

floorkit.hatch = (pen, left, top, width, height, colour) => {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = left - height; at < left + width; at += 7) {
    pen.moveTo(at, top + height);
    pen.lineTo(at + height, top);
  }
  pen.stroke();
  pen.restore();
};

floorkit.drawPlate = (pen, text, x, y, colours) => {
  // Text on a plate in the page's own colours, so that it is readable on any fill.
  const width = pen.measureText(text).width;
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.globalAlpha = 0.82;
  pen.fillRect(x - 2, y - 8, width + 4, 16);
  pen.globalAlpha = 1;
  pen.fillStyle = colours.ink;
  pen.fillText(text, x, y + 0.5);
};

floorkit.drawPath = ({ pen, x, left, right, colours }, lane, { top, height }, threshold) => {
  const values = lane.path.map(([, value]) => value).filter((value) => value !== null);
  const inUnit = values.every((value) => value >= 0 && value <= 1);
  const low = inUnit ? 0 : Math.min(...values);
  const high = inUnit ? 1 : Math.max(...values);
  const y = (value) => top + height - 4 - ((value - low) / (high - low || 1)) * (height - 8);
  pen.strokeStyle = colours.rule;
  pen.lineWidth = 1;
  pen.strokeRect(left + 0.5, top + 0.5, right - left - 1, height - 1);
  const show = (value) => {
    floorkit.drawPlate(pen, String(Number(value.toPrecision(3))), left + 5, y(value) + (value === high ? 6 : -6), colours);
  };
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.strokeStyle = pen.fillStyle = colours[lane.role];
  pen.lineWidth = 2;
  pen.beginPath();
  let open = false;
  for (const [time, value] of lane.path) {
    if (value === null) open = false;
    else {
      if (open) pen.lineTo(x(time), y(value));
      else pen.moveTo(x(time), y(value));
      open = true;
    }
  }
  pen.stroke();
  const apart = lane.path.length > 1 ? (x(lane.path.at(-1)[0]) - x(lane.path[0][0])) / (lane.path.length - 1) : 20;
  if (apart > 6) {
    for (const [time, value] of lane.path) if (value !== null) pen.fillRect(x(time) - 2.5, y(value) - 2.5, 5, 5);
  }
  if (lane.role === "score" && threshold !== null && threshold >= low && threshold <= high) {
    pen.setLineDash([6, 4]);
    pen.lineWidth = 1.5;
    pen.strokeStyle = colours.ink;
    pen.beginPath();
    pen.moveTo(left, y(threshold));
    pen.lineTo(right, y(threshold));
    pen.stroke();
    pen.setLineDash([]);
    const words = `threshold ${Number(threshold.toPrecision(4))}`;
    floorkit.drawPlate(pen, words, right - pen.measureText(words).width - 8, y(threshold) - 9, colours);
  }
  if (values.length) [low, high].forEach(show);
};

floorkit.drawLine = ({ pen, x, height }, time, colour, dash, width) => {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x(time), floorkit.sizes.axis);
  pen.lineTo(x(time), height);
  pen.stroke();
  pen.setLineDash([]);
};

floorkit.drawMarks = (area, event) => {
  const { pen, x, left, right, colours } = area;
  const marks = [
    ["anchor", event.anchor, colours.anchor, [], 2],
    ["competing", event.competing, colours.competing, [7, 4], 2],
    ["outcome", event.end, colours.outcome, [2, 3], 2.5],
  ].filter(([, time]) => time !== null && x(time) >= left && x(time) <= right);
  const taken = [-Infinity, -Infinity];
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const [name, time, colour, dash, width] of marks.sort((one, other) => one[1] - other[1])) {
    floorkit.drawLine(area, time, colour, dash, width);
    const size = pen.measureText(name).width;
    const place = Math.min(x(time) + 4, right - size - 4);
    const row = taken[0] <= place ? 0 : 1;
    taken[row] = place + size + 6;
    floorkit.drawPlate(pen, name, place, floorkit.sizes.axis + 9 + 16 * row, { ...colours, ink: colour });
  }
};
