"use strict";
(() => {
  const form = document.getElementById("picking");
  if (form === null) {
    return;
  }
  const said = document.getElementById("picked");
  const boxes = [...form.querySelectorAll("input[name=run]")];
  form.addEventListener("change", () => {
    const count = boxes.filter((box) => box.checked).length;
    said.textContent = count === 0 ? "" : count === 2 ? "Two picked." : `${count} picked: pick two.`;
  });
  form.addEventListener("submit", (event) => {
    const count = boxes.filter((box) => box.checked).length;
    if (count !== 2) {
      event.preventDefault();
      said.textContent = `${count} picked: it takes two.`;
    }
  });
})();
