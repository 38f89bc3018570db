// The flame graph: a box per frame, as wide as its share; callers above, callees below.
const FRAME = 20;

class FlameView {
  constructor(box) {
    const { unit, root } = valuesOf(box);
    this.box = box;
    this.unit = unit;
    this.frames = one(".frames", box);
    this.canvas = one("canvas", this.frames);
    this.tip = one(".tip", box);
    this.nodes = [];
    this.place(root, null, 0, 0);
    this.root = this.nodes[0];
    this.focus = this.current = this.root;
    this.depth = Math.max(...this.nodes.map((node) => node.depth)) + 1;
    this.wanted = "";
    this.listen();
    repainted.push(() => this.request());
    drawnAtOnce.push(() => this.draw());
    new ResizeObserver(() => this.request()).observe(this.frames);
  }

  place(given, parent, from, depth) {
    const node = { name: given.name, value: given.value, parent, depth, from, to: from + given.value, children: [] };
    this.nodes.push(node);
    let at = from;
    for (const child of given.children || []) {
      node.children.push(this.place(child, node, at, depth + 1));
      at += child.value;
    }
    return node;
  }

  request() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.draw();
    });
  }

  spanOf(node) {
    const { focus } = this;
    const above = this.isAbove(node);
    const scale = this.width / (focus.to - focus.from);
    return above ? [0, this.width] : [(node.from - focus.from) * scale, (node.to - focus.from) * scale];
  }

  isAbove(node) {
    for (let at = this.focus.parent; at; at = at.parent) if (at === node) return true;
    return false;
  }

  draw() {
    this.width = this.frames.clientWidth;
    if (this.width < 2) return;
    const context = sharpen(this.canvas, this.width, this.depth * FRAME);
    const [text, page, accent] = [colour("text"), colour("panel"), colour("accent")];
    context.clearRect(0, 0, this.width, this.depth * FRAME);
    context.font = FONT;
    context.textBaseline = "middle";
    for (const node of this.nodes) {
      const [from, to] = this.spanOf(node);
      if (to <= 0 || from >= this.width || to - from < 0.4) continue;
      const [left, right] = [Math.max(0, from), Math.min(this.width, to)];
      const hit = !this.wanted || node.name.toLowerCase().includes(this.wanted);
      context.globalAlpha = (hit ? 1 : 0.25) * (this.isAbove(node) ? 0.6 : 1);
      context.fillStyle = this.wanted && hit ? accent : fillOf(node.name);
      context.fillRect(left, node.depth * FRAME, Math.max(0.5, right - left - 0.75), FRAME - 1);
      if (node === this.current) {
        context.strokeStyle = text;
        context.lineWidth = 2;
        context.strokeRect(left + 1, node.depth * FRAME + 1, Math.max(1, right - left - 2.5), FRAME - 3);
      }
      context.fillStyle = this.wanted && hit ? page : text;
      if (right - left > 24) context.fillText(fitted(node.name, right - left), left + 4, node.depth * FRAME + FRAME / 2);
    }
    context.globalAlpha = 1;
    this.box.dataset.state = "drawn";
  }

  says(node) {
    const amount = this.unit === "ms" ? duration(node.value) : counted(node.value, "sample");
    return `${amount} · ${percent(node.value / this.root.value)} of all`;
  }

  choose(node, enter) {
    this.current = node;
    if (enter) this.focus = node;
    one(".selected", this.box).replaceChildren(element("b", {}, node.name), ` ${this.says(node)}`);
    this.request();
  }

  nodeAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, depth] = [event.clientX - box.left, Math.floor((event.clientY - box.top) / FRAME)];
    return this.nodes.find((node) => {
      if (node.depth !== depth) return false;
      const [from, to] = this.spanOf(node);
      return x >= from && x < to;
    });
  }

  search(text) {
    this.wanted = text.trim().toLowerCase();
    let covered = 0;
    const count = (node) => {
      if (node.name.toLowerCase().includes(this.wanted)) covered += node.value;
      else node.children.forEach(count);
    };
    if (this.wanted) count(this.root);
    one(".found", this.box).textContent = this.wanted ? `${percent(covered / this.root.value)} of all` : "";
    this.request();
  }

  listen() {
    const field = one(".find", this.box);
    field.addEventListener("input", () => this.search(field.value));
    one('[data-do="all"]', this.box).addEventListener("click", () => this.choose(this.root, true));
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event);
      if (node) this.choose(node, true);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const node = this.nodeAt(event);
      if (node) showTip(this.tip, event, [node.name, this.says(node)]);
      else this.tip.hidden = true;
    });
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.frames.addEventListener("keydown", (event) => {
      const { current } = this;
      const kin = current.parent ? current.parent.children : [current];
      const next = {
        ArrowUp: current.parent, ArrowDown: current.children[0], ArrowLeft: kin[kin.indexOf(current) - 1],
        ArrowRight: kin[kin.indexOf(current) + 1], Home: this.root, Enter: current,
      };
      if (!(event.key in next)) return;
      event.preventDefault();
      if (next[event.key]) this.choose(next[event.key], event.key === "Home" || event.key === "Enter");
    });
  }
}

all(".flame").forEach((box) => whenNear(box, () => new FlameView(box)));
