"use strict";
// Names for what the theme leaves without one, and the keyboard for what only a mouse could scroll.

const settle = () => {
  document.querySelectorAll(".md-code__nav").forEach((nav, at) => {
    nav.setAttribute("aria-label", `Code block ${at + 1}`);
  });
  const names = new Map();
  for (const nav of document.querySelectorAll("nav.md-nav[aria-label]")) {
    const name = nav.getAttribute("aria-label");
    const seen = (names.get(name.toLowerCase()) ?? 0) + 1;  // a listener tells no case
    names.set(name.toLowerCase(), seen);
    if (seen > 1) nav.setAttribute("aria-label", `${name} (${seen})`);
  }
  for (const corner of document.querySelectorAll(".md-typeset thead th:empty")) {
    const cell = document.createElement("td");
    cell.style.cssText = corner.style.cssText;
    corner.replaceWith(cell);
  }
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
};

addEventListener("load", () => setTimeout(settle, 0));
addEventListener("resize", settle);
