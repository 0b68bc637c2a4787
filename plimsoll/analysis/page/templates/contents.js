"use strict";
// The table of contents: of the headings that are on the page, beside it where there is room. It follows the reader.
(() => {
  const FEWEST = 5; // a shorter page is seen at a glance
  const isFolded = (head) => head.closest("details") !== null;
  const isTitle = (head) => {
    const summary = head.closest("summary");
    return summary !== null && !isFolded(summary.parentElement.parentElement);
  };
  const heads = [...document.querySelectorAll("main h2")].filter((head) => !isFolded(head) || isTitle(head));
  if (heads.length < FEWEST) {
    return;
  }

  const nav = document.createElement("nav");
  nav.className = "contents";
  nav.setAttribute("aria-label", "Contents");
  const folded = document.createElement("details");
  const summary = document.createElement("summary");
  const here = document.createElement("span");
  const list = document.createElement("ol");
  summary.append("Contents", here);
  folded.append(summary, list);
  nav.append(folded);
  const links = heads.map((head, number) => {
    head.id ||= `part-${number + 1}`;
    const link = document.createElement("a");
    link.href = `#${head.id}`;
    link.textContent = head.textContent.trim();
    link.addEventListener("click", () => {
      const part = head.closest("summary")?.parentElement;
      if (part) {
        part.open = true;
      }
      folded.open = beside.matches;
    });
    const item = document.createElement("li");
    item.className = head.classList.contains("group") ? "group" : "";
    item.append(link);
    list.append(item);
    return link;
  });

  const beside = matchMedia("(min-width: 1480px)");
  const place = () => {
    folded.open = beside.matches;
  };
  beside.addEventListener("change", place);
  place();

  const NEAR_PX = 120;
  function follow() {
    const at = heads.findLastIndex((head) => head.getBoundingClientRect().top < NEAR_PX);
    links.forEach((link, number) => {
      if (number === at) {
        link.setAttribute("aria-current", "true");
      } else {
        link.removeAttribute("aria-current");
      }
    });
    here.textContent = at < 0 ? "" : links[at].textContent;
  }
  let due = false;
  document.addEventListener(
    "scroll",
    () => {
      if (!due) {
        due = true;
        requestAnimationFrame(() => {
          due = false;
          follow();
        });
      }
    },
    { passive: true },
  );
  document.querySelector("main").before(nav);
  document.body.classList.add("has-contents");
  follow();
})();
