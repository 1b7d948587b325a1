// SPDX-License-Identifier: Apache-2.0
// Measures the page as it is laid out, and leaves the result as JSON in the document.
"use strict";
const channels = (color) => color.match(/[\d.]+/g).map(Number);
// https://www.w3.org/TR/WCAG21/#dfn-relative-luminance
const luminance = ([r, g, b]) => {
  const [R, G, B] = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * R + 0.7152 * G + 0.0722 * B;
};
const background = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = channels(getComputedStyle(at).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const contrast = (element) => {
  const style = getComputedStyle(element);
  const color = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
  const [high, low] = [luminance(channels(color)), luminance(background(element))].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
};
const hasText = (element) => [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim() !== "");
const texts = [...document.body.querySelectorAll("*")].filter((e) => hasText(e) && e.tagName !== "SCRIPT" && e.tagName !== "title");
const page = document.scrollingElement;
const result = {
  width: innerWidth,
  overflow: page.scrollWidth - page.clientWidth,
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
  texts: texts.length,
  contrast: Math.min(...texts.map(contrast)),
  tallest_row: Math.max(0, ...[...document.querySelectorAll("tbody tr")].map((row) => row.getBoundingClientRect().height)),
  first: document.body.innerText.trim().split("\n").slice(0, 4).join(" "),
};
document.documentElement.innerHTML = `<pre id="result">${JSON.stringify(result).replace(/</g, "&lt;")}</pre>`;
