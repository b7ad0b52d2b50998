// Sorts tables by a click on a heading, and filters the rows of long ones. Without it all is shown.
for (const table of document.querySelectorAll("table.sorted")) {
  const body = table.tBodies[0], ranks = ["●", "◐", "○"];
  const keyOf = (row, i) => {
    const text = row.cells[i].textContent.trim(), number = text.replace(/[±%,]/g, "");
    if (ranks.includes(text[0])) return ranks.indexOf(text[0]);
    return number !== "" && isFinite(number) ? Number(number) : text;
  };
  [...table.tHead.rows[0].cells].forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.ariaSort === "descending" ? 1 : -1;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const keyed = [...body.rows].map((row) => [keyOf(row, i), row]);
      keyed.sort(([a], [b]) => {
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
        return sign * (typeof a === "number" ? a - b : a.localeCompare(b));
      });
      body.append(...keyed.map(([, row]) => row));
    });
  });
  if (body.rows.length < 10) continue;
  const label = document.createElement("label"), input = document.createElement("input");
  input.type = "search";
  label.className = "filter";
  label.append(`Of ${body.rows.length} rows show those with `, input);
  input.addEventListener("input", () => {
    const asked = input.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(asked);
  });
  table.parentElement.before(label);
}
