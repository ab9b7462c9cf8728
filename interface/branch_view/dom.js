// Elements of the page, touched only where something changes. Texts of people and models are set as text, never as markup.
export const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

export function set(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function make(tag, className, parent) {
  const node = document.createElement(tag);
  node.className = className;
  parent.append(node);
  return node;
}

export const trim = (node, count) => { while (node.children.length > count) node.lastChild.remove(); };
