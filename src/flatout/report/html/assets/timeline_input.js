// Input for the timeline: pointer, wheel, keys, buttons, search.
class TimelineInput {
  constructor(timeline) {
    this.timeline = timeline;
    this.pointers = new Map();
    this.moved = 0;
    this.actions = {
      in: () => timeline.zoom(0.5),
      out: () => timeline.zoom(2),
      left: () => timeline.move(-0.25),
      right: () => timeline.move(0.25),
      all: () => timeline.show(0, timeline.events.span),
    };
    this.keys = {
      ArrowLeft: this.actions.left,
      ArrowRight: this.actions.right,
      ArrowUp: () => (timeline.lanes.scrollTop -= 48),
      ArrowDown: () => (timeline.lanes.scrollTop += 48),
      "+": this.actions.in,
      "=": this.actions.in,
      "-": this.actions.out,
      Home: this.actions.all,
      n: () => timeline.step(1),
      p: () => timeline.step(-1),
      Escape: () => timeline.select(-1),
    };
    this.listenToTools();
    this.listenToCanvas();
    this.listenToOverview();
  }

  listenToTools() {
    const { timeline } = this;
    const field = one(".find", timeline.box);
    field.addEventListener("input", () => timeline.search(field.value));
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      timeline.step(event.shiftKey ? -1 : 1);
    });
    all("[data-do]", timeline.box).forEach((button) => button.addEventListener("click", this.actions[button.dataset.do]));
    timeline.lanes.addEventListener("scroll", () => timeline.request(), { passive: true });
    timeline.lanes.addEventListener("keydown", (event) => {
      if (!this.keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.keys[event.key]();
    });
  }

  listenToCanvas() {
    const { timeline } = this;
    const { canvas, events } = timeline;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      const at = timeline.eventAt(event);
      if (at < 0) return;
      const [start, length] = [events.start[at], events.length[at]];
      timeline.show(start - length * 0.1, start + length * 1.1);
    });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => (timeline.tip.hidden = true));
  }

  listenToOverview() {
    const { timeline } = this;
    const { overview, events, view } = timeline;
    const jump = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const share = (event.clientX - overview.getBoundingClientRect().left) / view.width;
      const half = (view.to - view.from) / 2;
      timeline.show(share * events.span - half, share * events.span + half);
    };
    for (const kind of ["pointerdown", "pointermove"]) overview.addEventListener(kind, jump);
  }

  wheel(event) {
    const { timeline } = this;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      const x = event.clientX - timeline.canvas.getBoundingClientRect().left;
      timeline.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), timeline.timeAt(x));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      timeline.move(sideways / timeline.view.width);
    } else {
      return; // the page scrolls
    }
    event.preventDefault();
  }

  press(event) {
    const { canvas } = this.timeline;
    canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event);
    this.moved = 0;
    canvas.classList.add("held");
  }

  drag(event) {
    const { timeline } = this;
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.hover(event);
      return;
    }
    timeline.tip.hidden = true;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    this.moved += Math.abs(dx) + Math.abs(dy);
    const other = [...this.pointers.values()].find((pointer) => pointer.pointerId !== event.pointerId);
    if (other) {
      const factor = Math.abs(before.clientX - other.clientX) / Math.max(8, Math.abs(event.clientX - other.clientX));
      timeline.zoom(factor, timeline.timeAt(other.clientX - timeline.canvas.getBoundingClientRect().left));
    } else {
      timeline.move(-dx / timeline.view.width);
      if (event.pointerType !== "touch") timeline.lanes.scrollTop -= dy;
    }
    this.pointers.set(event.pointerId, event);
  }

  hover(event) {
    const { timeline } = this;
    const at = event.pointerType === "touch" ? -1 : timeline.eventAt(event);
    if (at < 0) timeline.tip.hidden = true;
    else showTip(timeline.tip, event, timeline.lines(at));
  }

  release(event) {
    const { timeline } = this;
    const alone = this.pointers.size === 1;
    this.pointers.delete(event.pointerId);
    timeline.canvas.classList.remove("held");
    if (alone && this.moved < 5 && event.type === "pointerup") timeline.select(timeline.eventAt(event));
  }
}
