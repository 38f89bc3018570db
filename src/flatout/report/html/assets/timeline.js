// The timeline: which part of it is in view, what is selected, what is searched for.
class TimelineView {
  constructor(box, events) {
    this.box = box;
    this.events = events;
    this.lanes = one(".lanes", box);
    this.stage = one(".stage", box);
    this.canvas = one("canvas", this.stage);
    this.overview = one(".overview", box);
    this.tip = one(".tip", box);
    this.view = { from: 0, to: events.span, selected: -1, scroll: 0, width: 1, height: 1 };
    this.layout = arrange(events);
    this.stage.style.height = `${this.layout.height}px`;
    // Few threads need little height.
    this.lanes.style.height = `min(${this.layout.height + 4}px, 62vh, 560px)`;
    new TimelineInput(this);
    this.recolour();
    repainted.push(() => this.recolour());
    drawnAtOnce.push(() => this.draw());
    new ResizeObserver(() => this.resize()).observe(this.lanes);
  }

  recolour() {
    const role = (name) => colour(name);
    this.paints = {
      panel: role("panel"), muted: role("muted"), line: role("line"), text: role("text"), accent: role("accent"),
      accentSoft: role("accent-soft"), copy: role("copy"), names: this.events.head.names.map(fillOf),
    };
    this.overviewDrawn = null;
    this.request();
  }

  resize() {
    this.view.width = this.lanes.clientWidth;
    this.view.height = this.lanes.clientHeight;
    this.overviewDrawn = null;
    this.request();
  }

  request() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.draw();
    });
  }

  draw() {
    const { view, events } = this;
    if (view.width < 2) return;
    view.scroll = this.lanes.scrollTop;
    drawTimeline(sharpen(this.canvas, view.width, view.height), view, events, this.layout, this.paints);
    this.drawOverview();
    this.box.dataset.from = events.ms(view.from).toFixed(6);
    this.box.dataset.to = events.ms(view.to).toFixed(6);
    this.box.dataset.state = "drawn";
  }

  drawOverview() {
    const [width, height] = [this.lanes.clientWidth, 42]; // its own width is what was drawn last
    const context = sharpen(this.overview, width, height);
    // The load does not depend on the visible range: it is drawn once and then copied.
    if (!this.overviewDrawn) {
      drawLoad(context, width, height, this.events, this.paints);
      this.overviewDrawn = element("canvas");
      this.overviewDrawn.width = this.overview.width;
      this.overviewDrawn.height = this.overview.height;
      this.overviewDrawn.getContext("2d").drawImage(this.overview, 0, 0);
    }
    context.clearRect(0, 0, width, height);
    context.drawImage(this.overviewDrawn, 0, 0, width, height);
    const per = this.events.span / width;
    const [left, right] = [this.view.from / per, this.view.to / per];
    context.fillStyle = this.paints.accentSoft;
    context.fillRect(left, 0, Math.max(2, right - left), height);
    context.fillStyle = this.paints.accent;
    for (const x of [left, right]) context.fillRect(Math.min(width - 2, Math.max(0, x - 1)), 0, 2, height);
  }

  // Show from one time to another, within the window and no closer than some nanoseconds.
  show(from, to) {
    const least = Math.min(this.events.span, 20);
    const length = Math.min(this.events.span, Math.max(least, to - from));
    const begin = Math.min(Math.max(0, from), this.events.span - length);
    Object.assign(this.view, { from: begin, to: begin + length });
    this.request();
  }

  zoom(factor, centre = (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    this.show(centre - (centre - from) * factor, centre + (to - centre) * factor);
  }

  move(share) {
    const { from, to } = this.view;
    this.show(from + share * (to - from), to + share * (to - from));
  }

  timeAt(x) {
    const { from, to, width } = this.view;
    return from + (x / width) * (to - from);
  }

  eventAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top + this.lanes.scrollTop;
    const found = this.layout.rows.find((row) => y >= row.y && y < row.y + ROW);
    if (!found) return -1;
    const slack = (2 * (this.view.to - this.view.from)) / this.view.width;
    return this.events.at(found.row, this.timeAt(event.clientX - box.left), slack);
  }

  lines(at) {
    const { events } = this;
    const lane = events.laneOf(at);
    const [start, length] = [events.ms(events.start[at]), events.ms(events.length[at])];
    const detail = events.head.details[events.detail[at]];
    const name = events.head.names[events.name[at]];
    return [
      name, `${duration(length)}, from ${duration(start)}`, `${lane.title} · ${lane.group}`,
      ...(detail && detail !== name ? [detail] : []),
    ];
  }

  select(at, reveal = false) {
    this.view.selected = at;
    const output = one(".selected", this.box);
    if (at < 0) {
      output.textContent = "Select an event to see what it is.";
    } else {
      const [name, ...rest] = this.lines(at);
      output.replaceChildren(element("b", {}, name), ` ${rest.join(" · ")} · ${this.alike(at)}`);
      if (reveal) this.reveal(at);
    }
    this.request();
  }

  alike(at) {
    const { events } = this;
    let [count, length] = [0, 0];
    for (let other = 0; other < events.name.length; other++) {
      if (events.name[other] === events.name[at]) {
        count++;
        length += events.length[other];
      }
    }
    return `${counted(count, "event")} of this name, ${duration(events.ms(length))} together`;
  }

  reveal(at) {
    const { events, view } = this;
    const [start, length] = [events.start[at], events.length[at]];
    const pixels = (length * view.width) / (view.to - view.from);
    if (start < view.from || start + length > view.to || pixels < 3) {
      const span = Math.max(length * 6, Math.min(view.to - view.from, length * 200));
      this.show(start + length / 2 - span / 2, start + length / 2 + span / 2);
    }
    const lane = events.laneOf(at);
    const y = lane.top + TITLE + events.depth[at] * ROW;
    if (y < this.lanes.scrollTop + AXIS + TITLE || y + ROW > this.lanes.scrollTop + view.height) {
      this.lanes.scrollTop = y - view.height / 2;
    }
  }

  // The next event in time, or the next match of the search.
  step(direction) {
    const { events, view } = this;
    const wanted = events.matching || (() => true);
    const own = view.selected >= 0 ? events.laneOf(view.selected) : null;
    const key = (at) => events.start[at];
    const now = view.selected >= 0 ? key(view.selected) : direction > 0 ? view.from - 1 : view.to;
    let best = -1;
    let first = 0;
    for (const lane of events.lanes) {
      if (events.matching || !own || lane === own) {
        for (let at = first; at < first + lane.count; at++) {
          const ahead = direction * (key(at) - now) > 0 || (key(at) === now && direction * (at - view.selected) > 0);
          const nearer = best < 0 || direction * (key(best) - key(at)) > 0;
          if (ahead && nearer && wanted(at)) best = at;
        }
      }
      first += lane.count;
    }
    if (best >= 0) this.select(best, true);
  }

  search(text) {
    const found = this.events.find(text);
    one(".found", this.box).textContent = found
      ? `${counted(found.count, "event")}, ${duration(this.events.ms(found.length))}`
      : "";
    this.request();
  }
}

all(".timeline").forEach((box) =>
  whenNear(box, async () => {
    try {
      const bytes = await unpack(one('script[type^="application/gzip"]', box).textContent);
      new TimelineView(box, new Events(valuesOf(box), bytes));
    } catch (error) {
      box.dataset.state = "failed";
      one(".selected", box).textContent = `This browser cannot draw the timeline (${error.message}).`;
    }
  }),
);
