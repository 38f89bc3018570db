// Drawing the timeline. Its cost depends on the pixels, not on the number of events: events that fall
// into one column of pixels are one rectangle, the paler the less of the column they cover.
const ROW = 16;
const TITLE = 18;
const AXIS = 24;
const GAP = 8;

// The vertical position of each lane and row.
function arrange(events) {
  let y = AXIS + 4;
  const rows = [];
  for (const lane of events.lanes) {
    lane.top = y;
    y += TITLE;
    for (let at = 0; at < lane.rows; at++, y += ROW) rows.push({ y, row: events.rows[lane.firstRow + at] });
    lane.bottom = y;
    y += GAP;
  }
  return { rows, height: y };
}

function drawTimeline(context, view, events, layout, paints) {
  const { width, height, from, to, scroll } = view;
  const scale = width / (to - from);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  drawGrid(context, view, events, scale, paints);
  for (const { y, row } of layout.rows) {
    const top = y - scroll;
    if (top > height || top + ROW < AXIS) continue;
    drawRow(context, row, top, view, events, scale, paints);
  }
  for (const lane of events.lanes) {
    const top = lane.top - scroll;
    if (top > height || lane.bottom - scroll < AXIS) continue;
    const pinned = Math.min(Math.max(top, AXIS), lane.bottom - scroll - TITLE);
    context.globalAlpha = 0.92;
    context.fillStyle = paints.panel;
    const text = `${lane.title}  ${lane.count.toLocaleString("en")}`;
    context.fillRect(0, pinned, Math.min(width, 14 + text.length * LETTER), TITLE);
    context.globalAlpha = 1;
    context.fillStyle = paints.muted;
    context.fillText(fitted(text, width), 6, pinned + TITLE / 2);
  }
  drawAxis(context, view, events, scale, paints);
}

function drawRow(context, row, top, view, events, scale, paints) {
  const { from, to, width, selected } = view;
  let at = Math.max(0, events.seek(row, from) - 1);
  while (at < row.size) {
    const event = row.events[at];
    const start = row.start[at];
    if (start >= to) break;
    const x = (start - from) * scale;
    const wide = events.length[event] * scale;
    let next = at + 1;
    if (wide < 1) {
      next = Math.max(next, events.seek(row, from + (Math.floor(x) + 1) / scale, next));
      if (next - at > 1 && events.length[row.events[next - 1]] * scale >= 1) next--;
      const covered = (row.total[next] - row.total[at]) * scale;
      const hit = !row.hits || row.hits[next] > row.hits[at];
      context.globalAlpha = (0.3 + 0.7 * Math.min(1, covered)) * (hit ? 1 : 0.2);
      context.fillStyle = row.hits && hit ? paints.accent : paints.names[events.name[event]];
      context.fillRect(Math.floor(x), top, 1, ROW - 1);
    } else {
      const left = Math.max(x, 0);
      const shown = Math.min(x + wide, width) - left;
      if (shown > 0) {
        const hit = !row.hits || row.hits[next] > row.hits[at];
        context.globalAlpha = hit ? 1 : 0.2;
        context.fillStyle = paints.names[events.name[event]];
        context.fillRect(left, top, Math.max(0.75, shown - (shown > 3 ? 0.5 : 0)), ROW - 1);
        if (event === selected || (row.hits && hit)) {
          context.strokeStyle = event === selected ? paints.text : paints.accent;
          context.lineWidth = 2;
          context.strokeRect(left + 1, top + 1, Math.max(1, shown - 2), ROW - 3);
        }
        if (shown > 26) {
          context.fillStyle = paints.text;
          context.fillText(fitted(events.head.names[events.name[event]], shown), left + 3, top + ROW / 2);
        }
      }
    }
    at = next;
  }
  context.globalAlpha = 1;
}

function drawGrid(context, view, events, scale, paints) {
  const steps = events.head.steps;
  context.fillStyle = paints.line;
  let last = -20;
  for (const step of steps) {
    const x = (step - view.from) * scale;
    if (x < 0 || x > view.width || x - last < 6) continue;
    context.fillRect(Math.round(x), AXIS, 1, view.height);
    last = x;
  }
}

function drawAxis(context, view, events, scale, paints) {
  const { width, from, to } = view;
  context.fillStyle = paints.panel;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = paints.line;
  context.fillRect(0, AXIS - 1, width, 1);
  const span = events.ms(to - from);
  const rough = span / Math.max(2, Math.floor(width / 110));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= rough);
  context.fillStyle = paints.muted;
  for (let tick = Math.ceil(events.ms(from) / step) * step; tick <= events.ms(to); tick += step) {
    const x = ((tick - events.ms(from)) / span) * width;
    context.fillRect(Math.round(x), AXIS - 6, 1, 5);
    context.fillText(duration(Math.abs(tick) < step / 1e6 ? 0 : tick), Math.min(x + 3, width - 52), AXIS / 2 - 1);
  }
}

// The overview of the whole window: the load at each moment.
function drawLoad(context, width, height, events, paints) {
  context.clearRect(0, 0, width, height);
  const outer = events.lanes.map((lane) => events.rows[lane.firstRow]);
  const per = events.span / width;
  const load = new Float64Array(Math.ceil(width));
  for (const row of outer) {
    let before = 0;
    for (let x = 0; x < load.length; x++) {
      const after = events.seek(row, (x + 1) * per, before);
      load[x] += Math.min(1, (row.total[after] - row.total[before]) / per);
      before = after;
    }
    spread(load, row, per, events);
  }
  const most = Math.max(1, ...load);
  context.fillStyle = paints.copy;
  context.globalAlpha = 0.65;
  load.forEach((value, x) => context.fillRect(x, height - (height - 4) * (value / most), 1, height));
  context.globalAlpha = 1;
}

// An event that is wider than a column also covers the following ones.
function spread(load, row, per, events) {
  for (let at = 0; at < row.size; at++) {
    const event = row.events[at];
    if (events.length[event] < 2 * per) continue;
    const first = Math.floor(events.start[event] / per) + 1;
    const last = Math.min(load.length - 1, Math.floor((events.start[event] + events.length[event]) / per));
    for (let x = first; x <= last; x++) load[x] += 1;
  }
}
