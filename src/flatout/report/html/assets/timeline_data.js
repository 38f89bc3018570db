// The events as typed arrays, and as rows: the events of one lane at one depth, in order, never overlapping.
// Running totals per row give the coverage of any range without visiting its events.
class Events {
  constructor(head, bytes) {
    const count = head.count;
    const column = (at) => new Uint32Array(bytes, 4 * count * at, count);
    [this.start, this.length, this.name, this.detail] = [0, 1, 2, 3].map(column);
    this.depth = new Uint8Array(bytes, 16 * count, count);
    this.head = head;
    this.span = head.span;
    this.rows = [];
    this.lanes = [];
    let first = 0;
    for (const lane of head.lanes) {
      this.lanes.push({ ...lane, firstRow: this.rows.length });
      this.rows.push(...this.#rowsOf(first, lane.count, lane.rows));
      first += lane.count;
    }
  }

  #rowsOf(first, count, rows) {
    const sizes = new Uint32Array(rows);
    for (let at = first; at < first + count; at++) sizes[this.depth[at]]++;
    const made = [...sizes].map((size) => ({
      events: new Uint32Array(size), start: new Uint32Array(size), total: new Float64Array(size + 1), hits: null, size: 0,
    }));
    for (let at = first; at < first + count; at++) {
      const row = made[this.depth[at]];
      row.total[row.size + 1] = row.total[row.size] + this.length[at];
      row.start[row.size] = this.start[at];
      row.events[row.size++] = at;
    }
    return made;
  }

  ms(units) {
    return (units * this.head.unit_ns) / 1e6;
  }

  // The first index in a row, from `low` on, whose event starts at or after a time. It is usually near, so
  // the search steps begin small and double.
  seek(row, time, low = 0) {
    const { start, size } = row;
    let high = low;
    for (let step = 1; high < size && start[high] < time; step *= 2) {
      low = high + 1;
      high += step;
    }
    high = Math.min(high, size);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The event of a row at a time, or one within `slack` of it.
  at(row, time, slack) {
    const next = this.seek(row, time);
    for (const place of [next - 1, next]) {
      if (place < 0 || place >= row.size) continue;
      const event = row.events[place];
      if (time >= this.start[event] - slack && time <= this.start[event] + this.length[event] + slack) return event;
    }
    return -1;
  }

  // The names that contain a text, and per row the running count of events with such a name.
  find(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) {
      for (const row of this.rows) row.hits = null;
      this.matching = null;
      return null;
    }
    const names = this.head.names.map((name) => name.toLowerCase().includes(wanted));
    const details = this.head.details.map((name) => name.toLowerCase().includes(wanted));
    this.matching = (event) => names[this.name[event]] || details[this.detail[event]];
    const found = { count: 0, length: 0 };
    for (const row of this.rows) {
      row.hits = new Uint32Array(row.size + 1);
      for (let at = 0; at < row.size; at++) {
        const hit = this.matching(row.events[at]) ? 1 : 0;
        row.hits[at + 1] = row.hits[at] + hit;
        found.count += hit;
        found.length += hit * this.length[row.events[at]];
      }
    }
    return found;
  }

  laneOf(event) {
    let first = 0;
    for (const lane of this.lanes) {
      if (event < first + lane.count) return lane;
      first += lane.count;
    }
    return null;
  }
}
