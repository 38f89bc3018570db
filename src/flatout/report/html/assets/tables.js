// Tables: sort by a column, search in the rows, show the first rows until expanded.
function prepareTable(box) {
  const table = one("table", box);
  const body = one("tbody", table);
  const atOnce = Number(box.dataset.atOnce);
  const rows = [...body.rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const search = one(".find", box);
  let whole = rows.length <= atOnce + 5;
  const more = element("button", { type: "button", class: "more" });
  if (!whole) box.append(more);

  function show() {
    const wanted = search ? search.value.trim().toLowerCase() : "";
    let shown = 0;
    for (const row of body.rows) {
      const fits = !wanted || texts.get(row).includes(wanted);
      row.hidden = !fits || (!whole && !wanted && shown >= atOnce);
      shown += fits ? 1 : 0;
    }
    more.hidden = Boolean(wanted);
    more.textContent = whole ? `Show the first ${atOnce}` : `Show all ${rows.length.toLocaleString("en")}`;
  }
  more.addEventListener("click", () => {
    whole = !whole;
    show();
  });
  search?.addEventListener("input", show);
  all("thead th", table).forEach((head, column) => sortable(head, column, body, show));
  show();
}

function sortable(head, column, body, show) {
  if (!head.textContent.trim()) return; // a column of boxes to tick: nothing to sort by, and no name for a button
  const button = element("button", { type: "button" }, head.textContent);
  head.replaceChildren(button);
  const keyOf = (row) => {
    const cell = row.cells[column];
    const by = cell.dataset.by;
    return by !== undefined && by !== "" && !Number.isNaN(Number(by)) ? Number(by) : cell.textContent.toLowerCase();
  };
  button.addEventListener("click", () => {
    const number = head.classList.contains("number");
    const now = head.getAttribute("aria-sort");
    const falling = now ? now === "ascending" : number;
    all("th", head.parentElement).forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const keyed = [...body.rows].map((row) => [keyOf(row), row]);
    keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (falling ? -1 : 1));
    body.append(...keyed.map(([, row]) => row));
    show();
  });
}
all(".table").forEach(prepareTable);
