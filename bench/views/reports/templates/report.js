"use strict";
// A click on a heading sorts its table by that column, a second one the other way round. What has no value
// stands last either way.
document.querySelectorAll("table.sorts").forEach(function (table) {
  table.querySelectorAll("thead th").forEach(function (head, column) {
    head.querySelector("button").addEventListener("click", function () {
      var down = head.getAttribute("aria-sort") === "ascending";
      var body = table.tBodies[0];
      var value = function (row) {
        var cell = row.cells[column];
        if (cell.dataset.v !== undefined) { return parseFloat(cell.dataset.v); }
        return cell.textContent.trim();
      };
      var order = function (one, other) {
        var a = value(one), b = value(other);
        if (a === "" || b === "") { return (a === "") - (b === ""); }
        var less = typeof a === "number" && typeof b === "number"
          ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
        return down ? -less : less;
      };
      Array.from(body.rows).sort(order).forEach(function (row) { body.appendChild(row); });
      table.querySelectorAll("thead th").forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
});
