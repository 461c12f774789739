// dom.js - elements out of values, and the least change that turns one tree into another.
//
// Text only ever becomes a text node or an attribute, never markup.  Handlers are not
// attached to nodes: what a click means stands in data-do, and app.js listens once, so
// that a tree can be changed in place without losing focus, scroll or selection.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "rect", "polyline", "line", "circle", "title", "g"]);

function append(node, child) {
  if (Array.isArray(child)) child.forEach((one) => append(node, one));
  else if (child instanceof Node) node.append(child);
  else if (child !== null && child !== undefined && child !== false && child !== true)
    node.append(String(child));
}

export function h(tag, attributes, ...children) {
  const node = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
  return node;
}

// A node with data-keep is made once and then left to its owner.
function same(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName &&
    (a.nodeType !== 1 || (a.getAttribute("data-keep") === b.getAttribute("data-keep") &&
                          a.getAttribute("data-key") === b.getAttribute("data-key")));
}

function patchAttributes(from, to) {
  for (const { name } of [...from.attributes])
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  for (const { name, value } of to.attributes)
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
}

function patchNode(from, to) {
  if (from.nodeType !== 1) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  if (from.hasAttribute("data-keep")) return;
  patchAttributes(from, to);
  patchChildren(from, to);
}

export function patchChildren(from, to) {
  const wanted = [...to.childNodes];
  wanted.forEach((node, index) => {
    const here = from.childNodes[index];
    if (!here) from.append(node);
    else if (same(here, node)) patchNode(here, node);
    else from.replaceChild(node, here);
  });
  while (from.childNodes.length > wanted.length) from.lastChild.remove();
}

export function render(parent, ...children) {
  const next = document.createElement(parent.nodeName);
  append(next, children);
  patchChildren(parent, next);
}
